"""Speaking to a coder through its standard input, in the protocol that it has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.task import SECOND
from fleet.supervisor.attempt.words import note_heard, unread

if TYPE_CHECKING:
    from fleet.domain.message import Message
    from fleet.ports import Coder, Listener
    from fleet.supervisor.attempt.attempt import Attempt

KEY = "words "
UNHEARD_SECONDS = 60.0  # a program at rest that does not take words up by then never will
LINGER = 30 * SECOND  # for a program that does not end after its last turn, as some do now and then


class PipeChannel:
    """The keeper knows the order in which words were told; they are heard in the same order."""

    attended = False
    typing = False

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._launcher = attempt.parts.launcher
        self._told: list[str] | None = None
        self._told_at = 0.0
        self._closed_at = 0

    def listen(self, coder: Coder, opening: str) -> Listener:
        return coder.listen(opening)

    def confirm(self) -> None:
        """Words that have entered the conversation are delivered."""
        run, heard = self._attempt.run, self._attempt.heard
        if not self._attempt.waiting or not heard.heard_words:
            return
        known = set(self._keys()[: heard.heard_words])
        for message in self._attempt.waiting:
            if _key(message) in known:
                note_heard(self._attempt.parts.store, run, message)

    def converse(self) -> None:
        """Give its protocol what it waits for; once no turn goes on, there is no more to come."""
        attempt = self._attempt
        for key, text in attempt.replies.items():
            self._launcher.tell(attempt.run.id, text, key=key)
        attempt.replies.clear()
        self.confirm()
        if self._closed_at:
            attempt.let_go = attempt.let_go or self._lingers()
        elif not self._speak() and attempt.heard.at_rest:
            self._launcher.close(attempt.run.id)
            self._closed_at = attempt.now()

    def end(self) -> None:
        """Its pipe ended with its keeper."""

    def _lingers(self) -> bool:
        """It has said its result, has been told that nothing comes, and is still there."""
        return self._attempt.heard.at_rest and self._attempt.now() - self._closed_at > LINGER

    def _speak(self) -> bool:
        """Say what is next. True while something is still to be heard, so that nothing ends yet."""
        attempt, now = self._attempt, self._attempt.parts.clock.since_boot()
        keys = self._keys()
        if len(keys) > attempt.heard.heard_words:
            self._told_at = self._told_at or now
            return not attempt.heard.at_rest or now - self._told_at < UNHEARD_SECONDS
        fresh = [
            m for m in attempt.waiting if m.at > attempt.run.claimed_at and _key(m) not in keys
        ]
        fresh = unread(attempt.parts.store, attempt.run, fresh)
        if not fresh:
            return False
        text = attempt.listener().words(fresh[0].text)
        if text is not None:
            self._launcher.tell(attempt.run.id, text, key=_key(fresh[0]))
            keys.append(_key(fresh[0]))
            self._told_at = now
        return True

    def _keys(self) -> list[str]:
        if self._told is None:
            keys = self._launcher.told(self._attempt.run.id)
            self._told = [key for key in keys if key.startswith(KEY)]
        return self._told


def _key(message: Message) -> str:
    return f"{KEY}{message.id}"
