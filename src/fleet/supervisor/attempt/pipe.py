"""Send messages to a coder through its standard input, in its own protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.task import SECOND
from fleet.supervisor.attempt.words import note_heard, unread

if TYPE_CHECKING:
    from fleet.domain.message import Message
    from fleet.ports import Coder, Listener
    from fleet.supervisor.attempt.attempt import Attempt

KEY = "words "
UNHEARD_SECONDS = 60.0  # after which an idle program that did not take a message never will
LINGER = 30 * SECOND  # for the program to exit after its last turn; then we stop it


class PipeChannel:
    """Sends messages through the keeper, which records their order; the coder hears them in order."""

    attended = False
    typing = False

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._launcher = attempt.parts.launcher
        self._sent_keys: list[str] | None = None
        self._sent_at = 0.0
        self._closed_at = 0

    def listen(self, coder: Coder, opening: str) -> Listener:
        return coder.listen(opening)

    def confirm(self) -> None:
        """Mark the messages that have entered the conversation as delivered."""
        run, conversation = self._attempt.run, self._attempt.conversation
        if not self._attempt.waiting or not conversation.heard_words:
            return
        heard = set(self._keys()[: conversation.heard_words])
        for message in self._attempt.waiting:
            if _key(message) in heard:
                note_heard(self._attempt.parts.store, run, message)

    def converse(self) -> None:
        """Send replies and the next message; when none is left after a turn, close the coder's input."""
        attempt = self._attempt
        for key, text in attempt.replies.items():
            self._launcher.tell(attempt.run.id, text, key=key)
        attempt.replies.clear()
        self.confirm()
        if self._closed_at:
            attempt.let_go = attempt.let_go or self._lingers()
        elif not self._speak() and attempt.conversation.at_rest:
            self._launcher.close(attempt.run.id)
            self._closed_at = attempt.now()

    def last_words(self) -> str:
        return ""  # a coder behind a pipe writes them to its standard error

    def end(self) -> None:
        """Do nothing: the pipe ended with the keeper."""

    def _lingers(self) -> bool:
        """Whether the program still runs long after its last turn ended and its input was closed."""
        return self._attempt.conversation.at_rest and self._attempt.now() - self._closed_at > LINGER

    def _speak(self) -> bool:
        """Send the next message. Return whether a message is on its way, so the input stays open."""
        attempt, now = self._attempt, self._attempt.parts.clock.since_boot()
        keys = self._keys()
        if len(keys) > attempt.conversation.heard_words:
            self._sent_at = self._sent_at or now
            return not attempt.conversation.at_rest or now - self._sent_at < UNHEARD_SECONDS
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
            self._sent_at = now
        return True

    def _keys(self) -> list[str]:
        if self._sent_keys is None:
            keys = self._launcher.delivered(self._attempt.run.id)
            self._sent_keys = [key for key in keys if key.startswith(KEY)]
        return self._sent_keys


def _key(message: Message) -> str:
    return f"{KEY}{message.id}"
