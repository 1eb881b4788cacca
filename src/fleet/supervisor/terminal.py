"""A run in a terminal that people can attach to: its prompt and words are pasted there.

It ends when its program does, or when somebody settles it; between turns it just waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.message import MessageState, delivered
from fleet.domain.task import SECOND, Mode
from fleet.domain.transcript import SaidKind
from fleet.ports import InTerminal, Put
from fleet.supervisor.attempt import Attempt
from fleet.supervisor.limits import out_of_time, spent_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.run import Run
    from fleet.domain.transcript import Cut, Said
    from fleet.ports import Listener
    from fleet.supervisor.parts import Here, Parts

AGAIN = 15 * SECOND  # after which what was pasted and not taken is pasted once more
TRIES = 3


def begin(parts: Parts, here: Here, run: Run) -> Attempt:
    """One run, in a terminal or not."""
    in_terminal = parts.store.task(run.task).spec.mode == Mode.TERMINAL
    return TerminalAttempt(parts, here, run) if in_terminal else Attempt(parts, here, run)


class TerminalAttempt(Attempt):
    def __init__(self, parts: Parts, here: Here, run: Run) -> None:
        super().__init__(parts, here, run)
        self._taken: set[str] = set()  # what it was told and has begun to work on
        self._pasted: dict[str, tuple[int, int]] = {}  # when, and how often

    def _listener_of(self, opening: str) -> Listener:
        assert isinstance(self._coder, InTerminal)
        return self._coder.watch(opening)

    def _noticed(self, said: Sequence[tuple[int, Said]]) -> None:
        self._taken |= {_plain(s.text) for _, s in said if s.kind is SaidKind.HEARD}

    def _converse(self) -> None:
        """Between turns, and with no dialog on its screen, what waits is pasted."""
        self._confirm()
        if self.run.closed and self._heard.at_rest:
            self._let_go = True
            return
        if self._heard.wants or not (self._heard.at_rest or not self._heard.turns):
            return
        first = "" if self._heard.turns else self._parts.launcher.first(self.run.id)
        fresh = [m for m in self.waiting if m.at > self.run.claimed_at]
        if first:
            self._paste("prompt", first)
        elif fresh:
            self._paste(fresh[0].id, fresh[0].text)

    def _paste(self, key: str, text: str) -> None:
        now = self._now()
        at, times = self._pasted.get(key, (-AGAIN, 0))
        words = self._ear().words(text)
        if words is None or now - at < AGAIN or times >= TRIES:
            return
        if self._parts.terminal.is_ready(self.run.id):
            self._parts.terminal.paste(self.run.id, words)
            self._pasted[key] = (now, times + 1)

    def _confirm(self) -> None:
        store, now = self._parts.store, self._parts.store.now()
        for message in self.waiting:
            words = _plain(message.text)
            if words in self._taken and message.state is MessageState.OPEN:
                event = self._event("message.heard", now, message=message.id)
                store.commit([Put(delivered(message, at=now))], [event])
                self._taken.discard(words)

    def _reason_to_cut(self) -> Cut | None:
        """Nobody hurries a person: only its own time and budget count."""
        settings, now = self._settings, self._now()
        return out_of_time(self.run, self._task, settings, now) or spent_up(
            self.run, self._task, self._heard, settings, now
        )


def _plain(text: str) -> str:
    """As it is compared: an interface may draw a tab as blanks, and drops those at the end."""
    return " ".join(text.split())
