from __future__ import annotations

from fleet.domain.nodes.breaker import (
    BUSY,
    FIRST_PROBE,
    GENTLE_STEPS,
    LAST_PROBE,
    Breaker,
    NodeResult,
    State,
    after,
    allowed,
    probe_due,
    probed,
)


def fold(*results: NodeResult, breaker: Breaker | None = None, now: float = 0.0) -> Breaker:
    held = breaker or Breaker()
    for result in results:
        held = after(held, result, now=now, why="why")
    return held


def test_a_node_that_cannot_be_reached_is_shut_off_at_once():
    held = fold(NodeResult.UNREACHABLE)
    assert (held.state, held.why, held.next_probe) == (State.OPEN, "why", FIRST_PROBE)
    assert allowed(held, 4, 0.0) == 0


def test_three_failures_of_the_last_five_shut_it_off_and_two_do_not():
    bad, good = NodeResult.FAILED, NodeResult.GOOD
    assert fold(bad, good, bad, good, good, bad, good).state is State.CLOSED
    assert fold(bad, good, bad, good, bad).state is State.OPEN
    assert fold(bad, good, good, good, bad, good, bad).state is State.CLOSED


def test_a_busy_node_rests_and_is_not_shut_off():
    held = fold(*[NodeResult.BUSY] * 10)
    assert held.state is State.CLOSED
    assert (allowed(held, 4, 0.0), allowed(held, 4, BUSY)) == (0, 4)
    told = after(Breaker(), NodeResult.BUSY, now=0.0, rest=7.0)
    assert (allowed(told, 4, 6.9), allowed(told, 4, 7.0)) == (0, 4)


def test_it_is_looked_at_less_and_less_often_but_never_seldom():
    held, now, pauses = fold(NodeResult.UNREACHABLE), 0.0, []
    for _ in range(8):
        pauses.append(held.next_probe - now)
        now = held.next_probe
        assert probe_due(held, now)
        held = probed(held, up=False, now=now)
        assert not probe_due(held, now)
    assert pauses == sorted(pauses)
    assert pauses[-1] == LAST_PROBE


def test_others_that_were_under_way_do_not_put_off_the_next_look():
    held = fold(*[NodeResult.UNREACHABLE] * 20)
    assert held.next_probe == FIRST_PROBE


def test_traffic_comes_back_gently():
    held = probed(fold(NodeResult.UNREACHABLE), up=True, now=1.0)
    seen = []
    while held.state is State.GENTLE:
        seen.append(allowed(held, 8, 1.0))
        held = fold(NodeResult.GOOD, breaker=held)
    assert seen == list(range(1, GENTLE_STEPS + 1))
    assert (held.state, allowed(held, 8, 1.0)) == (State.CLOSED, 8)


def test_one_failure_while_it_is_coming_back_shuts_it_off_for_longer():
    first = fold(NodeResult.UNREACHABLE)
    back = probed(first, up=True, now=1.0)
    again = fold(NodeResult.FAILED, breaker=back, now=1.0)
    assert again.state is State.OPEN
    assert again.next_probe - 1.0 > FIRST_PROBE


def test_what_was_under_way_when_it_was_shut_off_does_not_open_it():
    assert fold(NodeResult.UNREACHABLE, NodeResult.GOOD).state is State.OPEN
    assert probed(Breaker(), up=False, now=1.0) == Breaker()
