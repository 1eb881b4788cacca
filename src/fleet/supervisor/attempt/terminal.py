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
from fleet.domain.task import SECOND, Mode
from fleet.ports import InTerminal, ScreenState
from fleet.supervisor.attempt.attempt import Attempt
from fleet.supervisor.attempt.limits import out_of_time, spent_up
from fleet.supervisor.attempt.words import note_heard, unread

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.domain.run import Outcome, Run
    from fleet.domain.transcript import Cut
    from fleet.ports import Job, Listener
    from fleet.supervisor.parts import Here, Parts

AGAIN = 15 * SECOND  # after which what was pasted and not taken is pasted once more
TRIES = 3
FRESH = 0.5  # seconds for which a look tells what is to be seen
SHORTEST = SECOND // 64
GLANCE = SECOND // 8  # between two looks at a screen on which nothing is known to have happened
PROMPT = "prompt"  # what is typed, if it is no message


def begin(parts: Parts, here: Here, run: Run) -> Attempt:
    """One run, in a terminal or not."""
    in_terminal = parts.store.task(run.task).spec.mode == Mode.TERMINAL
    return TerminalAttempt(parts, here, run) if in_terminal else Attempt(parts, here, run)


class Typed(NamedTuple):
    """Words that were pasted: when last, how often, and how many it had heard before."""

    at: int
    times: int
    before: int


class TerminalAttempt(Attempt):
    def __init__(self, parts: Parts, here: Here, run: Run) -> None:
        super().__init__(parts, here, run)
        self._silence_from = (-1, 0)  # with so many lines heard, since then
        self._typing: Job | None = None
        self._look: Job | None = None  # at its screen
        self._looked = (0, run.claimed_at)  # with so many lines heard, then
        self._pause = 2 * GLANCE  # no program is up sooner
        self._found = (False, 0.0)  # whether it is ready, by a look at that time since boot
        self._boxed_at = 0  # when its prompt box was first seen, empty

    def _listener_of(self, opening: str) -> Listener:
        assert isinstance(self._coder, InTerminal)
        return self._coder.watch(opening)

    @cached_property
    def _typed(self) -> dict[str, Typed]:
        """Also by an earlier supervisor, which may not have lived to see that they were heard."""
        found: dict[str, Typed] = {}
        for fact in self._parts.store.events(task=self.run.task, limit=200, newest=True):
            if fact.type == Kind.MESSAGE_TYPED and fact.run == self.run.id:
                key, times = fact.data["message"], int(fact.data["times"])
                found[key] = Typed(fact.at, times, int(fact.data["before"]))
        return found

    def _converse(self) -> None:
        """Between turns, and with no dialog on its screen, what waits is pasted."""
        self._confirm()
        if self._is_typing():
            return
        if self.run.closed and self._heard.at_rest:
            self._let_go = True
            return
        first = "" if self._heard.turns else self._parts.launcher.first(self.run.id)
        fresh = [m for m in self.waiting if m.at > self.run.claimed_at]
        if not first and not self._typed.keys() & {m.id for m in fresh}:
            fresh = unread(self._parts.store, self.run, fresh)
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
        if not self._heard.wants and (self._heard.at_rest or not self._heard.turns):
            return True
        lines, since = self._silence_from
        if self._heard.lines != lines:
            self._silence_from = (self._heard.lines, self._now())
            return False
        if self._now() - since < SILENT * SECOND:
            return False
        return self._parts.terminal.screen(self.run.id).state is ScreenState.READY

    def _paste(self, key: str, text: str) -> None:
        """Written down before it is done: it may be done twice, but not unknown."""
        now, heard = self._now(), self._heard.heard_words
        at, times, before = self._typed.get(key, Typed(-AGAIN, 0, heard))
        words = self._ear().words(text)
        tries = 1 if text.startswith("/") else TRIES  # a command of its own is not always heard
        if words is None or now - at < AGAIN or times >= tries:
            return
        if self._is_ready(now) and not self._begins_by_itself(key, now):
            self._typed[key] = Typed(now, times + 1, before)
            told = {"message": key, "times": str(times + 1), "before": str(before)}
            self._parts.store.commit([], [self._event(Kind.MESSAGE_TYPED, now, **told)])
            self._typing = self._parts.quick.begin(
                partial(self._parts.terminal.paste, self.run.id, words)
            )

    def _begins_by_itself(self, key: str, now: int) -> bool:
        """It was started with its prompt, so what it hears next is that, and no message.

        One that is a command of its own begins no turn, and is not waited for for ever.
        """
        if key == PROMPT or self._heard.turns or not self._task.prompt:
            return False
        self._boxed_at = self._boxed_at or now
        return now - self._boxed_at < AGAIN

    def _is_ready(self, now: int) -> bool:
        """As its screen shows; looked at again when it has said something, or after a while.

        What it has said may be a moment before what it draws, so the first pauses are short.
        """
        if self._look is None:
            lines, at = self._looked
            if self._heard.lines == lines and 0 <= now - at < self._pause:
                return False
            said = self._heard.lines != lines
            self._pause = SHORTEST if said else min(2 * self._pause, GLANCE)
            self._looked = (self._heard.lines, now)
            self._look = self._parts.quick.begin(self._find_ready)
        if not self._look.done():
            return False
        done, self._look = self._look, None
        done.result()
        ready, seen_at = self._found
        return ready and self._parts.clock.since_boot() - seen_at < FRESH

    def _find_ready(self) -> None:
        ready = self._parts.terminal.is_ready(self.run.id)
        self._found = (ready, self._parts.clock.since_boot())

    def _confirm(self) -> None:
        """What it heard next is what was pasted: nobody else's words were in its prompt box."""
        for message in self.waiting:
            typed = self._typed.get(message.id)
            if typed and self._heard.heard_words > typed.before:
                note_heard(self._parts.store, self.run, message)

    def _end(self, judged: Callable[[Run], Outcome]) -> None:
        """Its terminal is closed too, unless somebody sits there; the text of its screen is kept."""
        super()._end(judged)
        with suppress(FleetError):  # it has none any more
            if not self._parts.terminal.screen(self.run.id).watchers:
                self._parts.launcher.end(self.run.id)

    def _reason_to_cut(self) -> Cut | None:
        """Nobody hurries a person: only its own time and budget count."""
        settings, now = self._settings, self._now()
        return out_of_time(self.run, self._task, settings, now) or spent_up(
            self.run, self._task, self._heard, settings, now
        )
