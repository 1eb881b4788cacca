"""Asking and answering, and reading what a run said."""

from __future__ import annotations

import json
import re
import signal

import pytest

from tests.e2e.scratch import Scratch
from tests.wait import LIMIT, until

SCRIPT = "say One.\nthink Two.\nwrite a.txt x\nusage 10 2\nask Which licence?\nsay It is {answer}."


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def test_whoever_asks_waits_and_hears_the_answer(scratch):
    task = scratch.add()
    asker = scratch.start("ask", "Which way?", "--task", task, "--option", "left")
    until(lambda: scratch.status(task) == "asking", "the question")
    assert re.match(r"t-1 waits until m-1 is answered: fleet answer m-1", asker.stderr.readline())
    assert scratch("answer", task, "go", "right") == f"Answered m-1 of {task}: go right\n"
    out, _ = asker.communicate(timeout=LIMIT)
    assert (asker.returncode, out) == (0, "go right\n")
    assert scratch.status(task) == "ready"


def test_one_who_does_not_want_to_wait_longer_is_told_how_to_go_on(scratch):
    task = scratch.add()
    said = scratch.fails("ask", "Which way?", "--task", task, "--timeout", "0.2", status=3)
    assert said.endswith("fleet: m-1 has no answer yet.\n  It stays open: fleet answer m-1 TEXT\n")
    shown = scratch("questions")
    assert re.search(r"m-1 +t-1 +(now|\ds ago) +Which way\? +-", shown)


def test_ctrl_c_ends_the_waiting_and_not_the_question(scratch):
    task = scratch.add()
    asker = scratch.start("ask", "Which way?", "--task", task)
    until(lambda: scratch.status(task) == "asking", "the question")
    asker.send_signal(signal.SIGINT)
    out, _ = asker.communicate(timeout=LIMIT)
    assert (asker.returncode, out) == (130, "")
    assert len(scratch.data("questions")) == 1


def test_one_whose_task_is_cancelled_does_not_wait_for_ever(scratch):
    task = scratch.add()
    asker = scratch.start("ask", "Which way?", "--task", task)
    until(lambda: scratch.status(task) == "asking", "the question")
    scratch("cancel", task)
    _, said = asker.communicate(timeout=LIMIT)
    assert asker.returncode == 1
    assert f"{task} is cancelled, and m-1 has no answer." in said


def test_a_question_is_answered_by_its_id_and_an_option_by_its_number(scratch):
    task = scratch.add()
    first = scratch.ask(task, "First?", "--option", "yes", "--option", "no")
    second = scratch.ask(task, "Second?")
    said = scratch.fails("answer", task, "yes", status=2)
    assert f"{task} asks 2 questions: {first} (First?); {second} (Second?)." in said
    assert "1) yes  2) no" in scratch("questions")
    assert "has no option 3: 1) yes  2) no" in scratch.fails("answer", first, "3", status=2)
    assert scratch("answer", first, "2") == f"Answered {first} of {task}: no\n"
    assert scratch("answer", task, "2") == f"Answered {second} of {task}: 2\n"
    assert scratch("questions") == "No open questions.\n"


def test_of_two_who_answer_at_once_one_is_heard(scratch):
    question = scratch.ask(scratch.add())
    going = [scratch.start("answer", question, f"answer {n}") for n in range(4)]
    said = [process.communicate(timeout=LIMIT) for process in going]
    assert sorted(p.returncode for p in going) == [0, 1, 1, 1], said
    assert sum("already has an answer" in err for _, err in said) == 3


def test_a_run_parks_on_its_question_and_goes_on_with_the_answer(scratch):
    task = scratch.add(script=SCRIPT)
    scratch.work()
    assert scratch.status(task) == "asking"
    assert scratch.data("questions")[0]["author"] == f"{task}.1"
    scratch("answer", task, "MIT")
    scratch.work()
    found = scratch.data("show", task)
    assert [run["ending"] for run in found["runs"]] == ["asked", "succeeded"]
    assert scratch("logs", task) == "It is MIT.\n[result] Done.\n"


def test_inside_a_run_a_command_speaks_for_the_run(scratch):
    lines = ["run fleet comment '' Halfway.", "run fleet show ''", "run fleet cancel 1"]
    task = scratch.add(script="\n".join(lines))
    scratch.work()
    note = scratch.data("show", task)["messages"][0]
    assert (note["author"], note["text"]) == (f"{task}.1", "Halfway.")
    said = scratch("logs", task)
    assert "status running" in re.sub(r" +", " ", said)
    assert f"{task}.1 is a worker, and may not assign." in said
    assert scratch.status(task) == "done"


def test_logs_show_the_last_lines_of_the_newest_run_or_of_the_one_named(scratch):
    task = scratch.add(script=f"fail 1 oops\n{SCRIPT}\n")
    scratch.work()
    scratch("answer", task, "MIT")
    scratch.work()
    assert scratch("logs", task, "-n", "1") == "[result] Done.\n"
    second = "One.\n[thinking] Two.\n[tool] write a.txt\n[tool_result] write\n"
    assert scratch("logs", f"{task}.2") == f"{second}[result] Which licence?\n"
    assert scratch("logs", "1.1") == ""
    raw = scratch("logs", f"{task}.2", "--raw", "-n", "2").splitlines()
    assert [json.loads(line)["kind"] for line in raw] == ["usage", "result"]


def test_logs_follow_a_run_until_it_ends(scratch):
    task = scratch.add(script="say First.\nsleep 1\nlines 3\nsay Last.")
    with scratch.supervisor():
        scratch.wait_for(task, "running", "done")
        with scratch.start("logs", "-f", task) as going:
            assert going.stdout.readline() == "First.\n"
            rest = going.stdout.readlines()  # `communicate` passes over what is in its buffer
            said = going.stderr.read()
    assert [line.rstrip() for line in rest] == [
        "line 1",
        "line 2",
        "line 3",
        "Last.",
        "[result] Done.",
    ]
    assert (going.returncode, said) == (0, "")


def test_logs_that_are_followed_as_json_are_one_document_a_line(scratch):
    task = scratch.add(script="say First.\nsay Last.")
    scratch.work()
    lines = [json.loads(line) for line in scratch("logs", "-f", task, "--json").splitlines()]
    assert {line["kind"] for line in lines} == {"line"}
    texts = [line["data"]["text"] for line in lines]
    assert texts == [None, None, "First.", "Last.", "[result] Done."]


def test_logs_of_a_long_run_are_read_to_the_end(scratch):
    task = scratch.add(script="lines 20000\nsay Last.")
    scratch.work()
    assert scratch("logs", task, "-n", "3") == "line 20000\nLast.\n[result] Done.\n"
