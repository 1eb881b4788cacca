"""`fleet reopen`: whatever holds a task is lifted, in one command."""

from __future__ import annotations

import pytest

from tests.e2e.scratch import Scratch


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def test_reopen_lifts_whatever_holds_the_task(scratch):
    task = scratch.add()
    assert scratch("reopen", task) == f"{task} is ready.\n"
    scratch("pause", task)
    assert scratch("reopen", task) == f"{task} may start.\n"
    scratch("bd", "update", task, "--assignee", "bob")
    assert scratch("reopen", task) == f"{task} is unassigned, so it may start.\n"
    scratch("close", task)
    assert scratch("reopen", task) == f"{task} is open again.\n"
    assert scratch.status(task) == "ready"


def test_reopen_takes_the_answer_that_was_written_below_the_question(scratch):
    task = scratch.add()
    scratch("bd", "update", task, "--status", "blocked", "--notes", "QUESTION: Left or right?")
    said = scratch.fails("reopen", task, status=1)
    assert "has no answer to it" in said
    file = scratch.home / "tasks" / task / "artifacts" / "Q&A.md"
    with file.open("a") as out:
        out.write("\n## A:\n\nLeft.\n")
    assert scratch("reopen", task) == f"{task} got your answer.\n"
    answers = [m["text"] for m in scratch.data("show", task)["messages"] if m["kind"] == "answer"]
    assert answers == ["Left."]
    assert scratch.status(task) == "ready"
