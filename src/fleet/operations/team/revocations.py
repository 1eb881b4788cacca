"""Revocations in the store. The home keeps them as well, so that a restored store revives nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.access import LEEWAY, Revocation, is_ended, token_key
from fleet.domain.entry import EntryKind
from fleet.domain.event import Kind
from fleet.operations.shared.entries import new_entry
from fleet.operations.shared.pages import pages
from fleet.ports import EntryQuery, Put

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context
    from fleet.ports import Store

PAGE = 500
GRACE = round(LEEWAY * 1_000_000)  # for which a token is accepted after its end


def revoke(context: Context, revocation: Revocation, *others: Put) -> Entry:
    """Write it, and `others` with it. The home's copy is first: it is never behind the store's."""
    context.revoked([revocation])
    earlier = context.store.entry(EntryKind.REVOCATION, "", revocation.key)
    if earlier and earlier.body["before"] >= revocation.before and not others:
        return earlier
    entry = earlier or new_entry(
        context, EntryKind.REVOCATION, team="", key=revocation.key, owner=context.actor.name
    )
    before = max(revocation.before, earlier.body["before"] if earlier else 0)
    entry = replace(entry, until=revocation.until, body={"before": before})
    event = context.event(Kind.TOKEN_REVOKED, "", entry=entry.id, team="")
    written: list[Entry] = context.commit([Put(entry), *others], event)  # type: ignore[assignment]  # as was put
    return written[0]


def revocation_of(entry: Entry) -> Revocation:
    return Revocation(entry.key, int(entry.body["before"]), entry.until)


def all_of(store: Store) -> Iterator[Revocation]:
    """All revocations, for a server that starts; also of tokens revoked before there were such entries."""
    yield from map(revocation_of, each(store, EntryQuery(EntryKind.REVOCATION)))
    for token in each(store, EntryQuery(EntryKind.TOKEN, counting_at=store.now())):
        if token.body.get("revoked_at"):
            yield Revocation(token_key(token.key), until=token.until + GRACE)


def each(store: Store, query: EntryQuery) -> Iterator[Entry]:
    """All of them, page by page; the query's `limit` does not count."""
    for page in pages(store.entries, query._replace(limit=PAGE)):
        yield from page


class StoredRevocations:
    """Whether something is revoked, by the store alone; each key is looked up once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, int] = {}

    def __call__(self, keys: Sequence[str], at: int) -> bool:
        return is_ended(self._look_up(keys), keys, at)

    def _look_up(self, keys: Sequence[str]) -> Mapping[str, int]:
        for key in keys:
            if key not in self._known:
                entry = self._store.entry(EntryKind.REVOCATION, "", key)
                self._known[key] = entry.body["before"] if entry else -1
        return self._known
