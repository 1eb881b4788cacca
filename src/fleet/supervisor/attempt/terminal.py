"""A run in a terminal that people can attach to: what it was not started with is pasted there.

It ends when its program does, or when somebody settles it; between turns it just waits.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING

from fleet.domain.activity import SILENT
from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError
from fleet.domain.event import Kind
from fleet.domain.task import SECOND
from fleet.ports import InTerminal, ScreenState
from fleet.supervisor.attempt.words import note_heard, unread

if TYPE_CHECKING:
    from fleet.ports import Coder, Job, Listener
    from fleet.supervisor.attempt.attempt import Attempt

PASTE_AGAIN = 15 * SECOND  # after which what was pasted and not taken is pasted once more
MAX_PASTES = 3
LOOK_TRUST_SECONDS = 0.5  # seconds for which a look tells what is to be seen
SHORTEST_PAUSE = SECOND // 64
LONGEST_PAUSE = (
    SECOND // 8
)  # between two looks at a screen on which nothing is known to have happened
PROMPT = "prompt"  # what is typed, if it is no message


class Typed(NamedTuple):
    """Words that were pasted: when last, how often, and how many it had heard before."""

    at: int
    times: int
    before: int


class TerminalChannel:
    """A program in a terminal, which people may attend."""

    attended = True

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._parts = attempt.parts
        self._silence_from = (-1, 0)  # with so many lines heard, since then
        self._typing: Job | None = None
        self._look: Job | None = None  # at its screen
        self._looked = (0, attempt.run.claimed_at)  # with so many lines heard, then
        self._pause = 2 * LONGEST_PAUSE  # no program is up sooner
        self._found = (False, 0.0)  # whether it is ready, by a look at that time since boot
        self._boxed_at = 0  # when its prompt box was first seen, empty

    def listen(self, coder: Coder, opening: str) -> Listener:
        assert isinstance(coder, InTerminal)
        return coder.watch(opening)

    def confirm(self) -> None:
        """Only what was pasted is to be confirmed, and `converse` does that."""

    @cached_property
    def _typed(self) -> dict[str, Typed]:
        """Also by an earlier supervisor, which may not have lived to see that they were heard."""
        found: dict[str, Typed] = {}
        for fact in self._parts.store.events(task=self._attempt.run.task, limit=200, newest=True):
            if fact.type == Kind.MESSAGE_TYPED and fact.run == self._attempt.run.id:
                key, times = fact.data["message"], int(fact.data["times"])
                found[key] = Typed(fact.at, times, int(fact.data["before"]))
        return found

    def converse(self) -> None:
        """Between turns, and with no dialog on its screen, what waits is pasted."""
        attempt = self._attempt
        self._confirm()
        if self._is_typing():
            return
        if attempt.run.closed and attempt.heard.at_rest:
            attempt.let_go = True
            return
        first = "" if attempt.heard.turns else self._parts.launcher.first(attempt.run.id)
        fresh = [m for m in attempt.waiting if m.at > attempt.run.claimed_at]
        if not first and not self._typed.keys() & {m.id for m in fresh}:
            fresh = unread(self._parts.store, attempt.run, fresh)
        key, text = (PROMPT, first) if first else ("", "")
        if not first and fresh:
            key, text = fresh[0].id, fresh[0].text
        if key and self._is_free():
            self._paste(key, text)

    @property
    def typing(self) -> bool:
        return self._typing is not None and not self._typing.done()

    def _is_typing(self) -> bool:
        """Beside the loop: a program may take its time to show what was pasted."""
        if self._typing is not None and self._typing.done():
            done, self._typing = self._typing, None
            done.result()
        return self._typing is not None

    def _is_free(self) -> bool:
        """By its words; or, when those have stopped without an end, by its screen.

        A turn that failed is told by no hook of some programs, nor that a dialog was answered.
        """
        heard = self._attempt.heard
        if not heard.wants and (heard.at_rest or not heard.turns):
            return True
        lines, since = self._silence_from
        if heard.lines != lines:
            self._silence_from = (heard.lines, self._attempt.now())
            return False
        if self._attempt.now() - since < SILENT * SECOND:
            return False
        return self._parts.terminal.screen(self._attempt.run.id).state is ScreenState.READY

    def _paste(self, key: str, text: str) -> None:
        """Written down before it is done: it may be done twice, but not unknown."""
        now, heard = self._attempt.now(), self._attempt.heard.heard_words
        at, times, before = self._typed.get(key, Typed(-PASTE_AGAIN, 0, heard))
        words = self._attempt.listener().words(text)
        tries = (
            1 if text.startswith("/") else MAX_PASTES
        )  # a command of its own is not always heard
        if words is None or now - at < PASTE_AGAIN or times >= tries:
            return
        if self._is_ready(now) and not self._begins_by_itself(key, now):
            self._typed[key] = Typed(now, times + 1, before)
            told = {"message": key, "times": str(times + 1), "before": str(before)}
            self._parts.store.commit([], [self._attempt.event(Kind.MESSAGE_TYPED, now, **told)])
            self._typing = self._parts.quick.begin(
                partial(self._parts.terminal.paste, self._attempt.run.id, words)
            )

    def _begins_by_itself(self, key: str, now: int) -> bool:
        """It was started with its prompt, so what it hears next is that, and no message.

        One that is a command of its own begins no turn, and is not waited for for ever.
        """
        if key == PROMPT or self._attempt.heard.turns or not self._attempt.task.prompt:
            return False
        self._boxed_at = self._boxed_at or now
        return now - self._boxed_at < PASTE_AGAIN

    def _is_ready(self, now: int) -> bool:
        """As its screen shows; looked at again when it has said something, or after a while.

        What it has said may be a moment before what it draws, so the first pauses are short.
        """
        if self._look is None:
            lines, at = self._looked
            if self._attempt.heard.lines == lines and 0 <= now - at < self._pause:
                return False
            said = self._attempt.heard.lines != lines
            self._pause = SHORTEST_PAUSE if said else min(2 * self._pause, LONGEST_PAUSE)
            self._looked = (self._attempt.heard.lines, now)
            self._look = self._parts.quick.begin(self._find_ready)
        if not self._look.done():
            return False
        done, self._look = self._look, None
        done.result()
        ready, seen_at = self._found
        return ready and self._parts.clock.since_boot() - seen_at < LOOK_TRUST_SECONDS

    def _find_ready(self) -> None:
        ready = self._parts.terminal.is_ready(self._attempt.run.id)
        self._found = (ready, self._parts.clock.since_boot())

    def _confirm(self) -> None:
        """What it heard next is what was pasted: nobody else's words were in its prompt box."""
        for message in self._attempt.waiting:
            typed = self._typed.get(message.id)
            if typed and self._attempt.heard.heard_words > typed.before:
                note_heard(self._parts.store, self._attempt.run, message)

    def end(self) -> None:
        """Close its terminal, unless a person is attached; the text of its screen is kept."""
        with suppress(FleetError):  # it has none any more
            if not self._parts.terminal.screen(self._attempt.run.id).watchers:
                self._parts.launcher.end(self._attempt.run.id)
