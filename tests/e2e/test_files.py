"""A task's files and the supervisor's log, as a person asks for them."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
from contextlib import suppress

import pytest

from tests.e2e.scratch import FLEET, Scratch
from tests.wait import LIMIT, until


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def test_a_task_that_has_run_tells_its_story_in_its_files(scratch):
    task = scratch.add(script="say I use token=abcd1234efgh now.\nsay Done.")
    scratch.work()
    events = [json.loads(line) for line in scratch("task", task, "events").splitlines()]
    assert next(e["text"] for e in events if e["kind"] == "text") == "I use token=[redacted] now."
    assert (events[-1]["kind"], events[-1]["ending"]) == ("run_ended", "succeeded")
    kinds = [json.loads(line)["type"] for line in scratch("task", task, "log").splitlines()]
    assert (kinds[0], kinds[-1]) == ("task.added", "task.settled")
    assert len(kinds) == len(scratch("task", task, "log").splitlines())
    assert scratch("task", task, "stderr").startswith("=== t-1.1 (scripted)")
    assert scratch("task", task, "result") == "Done.\n"
    for what, words in (("plan", "# Plan"), ("knowledge", "# Know"), ("qa", "# Questions")):
        assert scratch("task", task, what).startswith(words)
    assert json.loads((scratch.home / "tasks" / task / "task.json").read_text())["status"] == "done"


def test_before_it_has_run_there_are_the_files_that_can_be(scratch):
    task = scratch.add()
    assert '"type":"task.added"' in scratch("task", task, "log")
    assert scratch("task", task, "plan").startswith("# Plan")
    for what in ("events", "stderr"):
        said = scratch.fails("task", task, what, status=1)
        assert f"fleet: {task} has no " in said
        assert f"`fleet show {task}`" in said
    assert "has not run yet" in scratch.fails("task", task, "result", status=1)


def test_a_question_is_in_the_file_and_so_is_its_answer(scratch):
    task = scratch.add()
    question = scratch.ask(task, "Which database?")
    assert f"## Q: {question}\n\nWhich database?\n" in scratch("task", task, "qa")
    scratch("answer", question, "The small one.")
    assert "The small one." in scratch("task", task, "qa")


def test_json_has_the_text_and_where_it_is(scratch):
    task = scratch.add(script="say Done.")
    scratch.work()
    plan = scratch.document("task", task, "plan")
    assert plan["kind"] == "task_file"
    assert plan["data"]["path"] == str(scratch.home / "tasks/t-1/artifacts/PLAN_AND_STATUS.md")
    assert plan["data"]["text"] == scratch("task", task, "plan")
    result = scratch.data("task", task, "result")
    assert result == {
        "task": task, "what": "result", "run": "t-1.1", "ending": "succeeded", "text": "Done.",
    }  # fmt: skip


def test_the_last_lines_are_the_last_lines(scratch):
    task = scratch.add(script="\n".join(f"say {n}" for n in range(50)))
    scratch.work()
    whole = scratch("task", task, "events").splitlines()
    assert scratch("task", task, "events", "-n", "3").splitlines() == whole[-3:]
    assert scratch("task", task, "events", "-n", "999").splitlines() == whole
    assert scratch("log", "2").splitlines() == scratch("log").splitlines()[-2:]


def test_what_cannot_be_is_refused_with_the_next_step(scratch):
    task = scratch.add()
    assert "There is no task" in scratch.fails("task", "t-9", "log", status=2)
    assert "log" in scratch.fails("task", task, "lgo", status=2)
    assert "cannot be followed" in scratch.fails("task", task, "plan", "--follow", status=2)
    for number in ("0", "-3", "many"):
        scratch.fails("log", number, status=2)


def test_the_help_lists_what_runs_now(scratch, tmp_path):
    assert "Nothing." in scratch("task", "--help")
    assert not scratch.home.exists()
    task = scratch.add("Long work", "--model", "small", script="sleep 30")
    with scratch.supervisor():
        scratch.wait_for(task, "running")
        assert f"{task}  [scripted/small]  Long work" in scratch("task", "--help")
        live = scratch.home / "runs" / f"{task}.1" / "stderr"
        until(live.exists, "its stderr")
        with live.open("a") as file:
            file.write("warning: password=hunter2hunter2\n")
        assert scratch("task", task, "stderr") == "warning: password=[redacted]\n"
    (scratch.home / "fleet.db").write_text("broken")
    assert "Running now:\n  Nothing." in scratch("task", "--help")


def test_a_followed_file_is_shown_as_it_grows_until_the_task_has_ended(scratch):
    task = scratch.add(script="say One.\nsleep 1\nsay Two.")
    following = scratch.start("task", task, "events", "--follow")
    scratch.work()
    said, complaints = following.communicate(timeout=LIMIT)
    assert (following.returncode, complaints) == (0, "")
    found = [json.loads(line) for line in said.splitlines()]
    assert [e["text"] for e in found if e["kind"] == "text"] == ["One.", "Two."]
    assert found[-1]["kind"] == "run_ended"


def test_the_supervisors_log_is_shown_whole_or_followed(scratch):
    done = scratch.type("log")
    assert (done.returncode, done.stdout) == (0, "")
    assert "Start one: fleet run" in done.stderr
    assert not scratch.home.exists()
    scratch.add(script="say Done.")
    scratch.work()
    lines = [json.loads(line) for line in scratch("log").splitlines()]
    assert next(e["type"] for e in lines if "number" in e) == "task.added"
    assert re.fullmatch(r"fleet-\d{4}-\d\d-\d\d\.jsonl", scratch.data("log")["path"].split("/")[-1])
    following = scratch.start("log", "1", "--follow")
    first = following.stdout.readline()
    assert json.loads(first) == lines[-1]
    scratch.add("Another", script="say Done.")
    scratch.work()
    assert "task.added" in following.stdout.readline()
    following.send_signal(signal.SIGINT)
    following.communicate(timeout=LIMIT)
    assert following.returncode == 130


def on_terminal(scratch, *words, width=70) -> list[str]:
    ours, theirs = pty.openpty()
    env = scratch.env | {"COLUMNS": str(width), "TZ": "UTC"}
    subprocess.run([FLEET, *words], cwd=scratch.repo, env=env, stdout=theirs, check=True)
    os.close(theirs)
    said = b""
    with suppress(OSError):  # EIO: that was all
        while more := os.read(ours, 1 << 16):
            said += more
    os.close(ours)
    return said.decode().splitlines()


def test_on_a_terminal_a_record_of_the_log_is_one_line_that_fits(scratch):
    task = scratch.add(script="fail 9 " + "Because " * 30)
    scratch.work()
    newest = scratch.home / "logs" / scratch.data("log")["path"].split("/")[-1]
    with newest.open("a") as file:
        file.write('not JSON\n["nor a record"]\n')
    lines = on_terminal(scratch, "log")
    added = json.loads(scratch("log").splitlines()[0])
    assert lines[0] == f"{added['at'][11:19]} {task:<8} task.added Fix the login"
    ended = next(line for line in lines if "run.ended" in line)
    assert f" {task}.1    run.ended failed Exit status 1. Because" in ended
    assert (len(ended), ended[-1]) == (70, "…")
    assert lines[-2:] == ["not JSON", '["nor a record"]']
    assert on_terminal(scratch, "log", "2") == lines[-2:]
    assert json.loads("".join(on_terminal(scratch, "log", "--json")))["kind"] == "log"


def test_what_an_agent_wrote_cannot_command_the_terminal(scratch):
    task = scratch.add()
    scratch("task", task, "plan")
    (scratch.home / "tasks" / task / "artifacts/PLAN_AND_STATUS.md").write_text(
        "\x1b]0;evil\x07 plan\n"
    )
    assert "\x1b" in scratch("task", task, "plan")  # into a pipe: the very bytes
    ours, theirs = pty.openpty()
    subprocess.run(
        [FLEET, "task", task, "plan"], cwd=scratch.repo, env=scratch.env, stdout=theirs, check=True
    )
    os.close(theirs)
    assert b"\x1b]0" not in os.read(ours, 4096)
    os.close(ours)


def test_an_edit_of_task_json_counts_at_the_next_claim(scratch):
    task = scratch.add(script="say Done.")
    scratch("task", task, "log")
    file = scratch.home / "tasks" / task / "task.json"
    copy = json.loads(file.read_text())
    file.write_text(json.dumps(copy | {"coder": "nobody"}))
    with scratch.supervisor():
        scratch.wait_for(task, "ready")
        file.write_text(json.dumps(copy | {"model": "small"}))
        scratch.wait_for(task, "done")
    assert scratch.data("show", task)["spec"]["model"] == "small"
    copy = json.loads(file.read_text())
    assert (copy["model"], copy["recorded"]["model"]) == ("small", "small")


def test_a_task_is_done_where_its_edited_task_json_says(scratch, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    scratch.git("init", "-q", "-b", "main", cwd=other)
    scratch.git("commit", "-q", "--allow-empty", "-m", "Elsewhere", cwd=other)
    stays, moves = scratch.add(), scratch.add()  # both start in the same step
    scratch("task", moves, "log")
    file = scratch.home / "tasks" / moves / "task.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"cwd": str(other)}))
    scratch.work()
    assert scratch.git("branch", "--list", f"fleet/{moves}", cwd=other).split() == [
        "+",
        f"fleet/{moves}",
    ]
    assert scratch.git("branch", "--list", "fleet/*").split() == ["+", f"fleet/{stays}"]
