"""Words that were sent to a run: told to its coder one at a time, and confirmed once heard.

That a run heard them, and read what they tell of, is one commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.access import SUPERVISOR
from fleet.domain.event import Event, Kind
from fleet.domain.message import delivered
from fleet.operations.messages.deliver import is_read, read_marks
from fleet.ports import Put

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.message import Message
    from fleet.domain.run import Run
    from fleet.domain.transcript import Conversation
    from fleet.ports import Change, Listener, Store
    from fleet.supervisor.parts import Parts

KEY = "words "
UNHEARD = 60.0  # seconds: a program at rest that does not take words up never will


class Speaking:
    """The order in which words were told is the keeper's; the order in which they are heard, too."""

    def __init__(self, parts: Parts, run_id: str) -> None:
        self._parts = parts
        self._run = run_id
        self._told: list[str] | None = None
        self._told_at = 0.0

    def confirm(self, run: Run, waiting: Sequence[Message], heard: Conversation) -> None:
        """Those that have entered the conversation are delivered."""
        if not waiting or not heard.heard_words:
            return
        known = set(self._keys()[: heard.heard_words])
        for message in waiting:
            if f"{KEY}{message.id}" in known:
                note_heard(self._parts.store, run, message)

    def speak(
        self, run: Run, waiting: Sequence[Message], heard: Conversation, listener: Listener
    ) -> bool:
        """Say what is next. True while something is still to be heard, so that nothing ends yet."""
        now = self._parts.clock.since_boot()
        told = self._keys()
        if len(told) > heard.heard_words:
            self._told_at = self._told_at or now
            return not heard.at_rest or now - self._told_at < UNHEARD
        fresh = [m for m in waiting if m.at > run.claimed_at and f"{KEY}{m.id}" not in told]
        fresh = unread(self._parts.store, run, fresh)
        if not fresh:
            return False
        text = listener.words(fresh[0].text)
        if text is not None:
            key = f"{KEY}{fresh[0].id}"
            self._parts.launcher.tell(self._run, text, key=key)
            told.append(key)
            self._told_at = now
        return True

    def _keys(self) -> list[str]:
        if self._told is None:
            keys = self._parts.launcher.told(self._run)
            self._told = [key for key in keys if key.startswith(KEY)]
        return self._told


def changes_of(store: Store, run: Run, message: Message, *, now: int) -> list[Change]:
    marks = read_marks(store, message, run.id, now=now)
    return [Put(delivered(message, at=now)), *marks]


def note_heard(store: Store, run: Run, message: Message) -> None:
    now = store.now()
    fact = Event(Kind.MESSAGE_HEARD, run.task, SUPERVISOR, now, run.id, {"message": message.id})
    store.commit(changes_of(store, run, message, now=now), [fact])


def unread(store: Store, run: Run, waiting: Sequence[Message]) -> list[Message]:
    """Without those that tell of what it has found and read by itself: it hears nothing twice."""
    left = []
    for message in waiting:
        if is_read(store, message, run.id):
            note_heard(store, run, message)
        else:
            left.append(message)
    return left
