"""`task.json`: a copy, whose edits of cwd, coder and model count at the next claim."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from fleet.domain.errors import BadInput
from fleet.ports import Put
from tests.contract.folders import Scratch


@pytest.fixture
def scratch(tmp_path):
    made = Scratch(tmp_path / "home")
    made.files.refresh("t-1")
    return made


def edit(scratch, **changes):
    path = scratch.path("task.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_it_says_what_the_store_knows(scratch):
    found = json.loads(scratch.path("task.json").read_text())
    assert found == {
        "format": 1,
        "id": "t-1",
        "title": "Fix the login",
        "description": "Do it.",
        "status": "open",
        "cwd": str(scratch.home),
        "coder": "claude",
        "model": "opus",
        "agent": None,
        "priority": 2,
        "labels": [],
        "depends_on": ["t-0"],
        "parent": None,
        "project": str(scratch.home),
        "team": "local",
        "author": "ada",
        "created_at": "2027-01-15T08:00:00.000000Z",
        "run": None,
        "recorded": {"cwd": str(scratch.home), "coder": "claude", "model": "opus"},
    }


def test_its_status_follows_the_task(scratch):
    run = scratch.run()
    scratch.files.begin(scratch.task(), run)
    assert json.loads(scratch.path("task.json").read_text())["status"] == "running"
    task = replace(scratch.task(), state="done")
    scratch.files.note(scratch.commit(Put(task), event="task.settled"))
    assert json.loads(scratch.path("task.json").read_text())["status"] == "done"


def test_what_nobody_edited_changes_nothing(scratch):
    spec = scratch.task().spec
    assert scratch.files.edited(scratch.task()) == spec
    newer = replace(scratch.task(), spec=replace(spec, model="haiku"))  # by a command, meanwhile
    assert scratch.files.edited(newer) == newer.spec
    scratch.path("task.json").unlink()
    assert scratch.files.edited(scratch.task()) == spec
    scratch.path("task.json").write_text("")  # as a power cut may leave it
    assert scratch.files.edited(scratch.task()) == spec


@pytest.mark.parametrize(
    ("changes", "coder", "model"),
    [
        ({"model": "sonnet"}, "claude", "sonnet"),
        ({"coder": "scripted", "model": None}, "scripted", ""),
        ({"coder": ""}, "", "opus"),
        ({"title": "Something else", "priority": 0}, "claude", "opus"),
    ],
)
def test_an_edit_of_coder_or_model_is_taken_in(scratch, changes, coder, model):
    edit(scratch, **changes)
    spec = scratch.files.edited(scratch.task())
    assert (spec.coder, spec.model) == (coder, model)
    assert replace(spec, coder="claude", model="opus") == scratch.task().spec


def test_a_file_with_a_cwd_alone_is_an_edit_of_that(scratch, tmp_path):
    scratch.path("task.json").write_text(json.dumps({"cwd": str(tmp_path)}))
    assert scratch.files.edited(scratch.task()) == replace(scratch.task().spec, cwd=str(tmp_path))


def test_an_edit_that_was_taken_in_is_written_down_and_counts_once(scratch):
    edit(scratch, model="sonnet")
    spec = scratch.files.edited(scratch.task())
    scratch.commit(Put(replace(scratch.task(), spec=spec)))
    scratch.files.begin(scratch.task(), scratch.run())
    scratch.commit(Put(replace(scratch.task(), spec=replace(spec, model="haiku"))))
    assert scratch.files.edited(scratch.task()).model == "haiku"
    assert scratch.another().edited(scratch.task()).model == "haiku"


def test_an_edit_outlives_a_copy_that_is_written_before_it_is_taken_in(scratch):
    edit(scratch, model="sonnet")
    scratch.files.note(scratch.commit(event="task.poked"))
    scratch.another().begin(scratch.task(), scratch.run())
    assert scratch.another().edited(scratch.task()).model == "sonnet"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"model": "son', "cannot be read"),
        ("[]", "is not a JSON object"),
        ('{"coder": "cluade"}', "'cluade' is not a coder"),
        ('{"cwd": "/no/such/place"}', "not an absolute path"),
        ('{"cwd": "src"}', "not an absolute path"),
        ('{"cwd": null}', "not an absolute path"),
        ('{"model": ["opus"]}', "model must be one line of text"),
        ('{"model": "a\\nb"}', "model must be one line of text"),
    ],
)
def test_an_edit_that_cannot_be_taken_in_is_named_with_its_file_and_left_alone(
    scratch, text, words
):
    path = scratch.path("task.json")
    path.write_text(text)
    for _ in range(2):
        with pytest.raises(BadInput) as refused:
            scratch.files.edited(scratch.task())
        assert words in refused.value.message
        assert str(path) in refused.value.message
        assert "delete it to keep the task as it is" in refused.value.fix
    if "cannot" in words:
        scratch.files.note(scratch.commit(event="task.poked"))
        assert path.read_text() == text
    path.unlink()
    assert scratch.files.edited(scratch.task()) == scratch.task().spec


def test_a_file_that_did_not_change_is_not_read_again(scratch):
    edit(scratch, model="sonnet")
    assert scratch.files.edited(scratch.task()).model == "sonnet"
    path = scratch.path("task.json")
    before = path.stat()
    path.write_text(path.read_text().replace("sonnet", "gemini"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert scratch.files.edited(scratch.task()).model == "sonnet"
    os.utime(path)
    assert scratch.files.edited(scratch.task()).model == "gemini"
