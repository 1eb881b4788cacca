from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.domain.nodes.line import (
    AGEING,
    LineTicket,
    Room,
    Served,
    ServingChoice,
    ServingRoom,
    older,
    ranked,
    remaining,
    turns,
    with_first,
)
from fleet.domain.nodes.route import NodeOutlook


def ticket(number, *choices, priority=0, output=100):
    return LineTicket(number, priority, 0, output, tuple(choices))


def choice(node, place, **outlook):
    return ServingChoice(NodeOutlook(node, **outlook), place)


def went(line):
    return [(turn.ticket.number, turn.route.node, turn.at_once) for turn in turns(line)]


def test_as_many_go_as_there_are_slots_and_in_their_order():
    place = ServingRoom(Room(2))
    line = [ticket(n, choice("a", place)) for n in (3, 1, 2)]
    assert went(line) == [(1, "a", True), (2, "a", True), (3, "a", False)]


def test_priority_goes_before_order():
    place = ServingRoom(Room(1))
    line = [ticket(1, choice("a", place)), ticket(2, choice("a", place), priority=-1)]
    assert went(line) == [(2, "a", True), (1, "a", False)]


def test_a_total_of_the_node_binds_all_of_its_models():
    total = Room(1)
    one, other = ServingRoom(Room(4), total), ServingRoom(Room(4), total)
    line = [ticket(1, choice("a", one)), ticket(2, choice("a", other))]
    assert went(line) == [(1, "a", True), (2, "a", False)]


def test_it_is_worth_waiting_for_a_fast_node_but_not_for_ever():
    fast, slow = ServingRoom(Room(1, [1.0])), ServingRoom(Room(1))
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
    assert ServingRoom(Room(1, [2.0]), Room(1, [4.0])).wait() == 4.0


def test_without_a_node_there_is_no_turn():
    down = choice("a", ServingRoom(Room(1)), up=False, why_down="refused")
    (turn,) = turns([ticket(1, down)])
    assert (turn.route.node, turn.at_once, turn.route.why) == ("", False, "a is down (refused)")


def test_what_takes_longer_than_expected_will_last_longer_still():
    assert remaining(10, 4) == 6
    assert remaining(10, 40) == pytest.approx(10)
    assert remaining(0, 0) > 0


def waiting(number, agent="", conversation="", waited=0.0, priority=0, hold=0.0):
    return LineTicket(
        number, priority, 0, 0, (), waited=waited, agent=agent, conversation=conversation, hold=hold
    )


def order(*line, **served):
    return [ticket.number for ticket in ranked(line, Served(**served))]


def test_agents_take_turns_and_so_do_the_conversations_of_one():
    many = [waiting(n, "implementer", "x") for n in range(4)]
    assert order(*many, waiting(4, "planner")) == [0, 4, 1, 2, 3]
    assert order(*many, waiting(4, "implementer", "y")) == [0, 4, 1, 2, 3]
    one, other = waiting(0, "implementer"), waiting(1, "planner")
    assert order(one, other, at_work={"implementer": 2}) == [1, 0]


def test_where_one_slot_serves_all_the_turn_is_of_who_had_none_for_longest():
    many = [waiting(n, "greedy", f"talk {n}", waited=60.0) for n in range(3)]
    modest = waiting(3, "modest", waited=12.0)
    assert order(*many, modest) == [0, 3, 1, 2]
    assert order(*many, modest, idle={("greedy", ""): 2.0}) == [3, 0, 1, 2]
    assert order(*many, modest, idle={("greedy", ""): 2.0, ("modest", ""): 1.0}) == [0, 3, 1, 2]
    talk = {("greedy", ""): 2.0, ("greedy", "talk 0"): 2.0}
    assert order(*many, idle=talk) == [1, 2, 0]


def test_an_agent_with_a_long_line_does_not_age_past_another_of_its_priority():
    many = [waiting(n, "greedy", f"talk {n}", waited=600.0) for n in range(3)]
    few = [waiting(3, "modest", waited=1.0), waiting(4, "high", priority=-1)]
    assert order(*many, *few, idle={("greedy", ""): 0.5}) == [3, 0, 1, 4, 2]


def test_who_waits_long_goes_before_a_higher_priority():
    low = waiting(0, "low", priority=9, waited=9 * AGEING)
    assert order(waiting(1, "high", waited=0.0), low) == [0, 1]
    assert order(waiting(1, "high", waited=9 * AGEING), low) == [1, 0], "the high one aged, too"


def test_what_would_unload_a_model_lets_others_pass_for_a_while():
    swap = waiting(0, "a", hold=30.0, waited=10.0)
    assert order(swap, waiting(1, "b")) == [1, 0]
    assert order(waiting(0, "a", hold=30.0, waited=31.0), waiting(1, "b")) == [0, 1]


tickets = st.lists(
    st.builds(
        LineTicket,
        st.integers(0, 99), st.integers(-2, 9), st.just(0), st.just(0), st.just(()),
        st.floats(0, 500), st.sampled_from("abc"), st.sampled_from("xy"), st.floats(0, 50),
    ),
    unique_by=lambda ticket: ticket.number,
)  # fmt: skip


@given(tickets)
def test_an_order_leaves_nobody_out_and_each_priority_ages_with_those_who_wait(line):
    ordered = ranked(line)
    assert sorted(t.number for t in ordered) == sorted(t.number for t in line)
    waits: dict[int, list[float]] = {}
    for each in line:
        waits.setdefault(each.priority, []).append(each.waited - each.hold)
    left = {priority: iter(sorted(times, reverse=True)) for priority, times in waits.items()}
    ages = [older(each.priority, next(left[each.priority])) for each in ordered]
    assert ages == sorted(ages)


@given(st.integers(1, 5), st.integers(1, 30), st.integers(1, 4))
def test_equal_nodes_get_equal_work(nodes, count, slots):
    places = [ServingRoom(Room(slots)) for _ in range(nodes)]
    options = [choice(f"n{i}", p, decode=10, drag=1.0) for i, p in enumerate(places)]
    sent = [node for _, node, now in went([ticket(n, *options) for n in range(count)]) if now]
    shares = [sent.count(f"n{i}") for i in range(nodes)]
    assert sum(shares) == min(count, nodes * slots)
    assert max(shares) - min(shares) <= 1


def test_the_last_home_of_a_conversation_settles_a_draw():
    choices = [choice(name, ServingRoom(Room(1))) for name in ("a", "b")]
    assert [c.outlook.node for c in with_first(choices, "b")] == ["b", "a"]
    assert [c.outlook.node for c in with_first(choices, "")] == ["a", "b"]
