"""One table between our states and those of bd and claude-fleet, both ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.domain.errors import BadInput
from fleet.operations.compat.states import (
    BD_STATUSES,
    NOT_OURS,
    TABLE,
    bd_word,
    from_bd,
    to_bd,
    to_team,
)
from fleet.operations.tasks.rows import STATE_OF

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "states.md"
BD = {"open", "in_progress", "blocked", "deferred", "closed", "pinned", "hooked", "tombstone"}


def test_every_status_that_a_list_shows_is_in_it_once():
    ours = [word.ours for word in TABLE]
    assert len(set(ours)) == len(ours)
    assert {*ours, "open"} == {str(name) for name in STATE_OF}  # `open` itself is never shown


@pytest.mark.parametrize("word", TABLE, ids=lambda w: w.ours)
def test_there_and_back_again(word):
    assert word.ours in from_bd(to_bd(word.ours))
    assert to_team(word.ours) == word.team
    assert word.meaning.endswith(".")


def test_every_word_of_bds_is_known_as_ours_or_as_none_of_ours():
    assert {word.bd for word in TABLE} == BD_STATUSES.keys()
    assert BD_STATUSES.keys() | NOT_OURS.keys() == BD
    assert {word.team for word in TABLE} == {"open", "in_progress", "resolved", "blocked"}


def test_the_words_agree():
    assert from_bd("closed") == ("done", "landing", "landed", "beaten", "cancelled")
    assert from_bd("in-progress") == ("assigned", "starting", "running", "stopping")
    assert from_bd("deferred") == ("postponed",)
    assert to_bd("waiting") == "open"
    assert to_bd("failed") == "blocked"


@pytest.mark.parametrize("word", ["opn", "", "done", "pinned", "hooked"])
def test_a_word_that_is_not_bds_is_refused_with_what_there_is(word):
    with pytest.raises(BadInput) as caught:
        bd_word(word)
    assert caught.value.fix


def test_the_page_says_what_the_table_says():
    rows = [f"| {w.ours} | {w.bd} | {w.team} | {w.meaning} |" for w in TABLE]
    rows += [f"| `--status {word}` | {does} |" for word, does in BD_STATUSES.items()]
    page = PAGE.read_text(encoding="utf-8")
    assert [row for row in rows if row not in page] == []
    assert len([line for line in page.splitlines() if line.startswith("| ")]) == len(rows) + 2
