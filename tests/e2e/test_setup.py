"""`fleet init`, `validate`, `config` and `trust`, as processes with a private home."""

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.testing.fake_node.node import FakeNode
from tests.wait import LIMIT

EXAMPLES = Path(__file__).parent.parent / "unit" / "config" / "examples"


class Machine:
    """One person's home directory, and a git repository in it."""

    def __init__(self, root: Path):
        self.root = root
        self.home = root / ".fleet"
        self.project = root / "app"
        self.project.mkdir()
        subprocess.run(["git", "init", "-q", self.project], check=True)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(root),
            "FLEET_HOME": str(self.home),
            "OLLAMA_HOST": "localhost:1",
        }

    def __call__(self, *words, cwd=None, status=0, **env):
        done = subprocess.run(
            [sys.executable, "-m", "fleet", *words],
            cwd=cwd or self.project,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done

    def data(self, *words, **kwargs):
        document = json.loads(self(*words, "--json", **kwargs).stdout)
        assert document["fleet"] == 1
        return document["data"]

    def origins(self, **kwargs):
        return {row["setting"]: row for row in self.data("config", **kwargs)}

    @property
    def file(self):
        return self.project / "fleet.yaml"

    @property
    def user_file(self):
        return self.home / "config.yaml"


@pytest.fixture
def fleet(tmp_path):
    return Machine(tmp_path)


def test_init_sets_up_the_home_and_the_project_and_may_be_run_again(fleet):
    (fleet.project / "package.json").write_text("{}")
    said = fleet("init").stdout
    assert "Created fleet.yaml for a node project." in said
    assert (
        "Commented out in it, because each new worktree would run it: `npm install --no-package-lock`."
        in said
    )
    assert fleet("validate").stdout == "fleet.yaml is valid.\n"
    before = fleet.file.read_bytes()
    assert "fleet.yaml already exists; it was not changed." in fleet("init").stdout
    assert fleet.file.read_bytes() == before
    assert stat.S_IMODE(fleet.home.stat().st_mode) == 0o700


def test_init_writes_agents_for_the_programs_that_are_there_and_nodes_where_ollama_answers(fleet):
    """The programs are stand-ins that only are on PATH; the Ollama is one that answers."""
    programs = fleet.root / "bin"
    programs.mkdir()
    for name in ("git", "sh"):
        (programs / name).symlink_to(shutil.which(name))
    for name in ("codex", "opencode"):
        (programs / name).write_text("#!/bin/sh\necho 1.0\n")
        (programs / name).chmod(0o755)
    fleet.env["PATH"] = str(programs)
    data = fleet.data("init")
    assert set(data["coders"]) == {"codex", "opencode"}
    text = fleet.file.read_text()
    assert "coder: codex" in text
    assert "coder: claude" not in text
    assert "\nnodes:" not in text
    assert fleet("validate").stdout == "fleet.yaml is valid.\n"
    ollama = FakeNode(["qwen2.5-coder:7b"]).start()
    try:
        fleet.env["OLLAMA_HOST"] = ollama.url.removeprefix("http://")
        fleet("init", "--force")
    finally:
        ollama.stop()
    text = fleet.file.read_text()
    assert f"endpoint: {ollama.url}" in text.replace('"', "")
    assert "qwen2.5-coder:7b" in text
    assert fleet("validate").stdout == "fleet.yaml is valid.\n"


def test_init_asks_before_it_writes_commands_that_run_in_every_worktree(fleet):
    (fleet.project / "package.json").write_text("{}")
    data = fleet.data("init")
    assert data["setup"] == {"commands": ["npm install --no-package-lock"], "enabled": False}
    assert "# setup:" in fleet.file.read_text()
    said = fleet("init", "--force", "--yes").stdout
    assert "Each new worktree runs `npm install --no-package-lock`." in said
    assert "\n  setup:\n    - npm install --no-package-lock\n" in fleet.file.read_text()


def test_init_finds_the_top_of_the_repository_and_the_type_can_be_given(fleet):
    below = fleet.project / "src"
    below.mkdir()
    data = fleet.data("init", "--type", "rails", cwd=below)
    assert (data["file"], data["kind"], data["written"]) == (str(fleet.file), "rails", True)
    assert "bundle install" in fleet.file.read_text()
    assert "Did you mean 'rails'?" in fleet("init", "--type", "rail", status=2).stderr


def test_init_refuses_an_output_that_is_there_unless_forced(fleet):
    target = fleet.project / "other.yaml"
    target.write_text("team: red\n")
    refused = fleet("init", "--output", "other.yaml", status=1)
    assert refused.stderr == "fleet: other.yaml already exists.\n  --force replaces it.\n"
    assert target.read_text() == "team: red\n"
    fleet("init", "--output", "other.yaml", "--force")
    assert (fleet.project / "other.yaml.bak").read_text() == "team: red\n"
    fleet("validate", "--config", "other.yaml")
    assert "its directory is missing" in fleet("init", "--output", "a/b.yaml", status=2).stderr


def test_init_outside_git_warns(fleet):
    place = fleet.root / "plain"
    place.mkdir()
    done = fleet("init", cwd=place)
    assert "is not in a git repository" in done.stderr
    assert (place / "fleet.yaml").exists()


def test_init_in_the_home_directory_makes_no_project_of_it(fleet):
    assert "There is no project here" in fleet("init", cwd=fleet.root).stdout
    assert not (fleet.root / "fleet.yaml").exists()
    assert fleet.user_file.exists()


def test_init_imports_the_files_of_older_tools(fleet):
    fleet.home.mkdir()
    (fleet.home / "runtime.toml").write_text("max_concurrent = 8\n")
    older = fleet.project / ".aifleet"
    older.mkdir()
    flags = 'claude_flags = "--dangerously-skip-permissions"'
    (older / "config.toml").write_text(f'[agent]\ndefault = "codex"\n{flags}\n')
    said = fleet("init", "--migrate-legacy").stdout
    assert "--dangerously-skip-permissions lets an agent do anything unasked" in said
    rows = fleet.origins()
    assert (rows["max_concurrent"]["value"], rows["coder"]["value"]) == (8, "codex")
    assert "dangerously" not in fleet.file.read_text()
    assert (fleet.home / "runtime.toml").exists()
    before = fleet.file.read_bytes(), fleet.user_file.read_bytes()
    fleet("init", "--migrate-legacy")
    assert (fleet.file.read_bytes(), fleet.user_file.read_bytes()) == before


def test_init_says_so_when_there_is_nothing_to_import(fleet):
    assert "There is nothing to import." in fleet("init", "--migrate-legacy").stdout


def test_validate_says_everything_that_is_wrong_at_once(fleet):
    fleet.file.write_text("project: {name: ''}\nnodez: {}\nrun: {attempts: x}\n")
    done = fleet("validate", status=2)
    assert done.stdout == ""
    assert done.stderr == (
        "fleet: The configuration has 3 problems.\n"
        "fleet.yaml:1: project.name: is empty.\n"
        "fleet.yaml:2: nodez: is not a setting.\n"
        "  Did you mean 'nodes'?\n"
        "fleet.yaml:3: run.attempts: needs a whole number from 1 to 100, not 'x'.\n"
    )


def test_validate_of_one_problem_is_two_lines(fleet):
    fleet.file.write_text(
        "nodes: {mac-mini: {endpoint: 'http://m:1'}}\nmodels:\n"
        "  heavy-coder:\n    node: mac-mni\n    ollama_model: q\n    litellm_alias: h\n"
    )
    assert fleet("validate", status=2).stderr == (
        "fleet: fleet.yaml:4: models.heavy-coder.node: 'mac-mni' is not a node.\n"
        "  Did you mean 'mac-mini'?\n"
    )


@pytest.mark.parametrize("name", ["readme", "spec"])
def test_validate_takes_the_published_examples(fleet, name):
    fleet.file.write_text((EXAMPLES / f"{name}.yaml").read_text())
    assert fleet("validate").stdout.startswith("fleet.yaml is valid.\n")


def test_validate_warns_about_aliases_that_collide(fleet):
    text = (EXAMPLES / "readme.yaml").read_text()
    fleet.file.write_text(text.replace("claude-haiku-local", "claude-sonnet-local"))
    assert "is also the alias of 'heavy-coder'" in fleet("validate").stdout
    warnings = fleet.data("validate")["warnings"]
    assert len([warning for warning in warnings if ".alias: " in warning]) == 1


def test_validate_without_a_file_says_how_to_get_one(fleet):
    assert "`fleet init` writes one." in fleet("validate", status=2).stderr
    assert "nope.yaml: is not there." in fleet("validate", "--config", "nope.yaml", status=2).stderr
    assert "is a directory" in fleet("validate", "--config", ".", status=2).stderr


def test_config_shows_every_setting_and_where_it_comes_from(fleet):
    fleet.file.write_text("# mine\ncoder: codex\n")
    fleet("config", "set", "max_concurrent=5")
    rows = fleet.origins(FLEET_TEAM="red")
    assert rows["coder"]["file"] == "fleet.yaml"
    assert (rows["coder"]["layer"], rows["coder"]["line"]) == ("project", 2)
    assert (rows["max_concurrent"]["value"], rows["max_concurrent"]["layer"]) == (5, "user")
    assert (rows["team"]["layer"], rows["team"]["file"]) == ("environment", "FLEET_TEAM")
    assert rows["run.attempts"]["layer"] == "default"
    for words in (["config", "--show-origin"], ["config", "show", "--show-origin"]):
        table = fleet(*words).stdout
        assert [line.split() for line in table.splitlines() if line.startswith("coder")] == [
            ["coder", "codex", "fleet.yaml:2"]
        ]


def test_config_set_keeps_the_rest_of_the_file(fleet):
    fleet.home.mkdir()
    fleet.user_file.write_text("# mine\nmax_concurrent: 3  # enough\n# end\n")
    done = fleet("config", "set", "max_concurrent=5")
    assert done.stdout == f"max_concurrent = 5\nWritten to {fleet.user_file}.\n"
    assert fleet.user_file.read_text() == "# mine\nmax_concurrent: 5  # enough\n# end\n"


@pytest.mark.parametrize("value", ['it\'s "so"', "a # b", "a: b", " x ", "[1]", "null", "ünï"])
def test_config_set_takes_any_text(fleet, value):
    fleet("config", "set", "agents.rev.coder=claude", f"agents.rev.prompt={value}")
    assert fleet.origins()["agents.rev.prompt"]["value"] == value


def test_config_set_refuses_a_bad_value_and_changes_nothing(fleet):
    fleet("config", "set", "team=red")
    before = fleet.user_file.read_bytes()
    refused = fleet("config", "set", "team=blue", "max_concurrent=zero", status=2)
    assert refused.stderr.startswith("fleet: max_concurrent: needs a whole number from 1 to 1000")
    assert (
        "Did you mean 'max_concurrent'?"
        in fleet("config", "set", "max_concurent=5", status=2).stderr
    )
    fleet("config", "set", status=2)
    fleet("config", "set", "team", status=2)
    assert fleet.user_file.read_bytes() == before


def test_config_set_can_write_to_the_project(fleet):
    fleet("config", "set", "--project", "coder=codex", 'workspace.setup=["make deps"]')
    assert fleet.file.read_text() == "coder: codex\nworkspace:\n  setup: [make deps]\n"
    assert fleet.origins()["workspace.setup"]["value"] == ["make deps"]
    assert (
        "cannot be set in a project"
        in fleet("config", "set", "--project", "max_concurrent=1", status=2).stderr
    )
    assert (
        "There is no project here."
        in fleet("config", "set", "--project", "coder=agy", cwd=fleet.root, status=2).stderr
    )


def test_config_set_says_when_something_stronger_wins(fleet):
    fleet.file.write_text("coder: codex\n")
    assert "coder is still codex: fleet.yaml:1 wins." in fleet("config", "set", "coder=agy").stderr


def test_config_set_refuses_a_bad_value_also_where_something_stronger_hides_it(fleet):
    fleet.file.write_text("coder: codex\n")
    refused = fleet("config", "set", "coder=bogus", status=2)
    assert f"fleet: {fleet.user_file}:1: coder: 'bogus' is not a valid value" in refused.stderr
    assert not fleet.user_file.exists()
    hidden = {"FLEET_CODER": "claude"}
    refused = fleet("config", "set", "--project", "coder=bogus", status=2, **hidden)
    assert "'bogus' is not a valid value" in refused.stderr
    assert fleet.file.read_text() == "coder: codex\n"


def test_config_get_prints_one_value_and_unset_takes_it_out_of_the_file(fleet):
    fleet.user_file.parent.mkdir(parents=True, exist_ok=True)
    fleet.user_file.write_text("# mine\nteam: red\nrun:\n  attempts: 4  # often\n")
    assert fleet("config", "get", "team").stdout == "red\n"
    assert fleet("config", "get", "run.attempts").stdout == "4\n"
    assert "run.backoff" in fleet("config", "get", "run").stdout
    assert fleet.data("config", "get", "team")["value"] == "red"
    assert "There is no setting 'tem'" in fleet("config", "get", "tem", status=2).stderr
    done = fleet("config", "unset", "run.attempts").stdout
    assert f"run.attempts is no longer set in {fleet.user_file}." in done
    assert "run.attempts is now 2 (default)." in done
    assert fleet.user_file.read_text() == "# mine\nteam: red\n"
    again = fleet("config", "unset", "run.attempts", status=2).stderr
    assert "run.attempts is not set in" in again
    assert "fleet config --show-origin" in again


def test_config_raw_prints_the_file_to_the_last_byte(fleet):
    fleet.home.mkdir()
    fleet.user_file.write_text("# mine\nteam: red")
    fleet.file.write_text("team: blue\n")
    assert fleet("config", "show", "--raw").stdout == "# mine\nteam: red"
    assert fleet("config", "--raw").stdout == "# mine\nteam: red"
    assert fleet("config", "--raw", "--project").stdout == "team: blue\n"
    assert "is a directory" in fleet("config", "--raw", "--config", ".", status=2).stderr
    assert "is not there" in fleet("config", "set", "--config", "x", "team=a", status=2).stderr


def test_config_edit_runs_the_editor_with_its_arguments_and_checks_the_result(fleet, tmp_path):
    fleet.file.write_text("team: red\n")
    script = tmp_path / "my editor.py"
    script.write_text(
        "import sys, pathlib; new, file = sys.argv[1:];"
        "pathlib.Path(file).write_text(new.replace('|', chr(10)))"
    )
    editor = f"{sys.executable} '{script}'"
    assert (
        fleet("config", "edit", EDITOR=f"{editor} 'team: blue|'").stdout == "fleet.yaml is valid.\n"
    )
    assert fleet.file.read_text() == "team: blue\n"
    for words in (["config", "--edit"], ["config", "-e"]):
        broken = fleet(*words, VISUAL=f"{editor} 'taem: x|'", EDITOR="false", status=2)
        assert "Did you mean 'team'?" in broken.stderr
    assert fleet.file.read_text() == "taem: x\n"


def test_config_edit_with_an_editor_that_fails(fleet):
    fleet.file.write_text("team: red\n")
    assert "is not installed" in fleet("config", "edit", EDITOR="no-such-editor", status=2).stderr
    assert "ended with status 1" in fleet("config", "edit", EDITOR="false", status=1).stderr
    none = fleet("config", "edit", EDITOR="", VISUAL="", status=2).stderr
    assert "There is no terminal for an editor." in none


def test_config_validate_checks_what_is_there(fleet):
    for words in (["config", "validate"], ["config", "--validate"], ["config", "-v"]):
        assert fleet(*words).stdout == "There is no file to check.\n"
    fleet("init")
    assert fleet("config", "validate").stdout == "fleet.yaml is valid.\n"
    fleet.user_file.write_text("nope: 1\n")
    assert "nope: is not a setting." in fleet("config", "validate", status=2).stderr


def test_another_file_can_be_given_before_or_after_the_subcommand(fleet):
    (fleet.project / "other.yaml").write_text("team: blue\n")
    for words in (["--config", "other.yaml", "show"], ["show", "--config", "other.yaml"]):
        rows = {row["setting"]: row["value"] for row in fleet.data("config", *words)}
        assert rows["team"] == "blue"


def test_trust_makes_a_repositorys_commands_count_until_they_change(fleet):
    fleet.file.write_text("workspace:\n  setup: [make deps]\n")
    shown = fleet("config", "--show-origin")
    assert "default (fleet.yaml:2 is untrusted)" in shown.stdout
    assert "Read it, then run `fleet trust`." in shown.stderr
    asked = fleet.data("trust", "--show")
    assert (asked["trusted"], asked["settings"][0]["setting"]) == (False, "workspace.setup")
    assert fleet.data("trust")["trusted"]
    assert stat.S_IMODE((fleet.home / "trusted.json").stat().st_mode) == 0o600
    assert fleet.origins()["workspace.setup"]["value"] == ["make deps"]
    fleet.file.write_text("workspace:\n  setup: [make deps, make evil]\n")
    assert fleet.origins()["workspace.setup"]["value"] == []
    fleet("trust")
    assert "no longer trusted" in fleet("trust", "--revoke").stdout
    assert fleet.origins()["workspace.setup"]["value"] == []


def test_trust_with_nothing_to_trust(fleet):
    fleet.file.write_text("team: red\n")
    assert "asks for nothing that needs trust" in fleet("trust").stdout
    fleet.file.unlink()
    assert "There is no fleet.yaml here." in fleet("trust", status=2).stderr


def test_a_run_may_not_trust_its_own_project(fleet):
    fleet.file.write_text("workspace: {setup: [make deps]}\n")
    fleet("trust", FLEET_RUN_ID="t-1.1", status=1)
    assert not fleet.data("trust", "--show", FLEET_RUN_ID="t-1.1")["trusted"]


def test_settings_are_found_from_inside_a_worktree(fleet):
    git = [
        "git",
        "-C",
        str(fleet.project),
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.invalid",
    ]
    fleet.file.write_text("team: red\n")
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    tree = fleet.home / "worktrees" / "t-1"
    subprocess.run([*git, "worktree", "add", "-q", str(tree)], check=True)
    (tree / "sub").mkdir()
    assert fleet.origins(cwd=tree / "sub")["team"]["value"] == "red"


def test_a_home_that_cannot_be_used_is_said_so(fleet):
    assert "absolute path" in fleet("config", FLEET_HOME="here", status=2).stderr
    fleet.home.write_text("")
    assert "is a file, where a directory is needed" in fleet("init", status=2).stderr


def test_a_directory_that_is_gone_is_said_so(fleet):
    gone = fleet.root / "gone"
    gone.mkdir()
    shell = f"rmdir {gone}; exec {sys.executable} -m fleet config"
    done = subprocess.run(
        ["sh", "-c", shell], cwd=gone, env=fleet.env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "The current directory no longer exists." in done.stderr
