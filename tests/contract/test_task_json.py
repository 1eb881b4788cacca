"""`task.json`: a copy, whose edits of cwd, coder and model count at the next claim."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest
from folders import Desk

from fleet.domain.errors import BadInput
from fleet.ports import Put


@pytest.fixture
def desk(tmp_path):
    made = Desk(tmp_path / "home")
    made.files.refresh("t-1")
    return made


def edit(desk, **changes):
    path = desk.path("task.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_it_says_what_the_store_knows(desk):
    found = json.loads(desk.path("task.json").read_text())
    assert found == {
        "format": 1,
        "id": "t-1",
        "title": "Fix the login",
        "description": "Do it.",
        "status": "open",
        "cwd": str(desk.home),
        "coder": "claude",
        "model": "opus",
        "agent": None,
        "priority": 2,
        "labels": [],
        "depends_on": ["t-0"],
        "parent": None,
        "project": str(desk.home),
        "team": "local",
        "author": "ada",
        "created_at": "2027-01-15T08:00:00.000000Z",
        "run": None,
        "recorded": {"cwd": str(desk.home), "coder": "claude", "model": "opus"},
    }


def test_its_status_follows_the_task(desk):
    run = desk.run()
    desk.files.begin(desk.task(), run)
    assert json.loads(desk.path("task.json").read_text())["status"] == "running"
    task = replace(desk.task(), state="done")
    desk.files.note(desk.commit(Put(task), event="task.settled"))
    assert json.loads(desk.path("task.json").read_text())["status"] == "done"


def test_what_nobody_edited_changes_nothing(desk):
    spec = desk.task().spec
    assert desk.files.edited(desk.task()) == spec
    newer = replace(desk.task(), spec=replace(spec, model="haiku"))  # by a command, meanwhile
    assert desk.files.edited(newer) == newer.spec
    desk.path("task.json").unlink()
    assert desk.files.edited(desk.task()) == spec
    desk.path("task.json").write_text("")  # as a power cut may leave it
    assert desk.files.edited(desk.task()) == spec


@pytest.mark.parametrize(
    ("changes", "coder", "model"),
    [
        ({"model": "sonnet"}, "claude", "sonnet"),
        ({"coder": "scripted", "model": None}, "scripted", ""),
        ({"coder": ""}, "", "opus"),
        ({"title": "Something else", "priority": 0}, "claude", "opus"),
    ],
)
def test_an_edit_of_coder_or_model_is_taken_in(desk, changes, coder, model):
    edit(desk, **changes)
    spec = desk.files.edited(desk.task())
    assert (spec.coder, spec.model) == (coder, model)
    assert replace(spec, coder="claude", model="opus") == desk.task().spec


def test_a_file_with_a_cwd_alone_is_an_edit_of_that(desk, tmp_path):
    desk.path("task.json").write_text(json.dumps({"cwd": str(tmp_path)}))
    assert desk.files.edited(desk.task()) == replace(desk.task().spec, cwd=str(tmp_path))


def test_an_edit_that_was_taken_in_is_written_down_and_counts_once(desk):
    edit(desk, model="sonnet")
    spec = desk.files.edited(desk.task())
    desk.commit(Put(replace(desk.task(), spec=spec)))
    desk.files.begin(desk.task(), desk.run())
    desk.commit(Put(replace(desk.task(), spec=replace(spec, model="haiku"))))
    assert desk.files.edited(desk.task()).model == "haiku"
    assert desk.another().edited(desk.task()).model == "haiku"


def test_an_edit_outlives_a_copy_that_is_written_before_it_is_taken_in(desk):
    edit(desk, model="sonnet")
    desk.files.note(desk.commit(event="task.poked"))
    desk.another().begin(desk.task(), desk.run())
    assert desk.another().edited(desk.task()).model == "sonnet"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"model": "son', "cannot be read"),
        ("[]", "is not a JSON object"),
        ('{"coder": "cluade"}', "'cluade' is not a coder"),
        ('{"cwd": "/no/such/place"}', "no absolute directory"),
        ('{"cwd": "src"}', "no absolute directory"),
        ('{"cwd": null}', "no absolute directory"),
        ('{"model": ["opus"]}', "model is not a line of text"),
        ('{"model": "a\\nb"}', "model is not a line of text"),
    ],
)
def test_an_edit_that_cannot_be_taken_in_is_named_with_its_file_and_left_alone(desk, text, words):
    path = desk.path("task.json")
    path.write_text(text)
    for _ in range(2):
        with pytest.raises(BadInput) as refused:
            desk.files.edited(desk.task())
        assert words in refused.value.message
        assert str(path) in refused.value.message
        assert "delete the file" in refused.value.fix
    if "cannot" in words:
        desk.files.note(desk.commit(event="task.poked"))
        assert path.read_text() == text
    path.unlink()
    assert desk.files.edited(desk.task()) == desk.task().spec


def test_a_file_that_did_not_change_is_not_read_again(desk):
    edit(desk, model="sonnet")
    assert desk.files.edited(desk.task()).model == "sonnet"
    path = desk.path("task.json")
    before = path.stat()
    path.write_text(path.read_text().replace("sonnet", "gemini"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert desk.files.edited(desk.task()).model == "sonnet"
    os.utime(path)
    assert desk.files.edited(desk.task()).model == "gemini"
