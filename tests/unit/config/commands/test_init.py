import json
import socket
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from fleet.config import legacy
from fleet.config.commands import init_files as starter
from fleet.config.commands.init import Wishes, begin_project, ensure_home, migrate
from fleet.config.commands.set import SettingFiles
from fleet.config.keys.table import SETTINGS
from fleet.config.legacy import legacy_notice
from fleet.config.project_kind import KINDS, find_ollama, kind_of, set_up
from fleet.domain.errors import BadConfig, BadInput

NOWHERE = {"OLLAMA_HOST": "localhost:1"}


@pytest.fixture(autouse=True)
def home_of_nobody(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def context(world):
    return SettingFiles(world.project, world.home, {**world.env, **NOWHERE})


def begin(context, **options):
    return begin_project(context, Wishes(**{"approve": lambda _: True, **options}))


MARKS = {
    "python": ("pyproject.toml", [".env", "secrets.json"], [".venv/bin/pip install -e ."]),
    "node": ("package.json", [".env", ".env.local"], ["npm install --no-package-lock"]),
    "rails": ("config/application.rb", ["config/master.key"], ["bundle install"]),
    "rust": ("Cargo.toml", [".env"], ["cargo fetch"]),
    "go": ("go.mod", [".env"], ["go mod download"]),
    "generic": ("README", [".env"], []),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_project_is_recognised_and_set_up_as_its_kind(world, context, kind):
    mark, files, commands = MARKS[kind]
    (world.project / mark).parent.mkdir(exist_ok=True)
    (world.project / mark).write_text("[project]\n")
    assert kind_of(world.project) == begin(context).kind == kind
    workspace = world.load().settings.workspace
    assert set(files) <= set(workspace.credential_files)
    assert set(commands) <= set(workspace.setup)


@pytest.mark.parametrize(
    ("lock", "command"),
    [
        ("pnpm-lock.yaml", "pnpm install"),
        ("package-lock.json", "npm install"),
        ("yarn.lock", "yarn install"),
        ("bun.lock", "bun install"),
    ],
)
def test_a_node_project_is_installed_with_its_own_tool(tmp_path, lock, command):
    (tmp_path / "package.json").touch()
    (tmp_path / lock).touch()
    assert set_up("node", tmp_path).setup == (command,)


def test_a_python_project_never_installs_into_the_machines_own_python(tmp_path):
    (tmp_path / "requirements.txt").touch()
    commands = set_up("python", tmp_path).setup
    assert commands == ("python3 -m venv .venv", ".venv/bin/pip install -r requirements.txt")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_valid_and_trusted(world, context, kind):
    begin(context, kind=kind)
    loaded = world.load()
    assert (loaded.warnings, loaded.trusted) == ((), True)
    assert set(loaded.fleet.agents) == {"planner", "implementer", "reviewer", "summarizer"}
    assert {agent.model for agent in loaded.fleet.agents.values()} == {None}
    assert not loaded.fleet.nodes  # no Ollama answered


def test_agents_use_a_coder_that_is_installed(world, context):
    begin(context, coders=("codex", "opencode"))
    agents = world.load().fleet.agents.values()
    assert {agent.coder for agent in agents} == {"codex"}


def test_set_up_commands_that_nobody_approved_are_commented_out(world, context):
    (world.project / "package.json").write_text("{}")
    asked = []
    begun = begin(context, approve=lambda commands: bool(asked.append(commands)))
    assert (asked, begun.set_up) == ([("npm install --no-package-lock",)], False)
    assert "  # setup:\n  #   - npm install --no-package-lock\n" in world.file.read_text()
    assert world.load().settings.workspace.setup == ()


def test_a_pyproject_that_only_configures_a_linter_has_nothing_to_install(world, context):
    (world.project / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")
    assert begin(context).setup == ()


def test_a_project_with_a_name_that_yaml_would_misread(tmp_path):
    text = starter.project_file(
        "no: # yes", "generic", set_up("generic", tmp_path), starter.MachineTools()
    )
    assert 'name: "no: # yes"' in text


def test_a_file_that_is_there_is_left_alone(world, context):
    world.fleet("team: red\n")
    assert begin(context).kept
    assert world.file.read_text() == "team: red\n"


def test_a_file_that_is_replaced_is_kept_beside_it(world, context):
    for number, name in enumerate(["fleet.yaml.bak", "fleet.yaml.bak1"]):
        world.fleet(f"team: red{number}\n")
        backup = begin(context, force=True).backup
        assert (backup.name, backup.read_text()) == (name, f"team: red{number}\n")


def test_an_output_whose_directory_is_missing_is_refused(world, context):
    with pytest.raises(BadInput, match="its directory is missing"):
        begin(context, output=world.project / "no" / "fleet.yaml")


def test_a_person_s_home_directory_is_not_made_a_project(world, context):
    at_home = context._replace(cwd=world.home.parent)
    assert begin(at_home).file is None
    assert not (world.home.parent / "fleet.yaml").exists()


def test_the_home_is_made_once_and_then_left_alone(tmp_path):
    home = tmp_path / "new" / "home"
    assert ensure_home(home)
    (home / "config.yaml").write_text("team: red\n")
    assert not ensure_home(home)
    assert (home / "config.yaml").read_text() == "team: red\n"
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_file_in_the_place_of_the_home_is_named(tmp_path):
    (tmp_path / "home").touch()
    with pytest.raises(BadInput, match="is a file, where a directory is needed"):
        ensure_home(tmp_path / "home")


def test_every_line_of_your_own_file_can_be_uncommented(world):
    before = world.user(starter.user_file()).load()
    lines = starter.user_file().splitlines()[2:]
    after = world.user("\n".join(line.removeprefix("# ") for line in lines)).load()
    assert after.settings == before.settings
    assert {after.origins[key.path].layer for key in SETTINGS} == {"user"}
    assert {before.origins[key.path].layer for key in SETTINGS} == {"default"}


class Tags(BaseHTTPRequestHandler):
    answer = b""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.answer if self.path == "/api/tags" else b"?")

    def log_message(self, *_words):
        pass


@pytest.fixture
def ollama():
    """A server that answers as an Ollama does; give it the answer and get its address."""
    servers = []

    def serve(answer):
        handler = type("Handler", (Tags,), {"answer": answer})
        server = HTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return {"OLLAMA_HOST": f"127.0.0.1:{server.server_port}"}

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_an_ollama_is_found_with_its_models_the_largest_first(ollama, context, world):
    models = [{"name": "tiny:1b", "size": 1}, {"name": "huge:70b", "size": 70}]
    models.append({"name": "nomic-embed-text", "size": 99})
    env = ollama(json.dumps({"models": models}).encode())
    begun = begin(context._replace(env={**context.env, **env}))
    assert begun.ollama.models == ("huge:70b", "tiny:1b")
    fleet = world.load().fleet
    assert fleet.nodes["local"].endpoint == f"http://{env['OLLAMA_HOST']}"
    assert fleet.agent("implementer").model.servings[0].upstream == "huge:70b"
    assert fleet.agent("planner").model.servings[0].upstream == "tiny:1b"


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"models": 3}', b'{"models": [1]}'])
def test_something_else_on_that_port_is_no_ollama(ollama, answer):
    assert find_ollama(ollama(answer)) is None


def test_an_ollama_without_models_is_found_all_the_same(ollama, context):
    env = ollama(b'{"models": []}')
    assert begin(context._replace(env={**context.env, **env})).ollama.models == ()


def test_an_address_that_never_answers_costs_a_third_of_a_second():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begun = time.monotonic()
        assert find_ollama({"OLLAMA_HOST": f"127.0.0.1:{silent.getsockname()[1]}"}) is None
        assert time.monotonic() - begun < 20


def test_a_server_that_drips_its_answer_costs_no_more():
    with socket.create_server(("127.0.0.1", 0)) as server:
        over = threading.Event()

        def drip():
            talk, _ = server.accept()
            with talk, suppress(OSError):
                while not over.wait(0.05):
                    talk.sendall(b"H")

        dripping = threading.Thread(target=drip)
        dripping.start()
        assert find_ollama({"OLLAMA_HOST": f"127.0.0.1:{server.getsockname()[1]}"}) is None
        assert dripping.is_alive()
        over.set()
        dripping.join()


AIFLEET = """\
[project]
name = "my-awesome-project"
worktree_root = "~/.aifleet/worktrees/my-awesome-project"

[agent]
default = "claude"
claude_flags = "--dangerously-skip-permissions --verbose"

[setup]
credential_files = ["config/master.key", ".env"]
commands = ["bundle install", "npm install"]
quick = false

[tmux]
prefix = "ai_"
"""


def put(world, kind, text):
    file = {
        "runtime": world.home / "runtime.toml",
        "project": world.project / ".aifleet" / "config.toml",
        "global": world.home.parent / ".ai_fleet" / "config.toml",
    }[kind]
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def imported(context):
    ensure_home(context.home)
    return migrate(context, begin(context, kind="generic"))


def test_the_supervisors_older_file_becomes_your_own_settings(world, context):
    file = put(world, "runtime", 'max_concurrent = 5\ncoder = "codex"\nmodel = "o3"\nodd = 1\n')
    done = imported(context)[0]
    settings = world.load().settings
    assert (settings.max_concurrent, settings.coder, settings.model) == (5, "codex", "o3")
    assert done.left == ("odd: there is no such setting here",)
    assert file.exists()


def test_the_launchers_older_file_becomes_the_projects_settings(world, context):
    put(world, "project", AIFLEET)
    done = imported(context)[0]
    loaded = world.load()
    assert loaded.fleet.name == "my-awesome-project"
    assert loaded.settings.workspace.credential_files == ("config/master.key", ".env")
    assert loaded.settings.tmux.prefix == "ai_"
    assert set(done.taken) >= {"workspace.setup", "workspace.root", "agents.claude.extra_args"}


def test_what_came_with_a_repository_must_still_be_trusted(world, context):
    put(world, "project", AIFLEET)
    imported(context)
    assert world.load().settings.workspace.setup == ()
    settings = world.trust().load().settings
    assert settings.workspace.setup == ("bundle install", "npm install")
    root = world.home.parent / ".aifleet" / "worktrees" / "my-awesome-project"
    assert settings.workspace.root == root


def test_the_flag_that_skips_all_permissions_is_named_and_not_taken(world, context):
    put(world, "project", AIFLEET)
    done = imported(context)[0]
    agent = world.trust().load().fleet.agent("claude")
    assert (agent.extra_args, agent.permissions) == (("--verbose",), "edit")
    said = next(line for line in done.left if "--dangerously-skip-permissions" in line)
    assert "agents.claude.permissions=full" in said


def test_the_oldest_global_file_becomes_the_projects_settings_too(world, context):
    text = 'default_agent = "codex"\nsetup_commands = ["make"]\ntmux_prefix = "ai_"\n'
    put(world, "global", text)
    imported(context)
    settings = world.load().settings
    assert (settings.coder, settings.workspace.setup) == ("codex", ("make",))
    assert settings.tmux.prefix == "ai_"


def test_the_projects_older_file_wins_over_the_global_one(world, context):
    put(world, "project", '[agent]\ndefault = "aider"\n')
    put(world, "global", 'default_agent = "codex"\n')
    done = imported(context)
    assert world.load().settings.coder == "aider"
    assert done[1].left == ("coder: it is set already",)


def test_what_your_files_say_already_wins(world, context):
    world.user("max_concurrent: 9\n").fleet("coder: agy\n")
    put(world, "runtime", "max_concurrent = 5\n")
    put(world, "project", '[agent]\ndefault = "codex"\n')
    imported(context)
    settings = world.load().settings
    assert (settings.max_concurrent, settings.coder) == (9, "agy")


def test_a_value_that_is_wrong_is_left_with_the_reason(world, context):
    put(world, "runtime", 'max_concurrent = 0\ncoder = "vim"\nmodel = "o3"\n')
    done = imported(context)[0]
    assert done.taken == ("model",)
    assert len(done.left) == 2


def test_an_older_file_that_is_broken_is_named_and_nothing_is_taken(world, context):
    put(world, "runtime", "max_concurrent = 5\n")
    put(world, "project", "x = [\n")
    with pytest.raises(BadConfig, match="is not valid TOML"):
        imported(context)
    assert world.load().settings.max_concurrent == 3
    assert legacy_notice(world.home, world.project)


def test_older_files_are_mentioned_until_they_are_imported(world, context):
    assert legacy_notice(world.home, world.project) == ""
    file = put(world, "runtime", "max_concurrent = 5\n")
    said = legacy_notice(world.home, world.project)
    assert said == f"Not imported: {file}. `fleet init --migrate-legacy` imports it."
    imported(context)
    assert legacy_notice(world.home, world.project) == ""
    assert legacy.records(world.home)[str(file)]["taken"] == ["max_concurrent"]
