"""What an agent is doing, by its process, its words and last its screen."""

import pytest

from fleet.domain.activity import Activity, Doing, by_its_process, by_its_screen, by_its_words
from fleet.domain.transcript import SaidKind as K

SAID = {
    "nothing": ([], None),
    "a session": ([K.SESSION], Doing.IDLE),
    "a turn": ([K.SESSION, K.TURN, K.HEARD], Doing.WORKING),
    "the end of one": ([K.TURN, K.RESULT, K.SESSION], Doing.WAITING),
    "a dialog": ([K.TURN, K.TOOL, K.WANTS], Doing.PERMISSION),
    "a call that its dialog came before": ([K.TURN, K.WANTS, K.TOOL], Doing.PERMISSION),
    "an answer": ([K.TURN, K.WANTS, K.TOOL, K.ANSWERED], Doing.WORKING),
    "what was permitted": ([K.TURN, K.TOOL, K.WANTS, K.TOOL_RESULT], Doing.WORKING),
    "one of two dialogs": ([K.TURN, K.WANTS, K.TOOL_RESULT, K.WANTS], Doing.PERMISSION),
}


@pytest.mark.parametrize("what", SAID)
def test_the_last_word_that_means_something_says_what_it_does(what):
    kinds, doing = SAID[what]
    said = by_its_words((kind, "") for kind in kinds)
    assert (said.doing if said else None) is doing


WORKING, WAITING, IDLE, PERMISSION = (
    Activity(doing, "its words")
    for doing in (Doing.WORKING, Doing.WAITING, Doing.IDLE, Doing.PERMISSION)
)
SEEN = [
    (None, "wants", 0, Doing.PERMISSION),  # before its hooks run: does it trust the folder?
    (None, "ready", 0, Doing.IDLE),
    (None, "working", 0, Doing.WORKING),
    (None, "unknown", 0, None),
    (PERMISSION, "working", 0.1, None),  # the dialog is not drawn yet
    (PERMISSION, "working", 2, Doing.WORKING),
    (PERMISSION, "ready", 2, Doing.WAITING),
    (PERMISSION, "unknown", 99, None),
    (PERMISSION, "wants", 99, None),
    (WORKING, "ready", 1, None),
    (WORKING, "ready", 9, Doing.WAITING),
    (WORKING, "typing", 9, None),  # somebody may type while it works
    (WORKING, "wants", 0.1, None),  # it was answered just now
    (WORKING, "wants", 9, Doing.PERMISSION),
    (WAITING, "wants", 9, Doing.PERMISSION),
    (WAITING, "working", 9, None),
    (IDLE, "ready", 9, None),
]


@pytest.mark.parametrize(("said", "screen", "silent", "doing"), SEEN)
def test_its_screen_has_a_say_where_its_words_leave_a_doubt(said, screen, silent, doing):
    better = by_its_screen(said, screen, "a.rule", silent=silent)
    assert (better.doing if better else None) is doing
    assert better is None or "a.rule" in better.by


def test_what_is_dead_does_nothing():
    assert by_its_process("exited", 3) == (Doing.EXITED, "its keeper recorded status 3")
    assert by_its_process("alive", None) is None


def test_words_of_several_lines_are_evidence_on_one():
    assert (
        by_its_words([(K.TURN, "Fix it\n\n  and  test it")]).by
        == "it said turn: Fix it and test it"
    )
    assert by_its_words([(K.TURN, "x" * 100)]).by == f"it said turn: {'x' * 79}…"
