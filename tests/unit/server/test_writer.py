"""Many who ask at once are written as one, and each is answered for itself."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import pytest

from fleet.adapters.stores.sql import SqlStore
from fleet.adapters.stores.sqlite import Sqlite
from fleet.domain.access import Actor, Permission, Role
from fleet.domain.entry import Entry, EntryKind
from fleet.domain.errors import Conflict, Unavailable
from fleet.operations.catalogue import Context, Operation, Request
from fleet.ports import EntryQuery, Put
from fleet.server import writer as writing
from fleet.server.writer import Writer


@dataclass(frozen=True, slots=True)
class Keep(Request[str]):
    """`wrong`: its second change can never be made, though its first can."""

    key: str
    wrong: bool = False


def keep(context: Context, request: Keep) -> str:
    first = Entry(context.store.new_id("e"), 0, EntryKind.MEMORY, "red", request.key, "ann", 5)
    stale = replace(first, id=context.store.new_id("e"), key="stale", version=7)
    context.commit([Put(first), *([Put(stale)] if request.wrong else [])])
    return request.key


OPERATIONS = (Operation("test.keep", Keep, Permission.ADD, keep, "Keep it."),)


def asked(tmp_path, *requests: Keep):
    """What each was answered, and the keys that are kept."""
    told = []

    def opened() -> SqlStore:
        return SqlStore(Sqlite(tmp_path / "fleet.db"))

    async def main():
        writer = Writer(opened, lambda: told.append(1))
        writer.start()
        context = Context(Actor("ann", Role.COORDINATOR, "red", ""), None, None, None)
        waiting = [writer.do(context, request) for request in requests]
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        last = writer.do(context, Keep("last"))
        await writer.stop()
        assert await last == "last"
        with pytest.raises(Unavailable):
            writer.do(context, Keep("late"))
        return answers

    answers = asyncio.run(main())
    store = opened()
    try:
        return (
            answers,
            sorted(e.key for e in store.entries(EntryQuery(EntryKind.MEMORY, "red"))),
            told,
        )
    finally:
        store.close()


def test_all_of_a_batch_are_written_with_one_commit(tmp_path):
    answers, kept, told = asked(tmp_path, *(Keep(str(n)) for n in range(9)))
    assert answers == [str(n) for n in range(9)]
    assert kept == [*map(str, range(9)), "last"]
    assert len(told) == 2


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_that_fails_half_way_is_told_alone_and_leaves_nothing(tmp_path, place):
    requests = [Keep("a"), Keep("b")]
    requests.insert(place, Keep("half", wrong=True))
    answers, kept, _ = asked(tmp_path, *requests)
    assert isinstance(answers[place], Conflict)
    assert [a for a in answers if isinstance(a, str)] == ["a", "b"]
    assert kept == ["a", "b", "last"]


@pytest.fixture
def one_by_one(monkeypatch):
    """Each request takes as long as a batch may."""
    monkeypatch.setattr(writing, "BATCH_SECONDS", 0.0)


def in_order(tmp_path, *names: str, end_early: bool = False) -> list[str]:
    """Each asks to keep something, all at once; in the order in which they were answered."""
    answered: list[str] = []

    async def main():
        writer = Writer(lambda: SqlStore(Sqlite(tmp_path / "fleet.db")), lambda: None)
        writer.start()
        for number, name in enumerate(names):
            actor = Actor(name, Role.COORDINATOR, "red", "")
            done = writer.do(Context(actor, None, None, None), Keep(f"{name}{number}"))
            done.add_done_callback(lambda done: answered.append(done.result()))
            waiting.append(done)
        if not end_early:
            await asyncio.gather(*waiting)
        await writer.stop()
        await asyncio.gather(*waiting)

    waiting: list[asyncio.Future] = []
    asyncio.run(main())
    return answered


def test_who_asks_for_much_keeps_nobody_else_waiting(tmp_path, one_by_one):
    answered = in_order(tmp_path, "a", "a", "a", "a", "b", "c", "b")
    assert answered == ["a0", "b4", "c5", "a1", "b6", "a2", "a3"]


def test_what_waits_for_its_turn_at_the_end_is_written(tmp_path, one_by_one):
    answered = in_order(tmp_path, "a", "a", "b", "a", end_early=True)
    assert sorted(answered) == ["a0", "a1", "a3", "b2"]
