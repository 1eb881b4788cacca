"""The `fleet` command as a person runs it: a real process, a private home."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fleet import __version__
from fleet.cli.main import COMMANDS, HEADINGS
from tests.wait import LIMIT

BIN = Path(sys.executable).parent
# As a person has it: output that is buffered, and no settings of ours.
PLAIN = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "FLEET", "COLUMNS"))}
PLAIN = {k: v for k, v in PLAIN.items() if "COLOR" not in k}


@pytest.fixture
def fleet(tmp_path):
    """Run an executable of ours; the answer is a `CompletedProcess` with text."""

    def run(*words, program="fleet", **env):
        found = PLAIN | {"FLEET_HOME": str(tmp_path / "home")} | env
        return subprocess.run(
            [BIN / program, *words],
            env=found,
            cwd=tmp_path,
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT,
            check=False,
        )

    return run


def test_help_shows_the_everyday_commands_and_names_every_other(fleet):
    found = fleet("--help")
    assert (found.returncode, found.stderr) == (0, "")
    for everyday, others in HEADINGS.values():
        for name in everyday:
            words = re.escape(COMMANDS[name][1])
            assert re.search(rf"^  {name} +{words}$", found.stdout, re.MULTILINE)
        more = " ".join(f"more: {', '.join(others)}".split())
        assert more in " ".join(found.stdout.split())
    assert found.stdout.index("\nWork:") < found.stdout.index("\nSetup:")
    assert fleet("-h").stdout == fleet("help").stdout == found.stdout


def test_help_all_shows_every_command_under_its_heading(fleet):
    found = fleet("help", "all")
    assert (found.returncode, found.stderr) == (0, "")
    for name, (_, words) in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(words)}$", found.stdout, re.MULTILINE)


def test_help_with_a_command_is_the_help_of_that_command(fleet):
    found = fleet("help", "config", "set", FLEET_URL="http://127.0.0.1:9")
    assert (found.returncode, found.stderr) == (0, "")
    assert found.stdout == fleet("config", "set", "--help").stdout
    assert fleet("help", "taks").stderr.endswith("Did you mean 'task' or 'tasks'?\n")


@pytest.mark.parametrize("program", ["fleet", "flt", "subagent-fleet"])
def test_every_name_of_the_program_is_the_same_program(program, fleet):
    found = fleet("--version", program=program)
    assert (found.returncode, found.stdout) == (0, f"fleet {__version__}\n")


def test_python_dash_m_is_the_same_program(fleet):
    assert fleet("-m", "fleet", "--version", program="python").stdout == f"fleet {__version__}\n"
    assert fleet("-m", "fleet", "taks", program="python").returncode == 2


def test_the_server_has_a_name_of_its_own(fleet):
    assert "stopped" in fleet("--status", program="claude-fleet").stdout


def test_the_mcp_server_has_a_name_of_its_own(fleet):
    found = fleet(program="claude-fleet-mcp")
    assert (found.returncode, found.stdout, found.stderr) == (0, "", "")
    assert "Usage: fleet mcp" in fleet("--help", program="claude-fleet-mcp").stdout


def test_another_word_is_answered_with_where_the_commands_are_listed(fleet):
    found = fleet("xyzzy")
    assert found.returncode == 2
    assert found.stderr.endswith(
        "'xyzzy' is not a command.\n  `fleet help all` lists the commands.\n"
    )


def test_an_unknown_command_is_answered_with_the_nearest(fleet):
    found = fleet("taks")
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == "fleet: 'taks' is not a command.\n  Did you mean 'task' or 'tasks'?\n"


def test_an_unknown_option_is_answered_with_the_nearest(fleet):
    found = fleet("completion", "bash", "--jsno")
    assert (found.returncode, found.stdout) == (2, "")
    assert found.stderr == (
        "fleet: completion: there is no option '--jsno'.\n  Did you mean '--json'?\n"
    )
    said = fleet("--json", "tasks").stderr
    assert "Options come after the command's name: `fleet status --json`." in said
    assert "Did you mean '--version'?" in fleet("--verson").stderr


def test_a_value_that_is_not_one_of_the_choices_is_named(fleet):
    found = fleet("completion", "bahs")
    assert found.returncode == 2
    assert "SHELL: 'bahs' is not one of 'bash', 'fish', 'zsh'." in found.stderr
    assert "Did you mean 'bash'?" in found.stderr


def test_json_is_one_document_at_any_width(fleet):
    found = fleet("completion", "bash", "--json", COLUMNS="20")
    document = json.loads(found.stdout)
    assert (found.returncode, found.stderr) == (0, "")
    assert list(document) == ["fleet", "kind", "data"]
    assert (document["fleet"], document["kind"]) == (1, "completion")
    assert found.stdout == fleet("completion", "bash", "--json", FORCE_COLOR="1").stdout


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["tasks"], "tasks"),
        (["ready"], "tasks"),
        (["questions"], "questions"),
        (["add", "日本 …", "--in-place"], "task"),
        (["config"], "config"),
        (["completion", "zsh"], "completion"),
    ],
)
def test_every_report_keeps_the_contract_of_json(words, kind, fleet):
    found = fleet(*words, "--json", COLUMNS="20")
    assert (found.returncode, found.stderr) == (0, "")
    document = json.loads(found.stdout)
    assert (document["fleet"], document["kind"]) == (1, kind)
    assert set(document) - {"notes"} == {"fleet", "kind", "data"}


def test_json_is_utf8_whatever_the_terminal_speaks(fleet):
    found = fleet("add", "caf\u00e9", "--in-place", "--json", PYTHONIOENCODING="latin-1")
    assert json.loads(found.stdout)["data"]["title"] == "caf\u00e9"


def test_a_json_error_is_one_document_on_stderr(fleet):
    found = fleet("completion", "bahs", "--json")
    assert (found.returncode, found.stdout) == (2, "")
    error = json.loads(found.stderr)["error"]
    assert error["code"] == "bad_input"
    assert error["fix"] == "Did you mean 'bash'?"


@pytest.mark.parametrize("words", [["--help"], ["completion", "bash"], ["completion", "--help"]])
def test_a_reader_that_has_seen_enough_is_no_error(words):
    read, write = os.pipe()
    os.close(read)
    found = subprocess.run(
        [BIN / "fleet", *words], env=PLAIN, stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert (found.returncode, found.stderr) == (128 + signal.SIGPIPE, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [["--help"], ["completion", "bash"]])
def test_a_full_disk_under_the_output_is_said(words):
    with Path("/dev/full").open("w") as full:
        found = subprocess.run(
            [BIN / "fleet", *words],
            env=PLAIN,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert found.returncode == 3
    assert found.stderr.startswith("fleet: the output: No space left on device.\n  Free some space")


def test_closed_streams_are_survived():
    script = f'"{BIN}/fleet" --help <&- >&- 2>&-; echo $?; "{BIN}/fleet" taks 2>&-; echo $?'
    found = subprocess.run(
        ["sh", "-c", script], env=PLAIN, capture_output=True, text=True, check=False
    )
    assert (found.stdout, found.stderr) == ("0\n2\n", "")


def test_colour_only_where_it_is_wanted(fleet):
    assert "\x1b" not in fleet("taks").stderr
    assert fleet("taks", FORCE_COLOR="1").stderr.startswith("\x1b[31mfleet:\x1b[0m ")
    assert "\x1b" not in fleet("taks", FORCE_COLOR="1", NO_COLOR="1").stderr


def test_what_was_typed_cannot_colour_the_terminal(fleet):
    assert "'\\x1b[31mx' is not a command" in fleet("\x1b[31mx").stderr


@pytest.mark.parametrize("name", ["FLEET_DEBUG", "AI_FLEET_DEBUG"])
def test_debug_adds_the_traceback(name, fleet):
    assert "Traceback" not in fleet("taks").stderr
    found = fleet("taks", **{name: "1"})
    assert found.returncode == 2
    assert found.stderr.startswith("Traceback")


def test_a_locale_without_utf8_is_no_error(fleet):
    found = fleet("taks…", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    assert found.returncode == 2
    assert found.stderr.startswith("fleet: 'taks")


def test_help_and_version_touch_nothing(fleet, tmp_path):
    fleet("--help")
    fleet("--version")
    fleet("taks")
    fleet("completion", "bash")
    assert list(tmp_path.iterdir()) == []


def test_help_imports_no_web_framework_no_yaml_no_database(fleet):
    script = "from fleet.cli.main import main; main(['--help'])"
    found = fleet("-X", "importtime", "-c", script, program="python")
    modules = {line.rpartition("|")[2].strip() for line in found.stderr.splitlines()}
    assert "fleet.cli.main" in modules
    heavy = {"click", "yaml", "sqlite3", "json", "typing", "asyncio", "starlette", "uvicorn", "mcp"}
    assert not heavy & {name.partition(".")[0] for name in modules}


def modules_of(fleet, *words: str) -> set[str]:
    """What this command has loaded at its end."""
    script = (
        f"import sys; from fleet.cli.main import main; main({list(words)}); print(*sys.modules)"
    )
    return set(fleet("-c", script, program="python").stdout.splitlines()[-1].split())


def test_a_command_loads_the_client_that_it_needs_and_not_the_other(fleet):
    modules = modules_of(fleet, "tasks", "--json")
    assert "fleet.client.local" in modules
    assert "fleet.client.remote" not in modules


def begin_repository(folder: Path) -> None:
    git = ["git", "-C", folder, "-c", "user.name=A", "-c", "user.email=a@example.com"]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "Start"], check=True)


def test_an_agent_that_needs_no_gateway_is_started_without_the_doctor(fleet, tmp_path):
    begin_repository(tmp_path)
    words = ("create", "x", "--coder", "scripted", "--headless", "-p", "x", "--wait", "60")
    loaded = modules_of(fleet, *words)
    assert "fleet.supervisor.supervisor" in loaded
    slow = {"concurrent.futures", "logging", "tempfile", "socket"}
    ours = {"fleet.adapters.machine.doctor_checks", "fleet.operations.landing.race"}
    assert not (slow | ours) & loaded


@pytest.mark.parametrize(
    ("command", "most"),
    [("tasks --json", 101), ("list", 108), ("show t-1", 117), ("status", 140), ("add Two", 123)],
)
def test_an_everyday_command_loads_no_more_of_ours_than_it_needs(fleet, tmp_path, command, most):
    """Each module is a fifth of a millisecond: import what few commands need where it is used."""
    begin_repository(tmp_path)
    fleet("add", "One", "--prompt", "x")
    loaded = [name for name in modules_of(fleet, *command.split()) if name.startswith("fleet")]
    assert len(loaded) <= most, sorted(loaded)
