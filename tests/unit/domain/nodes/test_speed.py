from __future__ import annotations

import pytest

from fleet.domain.nodes.speed import DECODE, LOAD, PREFILL, Pace, Timing, after, guessed


def test_speeds_are_running_means_of_what_was_measured():
    first = after(Pace(), Timing(read=1000, reading=2.0, written=100, writing=4.0, loading=6.0))
    assert first == Pace(prefill=500, decode=25, load=6)
    second = after(first, Timing(read=1000, reading=1.0, written=100, writing=2.0))
    assert second.prefill == pytest.approx(650)
    assert second.decode == pytest.approx(32.5)
    assert second.load == 6


def test_what_says_little_changes_nothing():
    known = Pace(500, 25, 6)
    assert (
        after(known, Timing(read=3, reading=0.001, written=2, writing=0.5, loading=0.02)) == known
    )
    assert after(known, Timing()) == known


def test_what_nobody_measured_is_taken_from_the_peers_or_from_habit():
    assert guessed(Pace(), []) == Pace(PREFILL, DECODE, LOAD)
    peers = [Pace(prefill=100), Pace(prefill=300, decode=10)]
    assert guessed(Pace(load=3), peers) == Pace(200, 10, 3)
