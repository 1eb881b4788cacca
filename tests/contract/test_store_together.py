"""Many commits as one: with one wait for the disk, and each for itself or all or none."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from fleet.adapters.stores.sql import SqlStore
from fleet.adapters.stores.sqlite import Sqlite
from fleet.domain.entry import Entry, EntryKind
from fleet.domain.errors import Conflict, Spoiled
from fleet.ports import EntryQuery, Put

KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.real)]
on_disk = pytest.mark.parametrize("store", KINDS, indirect=True)


def entry(store, key: str) -> Entry:
    return Entry(store.new_id("e"), 0, EntryKind.MEMORY, "red", key, "ann", 5)


def keys(store) -> list[str]:
    return sorted(found.key for found in store.entries(EntryQuery(EntryKind.MEMORY, "red")))


def half_wrong(store) -> None:
    """Its first change can be made, its second cannot."""
    old = replace(entry(store, "old"), version=7)
    with pytest.raises(Conflict):
        store.commit([Put(entry(store, "half")), Put(old)], [])


def one_wrong(store) -> None:
    with store.together(alone=False):
        store.commit([Put(entry(store, "a"))], [])
        half_wrong(store)


@on_disk
def test_one_that_fails_alone_takes_nothing_with_it_and_leaves_nothing(store):
    with store.together():
        store.commit([Put(entry(store, "a"))], [])
        half_wrong(store)
        store.commit([Put(entry(store, "b"))], [])
    assert keys(store) == ["a", "b"]


@on_disk
def test_an_end_that_does_not_come_leaves_nothing(store):
    with suppress(ZeroDivisionError), store.together():
        store.commit([Put(entry(store, "a"))], [])
        raise ZeroDivisionError
    assert keys(store) == []


def test_where_none_may_fail_alone_one_spoils_all(tmp_path):
    store = SqlStore(Sqlite(tmp_path / "fleet.db"))
    with pytest.raises(Spoiled):
        one_wrong(store)
    assert keys(store) == []
    with store.together(alone=False):
        store.commit([Put(entry(store, "a"))], [])
    half_wrong(store)
    assert keys(store) == ["a"]
    store.close()


@on_disk
def test_ids_are_counted_on_and_none_is_given_twice(store):
    """PostgreSQL may leave a gap: no writer waits there until another's ids are written or not."""
    before = number(store)
    with store.together():
        inside = [number(store) for _ in range(3)]
    with suppress(ZeroDivisionError), store.together():
        lost = number(store)
        number(store)
        raise ZeroDivisionError
    after = number(store)
    assert inside == [before + 1, before + 2, before + 3]
    assert lost == before + 4
    assert after == before + (4 if isinstance(store, SqlStore) else 6)


def number(store) -> int:
    return int(store.new_id("e").partition("-")[2])
