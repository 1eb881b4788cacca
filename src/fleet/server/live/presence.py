"""Which tokens are revoked, which runs have ended, who is there: in memory, for every request asks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleet.domain.access import is_ended
from fleet.domain.entry import EntryKind
from fleet.domain.event import Kind
from fleet.operations.catalogue import is_current
from fleet.operations.team.enrolments import AUTH
from fleet.operations.team.members import BeSeen
from fleet.operations.team.revocations import all_of, revocation_of, revoke

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.app.token_keys import RevokedFile
    from fleet.domain.access import Revocation
    from fleet.domain.event import Event
    from fleet.operations.catalogue import Context
    from fleet.ports import Store
    from fleet.server.tokens import TokenGrant
    from fleet.server.writer import Writer

TOKEN_TRUST_SECONDS = 1.0  # seconds for which an answer about a token is believed
SEEN_NOTE_SECONDS = 60.0  # seconds between two notes that a caller is active
KNOWN = 10_000
REVOCATION = EntryKind.REVOCATION


class Revoked:
    """The revocations, in memory, so that checking a token needs no query.

    `home` keeps a copy. What this server revokes counts at once, what other processes revoke as
    soon as this server sees their events.
    """

    def __init__(self, open_store: Callable[[], Store], home: RevokedFile) -> None:
        self._open, self._home = open_store, home
        self._before: dict[str, int] = {}

    def begin(self, context: Context) -> None:
        """Read the revocations. Store and home each get what only the other has.

        A store that was restored from a backup lacks what was revoked since.
        """
        store = self._open()
        try:
            own = context._replace(store=store, actor=AUTH, revoked=lambda _: None)
            stored = {revocation.key: revocation for revocation in all_of(store)}
            for revocation in self._home.read(store.now()).values():
                self._add(revocation)
                earlier = stored.get(revocation.key)
                if earlier is None or earlier.before < revocation.before:
                    revoke(own, revocation)
            self.note([r for r in stored.values() if r.before > self._before.get(r.key, -1)])
        finally:
            store.close()

    def note(self, revocations: Sequence[Revocation]) -> None:
        self._home.add(revocations)
        for revocation in revocations:
            self._add(revocation)

    def _add(self, revocation: Revocation) -> None:
        key = revocation.key
        self._before[key] = max(revocation.before, self._before.get(key, -1))

    def saw(self, events: Sequence[Event]) -> None:
        """Add what other processes revoked; called in the thread that watches events."""
        ids = [event.data.get("entry", "") for event in events if event.type == Kind.TOKEN_REVOKED]
        if not ids:
            return
        store = self._open()
        try:
            entries = [entry for entry in map(store.entry_by_id, ids) if entry.kind is REVOCATION]
            revocations = map(revocation_of, entries)
            self.note([r for r in revocations if r.before > self._before.get(r.key, -1)])
        finally:
            store.close()

    def __call__(self, grant: TokenGrant) -> bool:
        return is_ended(self._before, grant.ended_by, grant.at)


class EndedRuns:
    """Tells whether a run has ended, by a look at the store at most a second ago."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looked: dict[str, tuple[float, bool]] = {}

    def __call__(self, run_id: str) -> bool:
        now = time.monotonic()
        at, over = self._looked.get(run_id, (now - TOKEN_TRUST_SECONDS, False))
        if over or now - at < TOKEN_TRUST_SECONDS:
            return over
        over = not is_current(self._store, run_id)
        if len(self._looked) >= KNOWN:
            self._looked.clear()
        self._looked[run_id] = (now, over)
        return over


class PresenceNotes:
    """Notes in the store who sends requests, at most once a minute each, beside the request."""

    def __init__(self) -> None:
        self._noted: dict[tuple[str, str, str], float] = {}

    def note(self, context: Context, grant: TokenGrant, writer: Writer) -> None:
        if grant.host:
            return  # a machine is no member of the team
        actor = grant.actor
        now, who = time.monotonic(), (actor.team, actor.name, actor.role)
        if now - self._noted.get(who, now - SEEN_NOTE_SECONDS) < SEEN_NOTE_SECONDS:
            return
        if len(self._noted) >= KNOWN:
            self._noted.clear()
        self._noted[who] = now
        writer.do(context._replace(actor=actor), BeSeen())
