"""A run in a terminal that people can attach to: we paste later messages there.

The run ends when its program does, or when a person or the agent closes its task; between turns it
waits.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING

from fleet.domain.activity import SILENT
from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError
from fleet.domain.event import Kind
from fleet.domain.run import Wanted
from fleet.domain.task import SECOND
from fleet.ports import InTerminal, ScreenState
from fleet.supervisor.attempt.words import note_heard, unread

if TYPE_CHECKING:
    from fleet.domain.message import Message
    from fleet.ports import Coder, Job, Listener
    from fleet.supervisor.attempt.attempt import Attempt

PASTE_AGAIN = 15 * SECOND  # after which a message that the program did not take is pasted again
MAX_PASTES = 3
LOOK_TRUST_SECONDS = 0.5  # for which we rely on the last look at the screen
SHORTEST_PAUSE = SECOND // 64
LONGEST_PAUSE = SECOND // 8  # between two looks at an unchanged screen
COMMAND_TAKES = SECOND  # from Enter until we look whether the screen shows what a command did
TAKEN = frozenset({ScreenState.READY, ScreenState.PANEL})
PROMPT = "prompt"  # the key of the prompt, which is not a message
LAST_LINES = 2  # lines of the screen that are quoted when the program ended by itself
AN_ERROR = re.compile(
    r"\b(error|unable|failed|cannot|can't|could not|denied|invalid|not found|no such)\b",
    re.IGNORECASE,
)


class PastedMessage(NamedTuple):
    """A pasted message: when last, how often, and how many the program had heard before."""

    at: int
    times: int
    before: int


class TerminalChannel:
    """A program in a terminal, at which a person may sit."""

    attended = True

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._parts = attempt.parts
        self._silence_from = (-1, 0)  # (lines heard, since when)
        self._typing: Job | None = None
        self._look: Job | None = None  # at its screen
        self._looked = (0, attempt.run.claimed_at)  # (lines heard, when)
        self._pause = 2 * LONGEST_PAUSE  # no program starts faster
        self._ready_seen = (False, 0.0)  # (ready, seconds since boot of that look)
        self._box_seen_at = 0  # when its empty prompt box was first seen
        self._command_seen_at = 0  # when we last looked whether a command was carried out

    def listen(self, coder: Coder, opening: str) -> Listener:
        assert isinstance(coder, InTerminal)
        return coder.watch(opening)

    def confirm(self) -> None:
        """Do nothing: `converse` confirms the messages that it pasted."""

    @cached_property
    def _typed(self) -> dict[str, PastedMessage]:
        """What was pasted, by message; read from the log, as an earlier supervisor may have pasted it."""
        typed: dict[str, PastedMessage] = {}
        for fact in self._parts.store.events(task=self._attempt.run.task, limit=200, newest=True):
            if fact.type == Kind.MESSAGE_TYPED and fact.run == self._attempt.run.id:
                key, times = fact.data["message"], int(fact.data["times"])
                typed[key] = PastedMessage(fact.at, times, int(fact.data["before"]))
        return typed

    def converse(self) -> None:
        """Paste the next message, between turns and while the screen shows no dialog."""
        attempt = self._attempt
        self._confirm()
        if self._is_typing():
            return
        if self._is_closed():
            attempt.let_go = True
            return
        first = "" if attempt.conversation.turns else self._parts.launcher.first(attempt.run.id)
        fresh = [m for m in attempt.waiting if m.at > attempt.run.claimed_at]
        if not first and not self._typed.keys() & {m.id for m in fresh}:
            fresh = unread(self._parts.store, attempt.run, fresh)
        key, text = (PROMPT, first) if first else ("", "")
        if not first and fresh:
            key, text = fresh[0].id, fresh[0].text
        if key and self._is_free():
            self._paste(key, text)

    def _is_closed(self) -> bool:
        """Whether the task was closed and the coder is between turns."""
        run = self._attempt.run
        if run.wanted is Wanted.CLOSE:
            return self._is_free()
        return bool(run.closed) and self._attempt.conversation.at_rest

    @property
    def typing(self) -> bool:
        return self._typing is not None and not self._typing.done()

    def _is_typing(self) -> bool:
        """Whether the job that pastes still runs. Raise the error that it ended with."""
        if self._typing is not None and self._typing.done():
            done, self._typing = self._typing, None
            done.result()
        return self._typing is not None

    def _is_free(self) -> bool:
        """Whether it waits for input: by its transcript or, if that stopped mid-turn, its screen.

        Some programs have no hook that reports a failed turn or an answered dialog.
        """
        conversation = self._attempt.conversation
        if not conversation.wants and (conversation.at_rest or not conversation.turns):
            return True
        lines, since = self._silence_from
        if conversation.lines != lines:
            self._silence_from = (conversation.lines, self._attempt.now())
            return False
        if self._attempt.now() - since < SILENT * SECOND:
            return False
        return self._parts.terminal.screen(self._attempt.run.id).state is ScreenState.READY

    def _paste(self, key: str, text: str) -> None:
        """Record the paste, then begin it: after a crash we may paste twice, but never unrecorded."""
        now, heard_words = self._attempt.now(), self._attempt.conversation.heard_words
        at, times, before = self._typed.get(key, PastedMessage(-PASTE_AGAIN, 0, heard_words))
        words = self._attempt.listener().words(text)
        tries = 1 if text.startswith("/") else MAX_PASTES  # some commands are never reported
        if words is None or now - at < PASTE_AGAIN or times >= tries:
            return
        if self._is_ready(now) and not self._begins_by_itself(key, now):
            self._typed[key] = PastedMessage(now, times + 1, before)
            data = {"message": key, "times": str(times + 1), "before": str(before)}
            self._parts.store.commit([], [self._attempt.event(Kind.MESSAGE_TYPED, now, **data)])
            self._typing = self._parts.quick.begin(
                partial(self._parts.terminal.paste, self._attempt.run.id, words)
            )

    def _begins_by_itself(self, key: str, now: int) -> bool:
        """Whether the program is about to begin a turn with the prompt it was started with.

        Until then, the next thing that it hears is that prompt, not our message. A prompt that is one of
        the program's own commands begins no turn, so stop waiting after `PASTE_AGAIN`.
        """
        if key == PROMPT or self._attempt.conversation.turns or not self._attempt.task.prompt:
            return False
        self._box_seen_at = self._box_seen_at or now
        return now - self._box_seen_at < PASTE_AGAIN

    def _is_ready(self, now: int) -> bool:
        """Whether the screen shows an empty prompt box; look again after output, or a pause.

        A program may write its transcript just before it draws, so the first pauses are short.
        """
        if self._look is None:
            lines, at = self._looked
            if self._attempt.conversation.lines == lines and 0 <= now - at < self._pause:
                return False
            printed = self._attempt.conversation.lines != lines
            self._pause = SHORTEST_PAUSE if printed else min(2 * self._pause, LONGEST_PAUSE)
            self._looked = (self._attempt.conversation.lines, now)
            self._look = self._parts.quick.begin(self._look_if_ready)
        if not self._look.done():
            return False
        done, self._look = self._look, None
        done.result()
        ready, seen_at = self._ready_seen
        return ready and self._parts.clock.since_boot() - seen_at < LOOK_TRUST_SECONDS

    def _look_if_ready(self) -> None:
        ready = self._parts.terminal.is_ready(self._attempt.run.id)
        self._ready_seen = (ready, self._parts.clock.since_boot())

    def _confirm(self) -> None:
        """Mark a pasted message as heard once the program reports another input, or ran it as a command."""
        for message in self._attempt.waiting:
            typed = self._typed.get(message.id)
            if typed is None:
                continue
            heard = self._attempt.conversation.heard_words > typed.before
            if heard or self._is_carried_out(message, typed):
                note_heard(self._parts.store, self._attempt.run, message)

    def _is_carried_out(self, message: Message, typed: PastedMessage) -> bool:
        """Whether it was a command of the program's own that began no turn, such as /clear.

        No hook reports those: it was taken when the prompt box is empty again, or a panel is open.
        """
        now = self._attempt.now()
        due = max(typed.at + COMMAND_TAKES, self._command_seen_at + COMMAND_TAKES)
        if not message.text.startswith("/") or self.typing or now < due or not self._is_free():
            return False
        self._command_seen_at = now
        with suppress(FleetError):
            return self._parts.terminal.screen(self._attempt.run.id).state in TAKEN
        return False

    def last_words(self) -> str:
        """What the screen says of a program that ended before its first turn; else empty."""
        with suppress(FleetError):
            if not self._attempt.conversation.turns:
                return last_words(self._parts.terminal.screen(self._attempt.run.id).text)
        return ""

    def end(self) -> None:
        """Close its terminal, unless a person is attached; the text of its screen is kept."""
        with suppress(FleetError):  # the terminal is gone already
            if not self._parts.terminal.screen(self._attempt.run.id).watchers:
                self._parts.launcher.end(self._attempt.run.id)


def last_words(screen: str) -> str:
    """Return two lines: from the first that mentions an error, else the last ones.

    Lines without words, such as frames, do not count.
    """
    lines = [" ".join(line.split()) for line in screen.splitlines()]
    spoken = [line for line in lines if _is_sentence(line) and not line.startswith("Pane is dead")]
    errors = [at for at, line in enumerate(spoken) if AN_ERROR.search(line)]
    first = errors[0] if errors else max(len(spoken) - LAST_LINES, 0)
    return "; ".join(line.rstrip(".") for line in spoken[first : first + LAST_LINES])


def _is_sentence(line: str) -> bool:
    return len(re.findall(r"[^\W\d_]{2,}", line)) > 1
