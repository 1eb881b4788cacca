import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.cli.main import COMMANDS, COMPLETE
from fleet.cli.root import root
from fleet.cli.terminal.completion import PROGRAMS, SCRIPTS
from fleet.cli.terminal.frame import run
from tests.e2e.scratch import Scratch

FLEET = str(Path(sys.executable).with_name("fleet"))


def answer(line, shell="bash"):
    words = line.split(" ")
    env = os.environ | {
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        COMPLETE: f"{shell}_complete",
    }
    found = subprocess.run([FLEET], env=env, capture_output=True, text=True, check=False)
    assert found.stderr == ""
    return found.stdout.splitlines()


def test_commands_are_completed_from_the_table():
    assert set(answer("fleet ")) >= {f"plain,{name}" for name in COMMANDS}
    assert answer("fleet comp") == ["plain,completion"]


def test_options_and_choices_are_completed():
    assert answer("fleet completion --j") == ["plain,--json"]
    assert answer("fleet completion z") == ["plain,zsh"]


def test_tasks_are_completed_and_a_tab_makes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("FLEET_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert answer("fleet show t") == [""]
    assert list(tmp_path.iterdir()) == []
    subprocess.run([FLEET, "add", "Fix the login", "--in-place"], check=True, capture_output=True)
    assert answer("fleet show t") == ["plain,t-1"]
    assert answer("fleet show t", shell="zsh") == ["plain", "t-1", "Fix the login"]
    assert answer("fleet show x") == [""]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fleet add x --coder op", ["opencode"]),
        ("fleet add x --agent re", ["reviewer"]),
        ("fleet add x --agent co", ["codex", "command"]),
        ("fleet add x --after t", ["t-1"]),
        ("fleet tasks --status po", ["postponed"]),
        ("fleet bd list --status def", ["deferred"]),
        ("fleet bd update t-1 -s clo", ["closed"]),
        ("fleet bd create x --coder ai", ["aider"]),
        ("fleet run --coder ge", ["gemini"]),
        ("fleet coders mi", ["mine"]),
        ("fleet config set max_c", ["max_concurrent="]),
        ("fleet config set coder = co", ["codex", "command"]),
        ("fleet config set coder=co", ["coder=codex", "coder=command"]),
        ("fleet config set land.push =", ["true", "false"]),
    ],
)
def test_the_values_of_options_are_completed(line, words, tmp_path, monkeypatch):
    monkeypatch.setenv("FLEET_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    reviewer = "agents:\n  reviewer:\n    coder: claude\n"
    mine = "coders:\n  mine:\n    command: [mine]\n"
    (tmp_path / "fleet.yaml").write_text(reviewer + mine)
    if "--after" in line:
        subprocess.run(
            [FLEET, "add", "Fix the login", "--in-place"], check=True, capture_output=True
        )
    assert answer(line) == [f"plain,{word}" for word in words]


def test_a_command_is_offered_the_tasks_that_it_can_take(tmp_path, monkeypatch):
    scratch = Scratch(tmp_path)
    for prompt in ("exit 3", "say hi", "ask Which licence?"):
        scratch("add", prompt, "--attempts=1", "--branch", f"b-{prompt.split()[0]}")
    scratch("run", "--once")
    scratch("add", "Later")
    scratch("pause", "t-4")
    scratch("create", "at-work", "--headless", "-p", "sleep 60")
    for name, value in scratch.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(scratch.repo)

    def offered(line):
        return [item.removeprefix("plain,") for item in answer(line) if item]

    assert offered("fleet retry ") == ["t-2", "t-1"]
    assert offered("fleet merge ") == ["t-2"]
    assert offered("fleet resume ") == ["t-4", "t-3"]
    assert offered("fleet cancel t-1 ") == ["t-5", "t-4", "t-3", "t-1"]
    assert offered("fleet answer ") == ["t-3"]
    assert offered("fleet attach ") == ["at-work", "t-5"]
    assert offered("fleet attach a") == ["at-work"]
    assert {"t-2", "list", "drop"} <= set(offered("fleet land "))
    assert "t-2" not in offered("fleet land --")
    assert offered("fleet show ") == ["t-5", "t-4", "t-3", "t-1", "t-2"]
    scratch("kill", "*", "--force")
    assert offered("fleet kept drop ") == []


def test_what_brings_work_home_is_offered_only_what_it_can_take(tmp_path, monkeypatch):
    scratch = Scratch(tmp_path)
    for name in ("one", "two", "three"):
        scratch("add", name, "--prompt", f"write {name}.txt x\ncommit It")
    scratch("run", "--once")
    scratch("land", "t-1", "--now")
    scratch("land", "t-2")
    for name, value in scratch.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(scratch.repo)

    def offered(line):
        return {item.removeprefix("plain,") for item in answer(line) if item}

    assert offered("fleet review ") == offered("fleet land add ") == {"t-3"}
    assert {"t-3", "undo"} <= offered("fleet land ")
    assert not {"t-1", "t-2"} & offered("fleet land ")
    assert offered("fleet land drop ") == {"l-2", "t-2"}
    assert offered("fleet land undo ") == {"t-1"}


def test_zsh_sees_what_a_command_does():
    assert "Print a shell's completion script." in answer("fleet comp", shell="zsh")


def test_a_tab_never_shows_an_error():
    answer("fleet no-such-command ")
    answer("fleet completion --no-such-option ")
    assert answer("fleet completion ", shell="nonsense") == []


@pytest.mark.parametrize("shell", SCRIPTS)
def test_the_script_serves_every_name_of_the_program(shell, capsys):
    assert run(root, ["completion", shell]) == 0
    script = capsys.readouterr().out
    assert PROGRAMS in script
    assert f"{COMPLETE}={shell}_complete" in script


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_with_the_script():
    script = """
    eval "$("$0" completion bash)"
    COMP_WORDS=(fleet completion f) COMP_CWORD=2
    _fleet_completion "$0"
    echo "${COMPREPLY[@]}"
    """
    found = subprocess.run(
        ["bash", "-c", script, FLEET], capture_output=True, text=True, check=True
    )
    assert (found.stdout, found.stderr) == ("fish\n", "")
