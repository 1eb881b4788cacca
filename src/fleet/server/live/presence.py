"""Who is there, and who may not be any more: looked up seldom, asked for at every request."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from fleet.operations.catalogue import is_current
from fleet.operations.team.members import BeSeen
from fleet.operations.team.tokens import is_revoked

if TYPE_CHECKING:
    from fleet.domain.access import Actor
    from fleet.operations.catalogue import Context
    from fleet.ports import Store
    from fleet.server.writer import Writer

TOKEN_TRUST_SECONDS = 1.0  # seconds for which an answer about a token is believed
SEEN_NOTE_SECONDS = 60.0  # seconds between notes that somebody is still there
KNOWN = 10_000


class Revocations:
    """Whether a token was revoked, by its id, at most a second ago."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._looked: dict[str, tuple[float, bool]] = {}

    def __call__(self, token_id: str) -> bool:
        now = time.monotonic()
        at, revoked = self._looked.get(token_id, (now - TOKEN_TRUST_SECONDS, False))
        if revoked or now - at < TOKEN_TRUST_SECONDS:
            return revoked
        revoked = is_revoked(self._store, token_id)
        if len(self._looked) >= KNOWN:
            self._looked.clear()
        self._looked[token_id] = (now, revoked)
        return revoked


class EndedRuns:
    """Whether a run is over, as it was at most a second ago. One that is stays so."""

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


class Presence:
    """Has it written down who asks; nobody waits for that."""

    def __init__(self) -> None:
        self._noted: dict[Actor, float] = {}

    def note(self, context: Context, actor: Actor, writer: Writer) -> None:
        now = time.monotonic()
        if now - self._noted.get(actor, now - SEEN_NOTE_SECONDS) < SEEN_NOTE_SECONDS:
            return
        if len(self._noted) >= KNOWN:
            self._noted.clear()
        self._noted[actor] = now
        writer.do(context._replace(actor=actor), BeSeen())
