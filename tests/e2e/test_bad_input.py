"""Everything that can be typed wrong: one clear sentence and a fix, and nothing is changed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess

import pytest

from tests.e2e.scratch import Scratch
from tests.wait import LIMIT

OPEN, RUNNING, DONE, CANCELLED, ASKING, FAILED = "t-1", "t-2", "t-3", "t-4", "t-5", "t-6"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """A home with a task in every state, a question or two, and some files that are no prompts."""
    scratch = Scratch(tmp_path_factory.mktemp("bad"))
    for title in ("Open", "Running", "Done", "Cancelled", "Asking", "Failed"):
        script = {"Running": "sleep 600", "Failed": "exit 3"}.get(title, "say Hello.")
        scratch.add(title, "--attempts", "1", script=script)
    scratch("pause", OPEN)
    scratch("cancel", CANCELLED)
    scratch.ask(ASKING, "First?")
    scratch.ask(ASKING, "Second?")
    supervisor = scratch.start("run")
    scratch.wait_for(FAILED, "failed")
    scratch.wait_for(DONE, "done")
    scratch.wait_for(RUNNING, "running")
    supervisor.send_signal(signal.SIGINT)
    supervisor.communicate(timeout=LIMIT)
    scratch("comment", OPEN, "A note.")
    (scratch.root / "nul").write_bytes(b"a\0b")
    (scratch.root / "latin").write_bytes(b"caf\xe9")
    (scratch.root / "long").write_text("x" * 1_000_001)
    yield scratch
    scratch("cancel", RUNNING)


def refused(scratch, words, status, said, **given) -> None:
    before = scratch.facts()
    stderr = scratch.fails(*words, status=status, **given)
    assert scratch.facts() == before
    sentence, *fix = stderr.splitlines()
    assert sentence.startswith("fleet: "), stderr
    assert said in sentence, stderr
    assert sentence.endswith((".", "?")), stderr
    assert fix, f"there is no fix: {stderr}"
    assert all(line.startswith("  ") for line in fix), stderr


NAMES_A_TASK = [
    *("show", "cancel", "retry", "close", "pause", "resume", "logs"),
    *("comment {} x", "answer {} x", "dep add {} t-1", "dep add t-1 {}", "dep rm {} t-1"),
    *("dep rm t-1 {}", "ask x --timeout 0 --task {}", "add x --after {}"),
]


@pytest.mark.parametrize("line", NAMES_A_TASK)
@pytest.mark.parametrize("name", ["t-99", "nonsense", b"t-\xff"])
def test_a_task_that_is_not_there(scratch, line, name):
    words = (line if "{}" in line else f"{line} {{}}").split()
    refused(scratch, [name if word == "{}" else word for word in words], 2, "There is no task")


@pytest.mark.parametrize("line", NAMES_A_TASK)
def test_a_task_without_a_name(scratch, line):
    words = (line if "{}" in line else f"{line} {{}}").split()
    said = "No task was named for the question." if line.startswith("ask") else "No task was named."
    refused(scratch, ["" if word == "{}" else word for word in words], 2, said)


ADD = {
    "an empty title": ([""], "The title is missing."),
    "a title of blanks": (["  \n "], "The title is empty."),
    "a title of 300 characters": (["x" * 300], "The title has 300 characters; the limit is 200"),
    "a title that is not UTF-8": ([b"caf\xe9"], "The title is not valid text."),
    "a prompt that is not UTF-8": (["x", "-p", b"caf\xe9"], "The prompt is not valid text."),
    "two prompts": (
        ["x", "-p", "a", "-d", "b"],
        "--prompt and --description cannot be used together.",
    ),
    "three prompts": (
        ["x", "-p", "a", "-d", "b", "--prompt-file", "-"],
        "--prompt and --prompt-file and --description cannot be used together.",
    ),
    "a prompt file that is not there": (
        ["x", "--prompt-file", "nowhere"],
        "The prompt cannot be read from nowhere: No such file or directory.",
    ),
    "a prompt file that is a directory": (["x", "--prompt-file", "."], "Is a directory."),
    "a prompt file with NUL": (["x", "--prompt-file", "../nul"], "The prompt is not valid text."),
    "a prompt file that is not UTF-8": (["x", "--prompt-file", "../latin"], "is not UTF-8 text."),
    "a prompt file that is too long": (["x", "--prompt-file", "../long"], "the limit is 1000000"),
    "a priority beyond the last": (["x", "--priority", "5"], "Priority 5 is not between 0"),
    "a priority before the first": (["x", "--priority", "-1"], "Priority -1 is not between 0"),
    "a priority that is a word": (["x", "--priority", "high"], "'high' is not a whole number."),
    "an agent that is not there": (["x", "-a", "claud"], "There is no agent 'claud'."),
    "a coder that is not there": (["x", "--coder", "codx"], "There is no coder 'codx'."),
    "a coder without a command": (["x", "--coder", "command"], "has no command to run."),
    "a cwd that is not there": (["x", "--cwd", "nowhere"], "nowhere is not a directory."),
    "a cwd that is a file": (["x", "--cwd", "../nul"], "nul is not a directory."),
    "a cwd of somebody unknown": (["x", "--cwd", "~nobody-here/x"], "is not a directory."),
    "a cwd that is far too long": (["x", "--cwd", "x" * 5000], "cannot be used: File name too"),
    "no attempts": (["x", "--attempts", "0"], "0 is not between 1 and 100."),
    "a time limit that is none": (["x", "--time-limit", "-5"], "-5 is less than 1."),
    "an empty label": (["x", "--label", ""], "The label is empty."),
    "a branch that is none": (["x", "--branch", "a..b"], "'a..b' is not a valid branch name."),
    "a branch that is an option": (["x", "--branch=--force"], "is not a valid branch name."),
    "a base that is an option": (
        ["x", "--base=--force"],
        "'--force' is not a valid name of a commit.",
    ),
    "a wait for a cancelled task": (["x", "--after", CANCELLED], "t-4 is cancelled, so nothing"),
    "a title too many": (["Fix", "the", "login"], "unexpected argument"),
    "no title": ([], "The title is missing."),
    "an option that is not there": (["x", "--prio", "1"], "there is no option '--prio'."),
    "a config that is not there": (["x", "--config", "nowhere.yaml"], "nowhere.yaml"),
}


@pytest.mark.parametrize("what", ADD)
def test_add_with(scratch, what):
    words, said = ADD[what]
    refused(scratch, ["add", *words], 1 if "cancelled" in what else 2, said)


CALLS = {
    "tasks --limit 0": (2, "0 is not between"),
    "tasks --limit -3": (2, "-3 is not between"),
    "tasks --limit many": (2, "'many' is not a whole number."),
    "tasks --status runing": (2, "'runing' is not a state of a task."),
    "tasks one two": (2, "unexpected argument: two."),
    "tasks t-1": (2, "'t-1' is a task, not a team."),
    "ready --limit 0": (2, "0 is not between"),
    "questions --limit 0": (2, "0 is not between"),
    f"cancel {DONE}": (1, "t-3 is already done."),
    f"cancel {CANCELLED}": (1, "t-4 is already cancelled."),
    f"retry {OPEN}": (1, "t-1 is open, so it needs no retry."),
    f"retry {RUNNING}": (1, "t-2 is running, so it needs no retry."),
    f"close {RUNNING}": (1, "t-2 is running."),
    f"close {DONE}": (1, "t-3 is already done."),
    f"pause {DONE}": (1, "t-3 is done, so it can be neither paused nor resumed."),
    f"resume {CANCELLED}": (1, "t-4 is cancelled, so it can be neither paused nor resumed."),
    f"dep add {OPEN} {OPEN}": (2, "t-1 cannot wait for itself."),
    f"dep add {OPEN} {CANCELLED}": (1, "t-4 is cancelled, so nothing can wait for it."),
    f"dep add {RUNNING} {OPEN}": (1, "t-2 is running: only an open task can wait."),
    f"dep rm {OPEN} {DONE}": (1, "t-1 does not wait for t-3."),
    "dep": (2, "the command is missing."),
    "dep ad": (2, "'ad' is not a command."),
    "dep add": (2, "the argument TASK is missing."),
    f"dep add {OPEN}": (2, "the argument NEEDS is missing."),
    f"logs {OPEN}": (1, "t-1 has not run yet."),
    f"logs {DONE}.7": (2, "t-3 has no run 7."),
    f"logs {DONE} -n 0": (2, "0 is less than 1."),
    "logs": (2, "the argument TASK is missing."),
    f"answer {OPEN} yes": (1, "t-1 has asked nothing."),
    f"answer {ASKING} yes": (2, "t-5 asks 2 questions: m-1 (First?); m-2 (Second?)."),
    f"answer {ASKING}": (2, "the argument TEXT is missing."),
    "answer m-99 yes": (2, "There is no question 'm-99'."),
    "answer m-3 yes": (1, "m-3 is not a question."),
    "ask Why?": (2, "No task was named for the question."),
    f"ask Why? --task {DONE}": (1, "t-3 is done: there is nothing to ask about."),
    f"ask Why? --task {OPEN} --park": (2, "--park works only inside a run, for its own task."),
    f"ask Why? --task {OPEN} --timeout -1": (2, "-1.0 is less than 0."),
    f"ask Why? --task {OPEN} --timeout soon": (2, "'soon' is not a number."),
    "ask": (2, "the argument QUESTION is missing."),
    "comment t-1": (2, "the argument TEXT is missing."),
    "show": (2, "the argument TASK is missing."),
    "run --coder codx": (2, "There is no coder 'codx'."),
    "run --max 0": (2, "0 is not between"),
    "run now": (2, "run: 'now' is not a command."),
    "demo now": (2, "unexpected argument: now."),
    "demo --kep": (2, "there is no option '--kep'."),
    f"edit {OPEN} --priority 9": (2, "Priority 9 is not between 0"),
    f"edit {OPEN} --after {OPEN}": (2, "t-1 cannot wait for itself."),
    f"edit {OPEN} --agent nobody": (2, "There is no agent 'nobody'."),
    f"edit {OPEN} --base nowhere": (2, "There is no commit 'nowhere'"),
    f"edit {OPEN} --budget -3": (2, "'-3' is not a budget."),
    f"edit {RUNNING} --gate true": (1, "t-2 is running, and its run keeps the gate"),
    "wait nothing-*": (2, "No task here matches 'nothing-*'."),
    f"wait {OPEN} --timeout -1": (2, "-1.0 is less than 0."),
    f"cd {OPEN}": (1, "t-1 has no directory of its own yet"),
    f"open {DONE} --editor nowhere": (2, "The editor 'nowhere' is not installed."),
    f"approve {DONE}": (1, "t-3 is not running."),
    f"deny {DONE}": (1, "t-3 is not running."),
    f"interrupt {DONE}": (1, "t-3 is not running."),
    "add --file nowhere.yaml": (2, "The tasks cannot be read from nowhere.yaml"),
    "tasks --tree --export": (2, "cannot be used together."),
    "search x --limit 0": (2, "0 is not between"),
    "search x --since then": (2, "'then' is not a time."),
    f"fork {RUNNING} other": (1, "Fleet cannot continue a copy of a conversation of scripted."),
    "stats --day --week": (2, "cannot be used together."),
    f"review {OPEN}": (1, "t-1 has not begun yet"),
    f"review {DONE} --accept --send-back x": (2, "cannot be used together."),
    f"review {DONE} --agent nobody": (2, "There is no agent 'nobody'."),
    f"comment {DONE} x --line 3": (2, "--line needs --file."),
    f"send-back {OPEN} x": (1, "t-1 is open: only finished work can be sent back."),
    f"send-back {DONE}": (2, "There is nothing to tell the agent of t-3."),
    f"diff {DONE} --path nowhere": (1, "t-3 has not changed nowhere."),
    f"land {FAILED}": (1, "t-6 failed"),
    f"land {OPEN}": (1, "t-1 is not done yet."),
    f"land --all {DONE}": (2, "Tasks cannot be named with --all"),
    f"land {DONE} --as bogus": (2, "'bogus' is not one of"),
    f"land {DONE} --force": (2, "--force needs a reason."),
    f"land {DONE} --onto nowhere": (2, "There is no branch 'nowhere'"),
    "land show l-9": (2, "There is no landing 'l-9'."),
    f"land move {DONE}": (2, "t-3 was never queued to land."),
    f"land undo {DONE}": (2, "t-3 was never queued to land."),
    "land pause nowhere": (2, "No work lands on nowhere yet."),
    "best 1 x": (2, "1 is not between"),
    "best 3 x": (2, "No command to test the solutions is set."),
    "best 3 x --test true --agents nobody": (2, "There is no agent 'nobody'."),
    f"pick {DONE}": (2, "t-3 is not a batch of tasks."),
    "ui --port many": (2, "'many' is not a whole number."),
    "host add": (2, "Name the machine, as ssh knows it."),
    "host show nowhere": (2, "There is no host 'nowhere'."),
    "host drain nowhere": (2, "There is no host 'nowhere'."),
    f"archive {DONE}": (2, "t-3 looks like a task"),
    f"backup {DONE}": (2, "t-3 looks like a task"),
    "archive x --days -1": (2, "-1.0 is less than 0."),
    "gc --days many": (2, "'many' is not a number."),
    "eval": (2, "No nodes are declared here."),
    "discover --scan nowhere": (2, "'nowhere' is not a network."),
    "discover --scan ''": (2, "'' is not a network."),
    "config get nothing": (2, "There is no setting 'nothing'."),
    "config unset nothing": (2, "There is no setting 'nothing'."),
    "config set coder=nothing": (2, "'nothing' is not a valid value."),
    "config set coder": (2, "'coder' is not a NAME=VALUE pair."),
    "inbox now": (2, "'now' is not a command."),
    "view remove nothing": (2, "There is no view 'nothing'."),
    "history t-99": (2, "There is no task 't-99'."),
    "gates t-99": (2, "There is no task 't-99'."),
    "budgets now": (2, "unexpected argument: now."),
    "whoami now": (2, "unexpected argument: now."),
    "top --now": (2, "there is no option '--now'."),
    "unsend m-99": (2, "There is no message 'm-99'"),
    "swarm-create a many": (2, "swarm-create: MAX: 'many' is not a whole number."),
    "mail read m-99": (2, "There is no mail 'm-99'."),
    "checkpoint accept m-99": (2, "There is no checkpoint 'm-99'."),
    "memory recall nothing": (2, "has no memory under 'nothing'."),
    "blackboard-read m-99": (2, "There is no post 'm-99'."),
    "kept restore nothing": (2, "Nothing is kept as 'nothing'."),
    "show t-1 --config nowhere.yaml": (2, "nowhere.yaml"),
}


@pytest.mark.parametrize("line", CALLS)
def test_the_line(scratch, line):
    status, said = CALLS[line]
    refused(scratch, line.split(), status, said)


EMPTY = {
    "a question": (["ask", " ", "--task", OPEN], "The question is empty."),
    "an option": (["ask", "x", "--task", OPEN, "--option", ""], "The option is empty."),
    "an answer": (["answer", "m-1", " "], "The answer is empty."),
    "a comment": (["comment", OPEN, "\n"], "The comment is empty."),
    "a reason": (["close", OPEN, "--reason", ""], "The reason is empty."),
}
NOT_TEXT = {
    "a question": ["ask", b"\xff", "--task", OPEN],
    "an option": ["ask", "x", "--task", OPEN, "--option", b"\xff"],
    "an answer": ["answer", "m-1", b"\xff"],
    "a comment": ["comment", OPEN, b"\xff"],
    "a reason": ["close", OPEN, "--reason", b"\xff"],
    "a label": ["add", "x", "--label", b"\xff"],
    "a model": ["add", "x", "--model", b"\xff"],
    "a team": ["add", "x", "--team", b"\xff"],
}


@pytest.mark.parametrize("what", EMPTY)
def test_there_is_nothing_in(scratch, what):
    words, said = EMPTY[what]
    refused(scratch, words, 2, said)


@pytest.mark.parametrize("what", NOT_TEXT)
def test_there_are_bytes_that_are_no_text_in(scratch, what):
    refused(scratch, NOT_TEXT[what], 2, "is not valid text.")


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (["add", "x", "-a", "claud"], "Did you mean 'claude'?"),
        (["add", "x", "--coder", "codx"], "Did you mean 'codex'?"),
        (["run", "--coder", "codx"], "Did you mean 'codex'?"),
        (["tasks", "--status", "runing"], "Did you mean 'running'?"),
        (["dep", "ad"], "Did you mean 'add'?"),
        (["demo", "--kep"], "Did you mean '--keep'?"),
        (["close", RUNNING], "fleet cancel t-2"),
        (["resume", DONE], "fleet retry t-3"),
        (["logs", OPEN], "fleet show t-1"),
        (["answer", ASKING, "yes"], "fleet answer m-1 TEXT"),
        (["fork", RUNNING, "other"], "fleet create BRANCH --base fleet/t-2"),
        (["diff", DONE, "--path", "nowhere"], "fleet diff t-3 --stat"),
        (["archive", DONE], "fleet archive old.jsonl.gz"),
        (["mail", "read", "m-99"], "`fleet mail list`"),
        (["checkpoint", "accept", "m-99"], "`fleet checkpoints`"),
        (["memory", "recall", "nothing"], "`fleet memory search WORD`"),
    ],
)
def test_the_fix_is_the_one_that_helps(scratch, words, fix):
    done = scratch.type(*words)
    assert fix in done.stderr


def test_a_second_answer(tmp_path):
    scratch = Scratch(tmp_path)
    question = scratch.ask(scratch.add())
    scratch("answer", question, "Left.")
    refused(scratch, ["answer", question, "Right."], 1, "m-1 already has an answer.")
    refused(scratch, ["answer", "t-1", "Right."], 1, "t-1 has no open question any more.")


def test_standard_input_that_is_no_text(scratch):
    words = ["add", "x", "--prompt-file", "-"]
    refused(scratch, words, 2, "standard input is not UTF-8 text.", stdin=b"\xff")
    refused(scratch, words, 2, "The prompt is not valid text.", stdin=b"a\0b")


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


WORLDS = {
    "a home that is relative": ({"FLEET_HOME": "here"}, 2, "FLEET_HOME is 'here'"),
    "a home that is a file": ({"FLEET_HOME": "{root}/nul"}, 3, "{root}/nul"),
    "a home below a file": ({"FLEET_HOME": "{root}/nul/home"}, 3, "{root}/nul"),
    "a store of no kind": ({"FLEET_STORE_URL": "mysql://x/y"}, 2, "mysql"),
    "a store that is nonsense": ({"FLEET_STORE_URL": "nonsense"}, 2, "nonsense"),
    "a store that is a directory": ({"FLEET_STORE_URL": "sqlite:///{root}"}, 3, "{root}"),
    "a store that is damaged": ({"FLEET_STORE_URL": "sqlite:///{root}/long"}, 3, "{root}/long"),
    "a PostgreSQL that is down": (
        {"FLEET_STORE_URL": f"postgresql://ada:secret@127.0.0.1:{closed_port()}/fleet"},
        3,
        "cannot be reached",
    ),
    "a token that is wrong": ({"FLEET_RUN_ID": "t-2.1", "FLEET_RUN_TOKEN": "x"}, 1, "token"),
    "a run without a token": ({"FLEET_RUN_ID": "t-2.1"}, 1, "token"),
    "a run that is none": ({"FLEET_RUN_ID": "nonsense", "FLEET_RUN_TOKEN": "x"}, 1, "token"),
}


@pytest.mark.parametrize("command", [["tasks"], ["add", "x"], ["show", "t-1"], ["run", "--once"]])
@pytest.mark.parametrize("what", WORLDS)
def test_in_a_world_with(scratch, what, command):
    env, status, said = WORLDS[what]
    if what.startswith(("a token", "a run")) and command[0] == "run":
        pytest.skip("the supervisor acts for nobody")
    env = {key: value.format(root=scratch.root) for key, value in env.items()}
    before = scratch.facts()
    stderr = scratch.fails(*command, status=status, env=env)
    assert stderr.startswith("fleet: "), stderr
    assert said.format(root=scratch.root) in stderr, stderr
    assert "secret" not in stderr
    assert scratch.facts() == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_home_that_may_not_be_written(tmp_path):
    scratch = Scratch(tmp_path)
    scratch.home.mkdir(mode=0o500)
    stderr = scratch.fails("add", "x", status=3)
    assert str(scratch.home) in stderr


def test_a_damaged_database_is_copied_aside_and_left_as_it_is(tmp_path):
    scratch = Scratch(tmp_path)
    scratch.add()
    file = scratch.home / "fleet.db"
    for beside in scratch.home.glob("fleet.db-*"):
        beside.unlink()
    file.write_bytes(b"This was a database." * 1000)
    stderr = scratch.fails("tasks", status=3)
    assert "damaged" in stderr
    (copy,) = scratch.home.glob("fleet.db.damaged-*")
    assert copy.read_bytes() == file.read_bytes() == b"This was a database." * 1000


def test_a_run_that_is_over_is_refused(tmp_path):
    scratch = Scratch(tmp_path)
    task = scratch.add(script="run env\nsay Done.")
    scratch.work()
    raw = scratch("logs", task, "--raw").splitlines()
    line = next(line for line in raw if "FLEET_RUN_TOKEN" in line)
    said = dict(w.split("=", 1) for w in json.loads(line)["text"].splitlines() if "=" in w)
    inside = {key: said[key] for key in ("FLEET_RUN_ID", "FLEET_RUN_TOKEN")}
    for words in (["tasks"], ["comment", task, "x"], ["ask", "Why?", "--timeout", "0"]):
        refused(
            scratch, words, 1, f"{task}.1 has ended, so its token is no longer valid.", env=inside
        )


def test_a_directory_that_is_gone(tmp_path):
    scratch = Scratch(tmp_path)
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {gone} && rmdir {gone} && exec fleet add x"
    done = subprocess.run(
        ["sh", "-c", script], env=scratch.env, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("fleet: The current directory no longer exists.\n  ")
