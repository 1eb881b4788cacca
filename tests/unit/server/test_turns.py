"""Members take turns at what is scarce."""

from __future__ import annotations

import threading

import pytest

from fleet.domain.errors import Refused
from fleet.server.turns import FairThreads, Turns
from tests.wait import LIMIT, until


def test_the_next_is_of_another_member_and_of_each_the_oldest():
    turns = Turns[int](each=2)
    for job in (1, 2, 3):
        turns.add("mallory", job)
    turns.add("ann", 10)
    assert [turns.take() for _ in range(4)] == [("mallory", 1), ("ann", 10), ("mallory", 2), None]
    turns.end("mallory")
    assert turns.take() == ("mallory", 3)
    assert len(turns) == 0


def test_a_member_of_whom_too_much_waits_is_refused_and_others_are_not():
    turns = Turns[int](each=1)
    turns.add("mallory", 1, 2)
    turns.add("mallory", 2, 2)
    with pytest.raises(Refused) as refused:
        turns.add("mallory", 3, 2)
    assert refused.value.code == "too_many_at_once"
    turns.add("ann", 10, 2)
    assert turns.take() == ("mallory", 1)


def test_a_member_with_many_slow_jobs_keeps_no_other_waiting():
    threads, gate, done = FairThreads("test", threads=3, each=2), threading.Event(), []
    slow = [threads.submit("mallory", lambda: gate.wait(LIMIT)) for _ in range(20)]
    others = [threads.submit(name, lambda name=name: name) for name in ("ann", "bob")]
    assert [each.result(LIMIT) for each in others] == ["ann", "bob"]
    assert not any(each.done() for each in slow)
    gate.set()
    done = [each.result(LIMIT) for each in slow]
    assert done == [True] * 20


def test_an_error_reaches_who_asked_and_who_has_left_costs_no_work():
    threads, gate, did = FairThreads("test", threads=1, each=1), threading.Event(), []
    first = threads.submit("ann", lambda: gate.wait(LIMIT))
    until(first.running)
    left, fails = threads.submit("ann", lambda: did.append(1)), threads.submit("ann", lambda: 1 / 0)
    assert left.cancel()
    gate.set()
    with pytest.raises(ZeroDivisionError):
        fails.result(LIMIT)
    assert not did
