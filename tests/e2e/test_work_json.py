"""What programs may rely on: every reporting command prints one document, and its keys stay."""

from __future__ import annotations

import json

import pytest

from tests.e2e.scratch import Scratch

USAGE = {"input", "output", "cached", "context", "cost", "estimated"}
RUN_NOW = {
    *("id", "started_at", "ended_at", "heard_at", "lines", "peak_context", "last", "setup"),
    "branch",
    *("added", "removed", "node", "window"),
    *(f"usage.{key}" for key in USAGE),
}
TASK = {
    *("id", "title", "status", "state", "team", "priority", "labels", "agent", "coder", "model"),
    *("given", "project", "cwd", "created_at", "landing", "landed", "route", "uncommitted"),
    *("parent", "waits_for", "budget", "spent", "paused"),
    *(f"run.{key}" for key in RUN_NOW),
}
RUN = {
    *("id", "state", "coder", "model", "node", "host", "branch", "path", "claimed_at"),
    *("started_at", "ended_at", "ending", "detail", "commit"),
    *(f"usage.{key}" for key in USAGE),
}
SPEC = {
    *("agent", "coder", "model", "priority", "labels", "cwd", "in_place", "base", "branch"),
    *("review", "gate", "assignee", "mode", "quick"),
    *("limits.attempts", "limits.time_limit", "limits.agents", "limits.permissions"),
    "limits.needs",
    *(f"limits.budget.{key}" for key in ("cost", "tokens", "seconds")),
}
MESSAGE = {
    *("id", "task", "author", "kind", "text", "state", "at", "options", "reply_to", "status"),
    *("path", "line"),
}
DETAIL = {
    *("prompt", "author", "parent", "children", "after", "needs", "needed_by", "failures", "why"),
    "updated_at",
    *(f"task.{key}" for key in TASK),
    *(f"spec.{key}" for key in SPEC),
    *(f"runs.{key}" for key in RUN),
    *(f"waits.{key}" for key in ("code", "why", "fix")),
    *(f"messages.{key}" for key in MESSAGE),
}
KEYS = {
    "task": TASK,
    "tasks": TASK,
    "task_detail": DETAIL,
    "message": MESSAGE,
    "question": MESSAGE,
    "questions": MESSAGE,
    "answer": MESSAGE,
    "lines": {"line", "text"},
}


def keys(data) -> set[str]:
    """Every path to a value; items of a list share theirs."""
    if isinstance(data, list):
        return set().union(*map(keys, data))
    if not isinstance(data, dict):
        return set()
    found = set()
    for key, value in data.items():
        if key == "run" and value is None:  # before the first one
            continue
        found |= {f"{key}.{path}" for path in keys(value)} or {key}
    return found


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    """t-1 has failed once and asks; t-2 is done; t-3 waits for t-1."""
    scratch = Scratch(tmp_path_factory.mktemp("json"))
    script = "fail 1 oops\nsay Hello.\nusage 5 1\nask Which?\nsay {answer}"
    scratch.add("日本 …", "--label", "ui", script=script)
    scratch.add("Plain")
    scratch.add("Last", "--after", "1")
    scratch.work()
    scratch("comment", "1", "A note.")
    return scratch


READS = {
    "tasks": "tasks",
    "tasks --all": "tasks",
    "tasks --watch": "tasks",
    "ready": "tasks",
    "show 1": "task_detail",
    "questions": "questions",
    "logs 1": "lines",
    "logs 1 --raw": "lines",
}


@pytest.mark.parametrize("line", READS)
def test_a_report_is_one_document_of_its_kind(line, scratch):
    document = scratch.document(*line.split())
    assert document["kind"] == READS[line]
    assert keys(document["data"]) <= KEYS[document["kind"]]


def test_every_key_is_there_once_there_is_something_to_say(scratch):
    assert keys(scratch.data("tasks", "--all")) == TASK
    assert keys(scratch.data("show", "1")) == DETAIL
    assert keys(scratch.data("questions")) == MESSAGE
    assert keys(scratch.data("logs", "1")) == {"line", "text"}


def test_a_note_about_the_supervisor_is_part_of_the_document(scratch):
    (note,) = scratch.document("tasks")["notes"]
    assert note.startswith("No supervisor is running")
    assert scratch.type("tasks", "--json").stderr == ""


def test_a_change_reports_what_it_changed(tmp_path):
    scratch = Scratch(tmp_path)
    changes = {
        "add One": "task",
        "add Two": "task",
        "pause 1": "task",
        "resume 1": "task",
        "dep add 1 2": "task",
        "dep rm 1 2": "task",
        "comment 1 Note": "message",
        "close 1": "task",
        "retry 1": "task",
        "cancel 1": "task",
    }
    for line, kind in changes.items():
        document = scratch.document(*line.split())
        assert document["kind"] == kind, line
        assert keys(document["data"]) <= KEYS[kind], line
    scratch.ask("2")
    assert keys(scratch.document("answer", "2", "Left.")["data"]) == MESSAGE


def test_an_error_is_one_document_on_stderr(scratch):
    done = scratch.type("show", "t-99", "--json", env={"COLUMNS": "20"})
    assert (done.returncode, done.stdout) == (2, "")
    assert json.loads(done.stderr) == {
        "fleet": 1,
        "error": {
            "code": "not_found",
            "message": "There is no task 't-99'.",
            "fix": "`fleet tasks --all` lists them.",
        },
    }
