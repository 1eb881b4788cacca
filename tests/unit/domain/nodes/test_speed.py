from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    assert guessed(Pace(), []) == Pace(PREFILL, DECODE, LOAD, 1.0)
    peers = [Pace(prefill=100), Pace(prefill=300, decode=10)]
    assert guessed(Pace(load=3), peers) == Pace(200, 10, 3, 1.0)


def test_a_speed_beside_others_is_that_of_one_alone_divided():
    crowded = after(Pace(), Timing(read=1000, reading=4.0, written=100, writing=4.0, beside=3))
    assert crowded == Pace(prefill=1000, decode=100), "as on one chip, until it is known alone"


def test_how_much_others_slow_it_down_is_learnt():
    alone = Pace(decode=50)
    shared = after(alone, Timing(written=100, writing=8.0, beside=3))
    assert (shared.decode, shared.drag) == (50, 1.0)
    batched = after(alone, Timing(written=100, writing=2.0, beside=3))
    assert (batched.decode, batched.drag) == (50, 0.0)
    later = after(batched, Timing(written=100, writing=8.0, beside=3))
    assert later.drag == pytest.approx(0.3)


def test_a_new_node_is_hoped_to_be_the_fastest_until_it_has_answered():
    peers = [Pace(100, 10), Pace(300, 40)]
    hoped = guessed(Pace(), peers, new=True)
    assert hoped.prefill > 300
    assert hoped.decode > 40
    assert guessed(Pace(prefill=50), peers, new=True).decode == 25, "something is known"


@given(
    st.lists(
        st.builds(
            Timing,
            st.integers(0, 9999),
            st.floats(0, 1e3),
            st.integers(0, 9999),
            st.floats(0, 1e3),
            st.floats(0, 1e3),
            st.floats(0, 64),
        )
    )
)
def test_whatever_is_measured_a_pace_stays_one(timings):
    pace = Pace()
    for timing in timings:
        pace = after(pace, timing)
        assert min(pace.prefill, pace.decode, pace.load) >= 0
        assert pace.drag is None or 0 <= pace.drag <= 1


def test_a_prompt_whose_cache_was_gone_does_not_make_its_node_slow():
    known = Pace(prefill=500)
    missed = Timing(read=100, reading=40.0, uncached=20_000)
    assert after(known, missed).prefill == 500
    assert after(known, replace(missed, uncached=0)).prefill < 400, "so many are what it read"
    assert after(known, replace(missed, reading=400.0)).prefill < 400, "slower than by that"
