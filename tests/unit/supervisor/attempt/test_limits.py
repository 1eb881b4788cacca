from __future__ import annotations

from dataclasses import replace

from fleet.domain.run import Ending
from fleet.domain.transcript import Conversation
from fleet.supervisor.attempt.limits import FIRST_LINE, Silence

GOING = Conversation(lines=3, turns=1)


def after(heard: Conversation, seconds: float, *, limit: float = 600, in_turns: bool = True):
    """What a watch of so many seconds, with a look every ten, comes to."""
    silence, cut = Silence(0), None
    for now in range(0, int(seconds) + 1, 10):
        cut = cut or silence.stalled(heard, limit, now=now, in_turns=in_turns)
    return cut


def test_silence_past_the_limit_is_a_stall():
    cut = after(GOING, 620)
    assert cut is not None
    assert cut.ending is Ending.STALLED
    assert "with no tool running" in cut.why
    assert after(GOING, 590) is None


def test_a_tool_may_take_its_time():
    assert after(replace(GOING, open_tools=1), 100_000) is None


def test_between_turns_nobody_waits_for_a_word():
    assert after(replace(GOING, ended_turns=1), 10_000) is None


def test_a_program_in_turns_says_something_soon_or_never():
    nothing = Conversation()
    assert after(nothing, FIRST_LINE + 10).why == "It printed nothing in its first 90 s."
    assert after(nothing, FIRST_LINE + 10, in_turns=False) is None


def test_time_that_was_slept_through_does_not_count():
    silence = Silence(0)
    assert silence.stalled(GOING, 600, now=1, in_turns=True) is None
    assert silence.stalled(GOING, 600, now=90_000, in_turns=True) is None
    assert silence.stalled(GOING, 600, now=90_010, in_turns=True) is None


def test_every_word_starts_the_count_again():
    silence, lines = Silence(0), 0
    for now in range(0, 10_000, 10):
        lines += now % 500 == 0
        assert silence.stalled(replace(GOING, lines=lines), 600, now=now, in_turns=True) is None


def test_no_limit_is_no_stall():
    assert after(GOING, 100_000, limit=0) is None
