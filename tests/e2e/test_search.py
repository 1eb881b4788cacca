"""`fleet search` finds what was asked, and what agents really said."""

from __future__ import annotations

import shutil

import pytest

from tests.e2e.scratch import Scratch


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def test_titles_prompts_and_transcripts_are_searched(scratch):
    one = scratch.add("Fix the login", script="say The session cookie was refused.")
    two = scratch.add("Other", script="say Nothing about it.")
    assert [hit["where"] for hit in scratch.data("search", "cookie")] == ["prompt"]
    scratch.work()
    hits = scratch.data("search", "COOKIE", "refus")
    assert [(hit["task"], hit["where"], hit["run"]) for hit in hits] == [
        (one, "transcript", f"{one}.1"),
        (one, "prompt", ""),
    ]
    (mark, _) = hits[0]["marks"]
    assert hits[0]["text"][mark["start"] : mark["end"]] == "cookie"
    for width in (80, 120):
        shown = scratch("search", "login", env={"COLUMNS": str(width)})
        assert max(map(len, shown.splitlines())) <= width
        assert "»login«" in shown
    assert scratch.data("search", "cookie", "--task", two) == []
    assert scratch.data("search", "cookie", "--project", "/elsewhere") == []
    assert len(scratch.data("search", "cookie", "--here", "--since", "1h")) == 2


@pytest.mark.parametrize(
    "text", ['"login" OR (', "log* NEAR", "login'; DROP TABLE task", "login - ü"]
)
def test_nothing_in_the_text_is_an_operator(scratch, text):
    scratch.add("Fix the login")
    assert scratch.data("search", text) == []
    scratch.add(text)
    assert [hit["task"] for hit in scratch.data("search", text)] == ["t-2"]


def test_a_text_without_words_is_refused(scratch):
    assert "no word to search for" in scratch.fails("search", "*** …", status=2)
    assert scratch("search", "nothing").strip() == "Nothing was found."


def test_a_supervisor_indexes_what_was_said_before_there_was_an_index(scratch):
    scratch.add("One", script="say A zebra crossed.")
    scratch.work()
    shutil.rmtree(scratch.home / "search")
    assert [hit["where"] for hit in scratch.data("search", "zebra")] == ["prompt"]
    scratch.add("Two")
    scratch.work()
    assert {hit["where"] for hit in scratch.data("search", "zebra")} == {"prompt", "transcript"}


def test_a_task_that_was_edited_is_found_by_its_new_words(scratch):
    task = scratch.add("Before")
    scratch("edit", task, "--title", "Afterwards")
    assert scratch.data("search", "before") == []
    assert [hit["text"] for hit in scratch.data("search", "after")] == ["Afterwards"]
