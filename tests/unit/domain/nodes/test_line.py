from __future__ import annotations

import pytest

from fleet.domain.nodes.line import Choice, Place, Room, Ticket, remaining, turns, with_first
from fleet.domain.nodes.route import NodeOutlook


def ticket(number, *choices, priority=0, output=100):
    return Ticket(number, priority, 0, output, tuple(choices))


def choice(node, place, **outlook):
    return Choice(NodeOutlook(node, **outlook), place)


def went(line):
    return [(turn.ticket.number, turn.route.node, turn.now) for turn in turns(line)]


def test_as_many_go_as_there_are_slots_and_in_their_order():
    place = Place(Room(2))
    line = [ticket(n, choice("a", place)) for n in (3, 1, 2)]
    assert went(line) == [(1, "a", True), (2, "a", True), (3, "a", False)]


def test_priority_goes_before_order():
    place = Place(Room(1))
    line = [ticket(1, choice("a", place)), ticket(2, choice("a", place), priority=-1)]
    assert went(line) == [(2, "a", True), (1, "a", False)]


def test_a_total_of_the_node_binds_all_of_its_models():
    total = Room(1)
    one, other = Place(Room(4), total), Place(Room(4), total)
    line = [ticket(1, choice("a", one)), ticket(2, choice("a", other))]
    assert went(line) == [(1, "a", True), (2, "a", False)]


def test_it_is_worth_waiting_for_a_fast_node_but_not_for_ever():
    fast, slow = Place(Room(1, [1.0])), Place(Room(1))
    choices = (choice("fast", fast, decode=100), choice("slow", slow, decode=10))
    # 1 s for the first on the fast node, then 2 s, and so on; the slow one takes 10 s.
    line = [ticket(n, *choices) for n in range(12)]
    got = went(line)
    assert got[0] == (0, "fast", False)
    assert [node for _, node, _ in got].count("slow") == 1
    assert (next(n for n, node, _ in got if node == "slow")) > 6
    assert next(now for _, node, now in got if node == "slow")


def test_the_wait_is_that_for_the_next_slot():
    room = Room(2, [5.0, 1.0, 3.0])
    assert room.wait() == 3.0
    assert Room(2, [5.0]).wait() == 0.0
    assert Place(Room(1, [2.0]), Room(1, [4.0])).wait() == 4.0


def test_without_a_node_there_is_no_turn():
    down = choice("a", Place(Room(1)), up=False, why_down="refused")
    (turn,) = turns([ticket(1, down)])
    assert (turn.route.node, turn.now, turn.route.why) == ("", False, "a is down (refused)")


def test_what_takes_longer_than_expected_will_last_longer_still():
    assert remaining(10, 4) == 6
    assert remaining(10, 40) == pytest.approx(10)
    assert remaining(0, 0) > 0


def test_the_last_home_of_a_conversation_settles_a_draw():
    choices = [choice(name, Place(Room(1))) for name in ("a", "b")]
    assert [c.outlook.node for c in with_first(choices, "b")] == ["b", "a"]
    assert [c.outlook.node for c in with_first(choices, "")] == ["a", "b"]
