"""The supervisor's loop: call `step` until `stopping`, or with `once` until all is done."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fleet.domain.access import SUPERVISOR
from fleet.domain.errors import FleetError
from fleet.domain.event import Event, Kind
from fleet.domain.run import RunState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from fleet.ports import Store, TaskFiles
    from fleet.supervisor.supervisor import Supervisor

BUSY, IDLE = 0.1, 1.0  # seconds between looks at transcripts; a commit wakes us at once
SOON = 0.005  # likewise, for a keeper that is about to start
REST_SECONDS = 20.0  # between two whole rounds on a shared store in which nothing happens
BATCH = 1000
ROUND = 0.5  # seconds for telling events, each of which may write files, before the next step
CROWD = 20  # events that are read at once in a crowd
SLICE = 0.002  # seconds for events in one round, while a server in this process is asked a lot
REST = 0.02  # seconds between rounds then: requests go first
SHARE = 4  # times as long as the round took, if that is longer: thousands of tasks may be looked at
BUGS = 5  # in a row, after which the process ends, so that a fresh one can be started


@dataclass(slots=True)
class LoopHooks:
    """What the loop calls besides `step`. A hook that fails is reported and holds up no other.

    `also` is called after every step, `on_news` only when something happened, something here is under
    way, or it has not been called for a while: it asks the store. `complaints` are by project. `over` gets the text of a
    warning that no longer holds, `left` by task why the loop ends without waiting for it.
    """

    tell: Callable[[Event], None]
    warn: Callable[[str], None]
    over: Callable[[str], None] = lambda _: None
    left: Callable[[Mapping[str, str]], None] = lambda _: None
    began: Callable[[], None] = lambda: None
    files: TaskFiles | None = None
    complaints: Callable[[], Mapping[str, str]] = dict
    also: Sequence[Callable[[], None]] = ()
    on_news: Sequence[Callable[[], None]] = ()
    idle: Callable[[], bool] = lambda: True  # whether nothing in `also` is under way
    crowded: Callable[[], bool] = lambda: False  # whether others need this process more now
    _warned: dict[str, str] = field(default_factory=dict)

    def heard(self, event: Event) -> None:
        self.safely("tell", self.tell, event)
        if self.files is not None:
            self.safely("files", self.files.note, event)

    def safely(self, name: str, act: Callable[..., None], *arguments: Any) -> None:
        try:
            act(*arguments)
        except Exception as error:  # noqa: BLE001  # whatever a hook does, the queue must go on
            self.say(name, f"{name}: {_message_of(error)}", f"{name}: {_public(error)}")
        else:
            self.forget(name)

    def say(self, topic: str, text: str, public: str = "") -> None:
        """Report the text once, until it changes. An empty text ends the warning.

        `public` is what the log says of it, which every team can read.
        """
        if self._warned.get(topic) == text:
            return
        self.forget(topic)
        if text:
            self._warned[topic] = text
            self.report(text, public)

    def report(self, text: str, public: str = "") -> None:
        """Warn the person who watches, and write to the dated log."""
        self.warn(text)
        self.note(public or text)

    def note(self, text: str) -> None:
        """Write to the dated log, which every team can read."""
        if self.files is not None:
            at = time.time_ns() // 1000
            fact = Event(Kind.SUPERVISOR_WARNED, "", SUPERVISOR, at, data={"text": text})
            try:
                self.files.note(fact)
            except Exception as error:  # noqa: BLE001  # likely what the warning is about
                self.warn(f"files: {_message_of(error)}")

    def forget(self, topic: str) -> bool:
        text = self._warned.pop(topic, "")
        if text:
            self.over(text)
        return bool(text)

    def settings(self) -> None:
        """Report that a settings file has become wrong, or is right again."""
        wrong = distinct(self.complaints())
        for project, text in wrong.items():
            self.say(f"settings {project}", f"Still with the settings from before: {text}")
        topics = [topic for topic in self._warned if topic.startswith("settings ")]
        for project in (topic.removeprefix("settings ") for topic in topics):
            if project not in wrong and self.forget(f"settings {project}"):
                news = f"The settings of {project or 'the home'} are read again."
                self.report(news)
                self.over(news)  # good news is not a warning that stays


def distinct(complaints: Mapping[str, str]) -> dict[str, str]:
    """Leave out a project's complaint that repeats the home's, under the whole path of its file."""
    home = complaints.get("", "\n")
    return {p: text for p, text in complaints.items() if not p or not text.endswith(home)}


def run(
    supervisor: Supervisor,
    store: Store,
    *,
    once: bool,
    stopping: Callable[[], bool],
    hooks: LoopHooks,
) -> None:
    """Go on when the store cannot be reached: it may come back, and the agents work meanwhile."""
    seen = last_number(store)
    supervisor.start()
    hooks.safely("began", hooks.began)
    bugs, pause, rounds = 0, SOON, Rounds(supervisor, hooks, once=once)
    while not stopping():
        began = time.monotonic()
        try:
            moved = rounds.next()
            before = seen
            seen, is_told = _tell_events(store, seen, hooks)
            _after_step(supervisor, hooks, news=rounds.whole)
            hooks.forget("loop")
            bugs = 0
            if once and is_told and supervisor.idle and hooks.idle():
                _tell_events(store, seen, hooks)  # of what was done after the last ones were told
                _leave(supervisor.left(), hooks)
                return
            rounds.news = moved or seen != before
            if hooks.crowded():
                time.sleep(max(REST, SHARE * (time.monotonic() - began)))
            elif moved or not is_told or (rounds.news and not rounds.whole):
                pause = SOON
            else:
                pause = _wait(store, supervisor, pause)
                rounds.sleep(store, stopping)
        except FleetError as error:
            hooks.say("loop", f"{error.message} Trying again.", f"{_public(error)} Trying again.")
            time.sleep(IDLE)
        except OSError as error:  # such as: too many open files
            hooks.say("loop", f"{error}. Trying again.")
            time.sleep(IDLE)
        except Exception as error:
            bugs += 1
            if bugs >= BUGS:
                raise
            hooks.say("loop", f"This is a bug in fleet: {_trace(error)}Trying again.")
            time.sleep(IDLE)


class Rounds:
    """Which rounds are `whole`, and in which we rest: beside other hosts, while nothing happens.

    Whatever a host may have to do comes with an event, with time, or from this machine. So one that
    has nothing to do asks for events, now and then for tasks whose time has come, and for no more.
    """

    def __init__(self, supervisor: Supervisor, hooks: LoopHooks, *, once: bool) -> None:
        self._supervisor, self._hooks, self._once = supervisor, hooks, once
        self._looked_at = -REST_SECONDS
        self._idle = False  # after the last whole round
        self.whole = self.news = True

    def next(self) -> bool:
        """Return whether there may be more to do at once."""
        self.whole = self.news or self._once or not self._may_rest()
        if not self.whole:
            return self._supervisor.rest()
        self._looked_at = time.monotonic()
        return self._supervisor.step()

    def _may_rest(self) -> bool:
        if time.monotonic() - self._looked_at >= REST_SECONDS or not self._supervisor.may_rest:
            return False
        if self.whole:
            self._idle = self._hooks.idle()  # it may ask the store
        return self._idle

    def sleep(self, store: Store, stopping: Callable[[], bool]) -> None:
        """Twice as long when we rest: a commit wakes us at once."""
        if not self.whole and not self.news and not stopping():
            store.wait(IDLE)


def _leave(left: Mapping[str, str], hooks: LoopHooks) -> None:
    for task, why in sorted(left.items()):
        hooks.note(f"{task} is left: {why}")
    hooks.safely("left", hooks.left, left)


def _wait(store: Store, supervisor: Supervisor, pause: float) -> float:
    """Wait for a commit, or for a while. Return how long to wait the next time."""
    starting = any(a.run.state is RunState.CLAIMED for a in supervisor.attempts.values())
    if not starting:
        store.wait(BUSY if supervisor.attempts else IDLE)
        return SOON
    began = time.monotonic()
    store.wait(pause)
    return SOON if time.monotonic() - began < pause else min(BUSY, pause * 1.5)


def _tell_events(store: Store, seen: int, hooks: LoopHooks) -> tuple[int, bool]:
    """Return the number of the last event that was told, and whether it was the last of all.

    After a while the rest waits for the next round: agents are started and leases renewed between.
    A supervisor that stops does not tell the rest; the next one writes the folders that are missing.
    """
    began = time.monotonic()
    while True:
        crowded = hooks.crowded()
        limit = CROWD if crowded else BATCH
        events = store.events(after=seen, limit=limit)
        for event in events:
            seen = event.number
            hooks.heard(event)
            if time.monotonic() - began > (SLICE if crowded else ROUND):
                return seen, False
        if len(events) < limit or crowded:
            return seen, len(events) < limit


def _after_step(supervisor: Supervisor, hooks: LoopHooks, *, news: bool) -> None:
    hooks.say("runs", joined(supervisor.trouble.items()))
    hooks.say("tasks", joined(supervisor.stuck.items()))
    hooks.say("files", hooks.files.trouble if hooks.files is not None else "")
    hooks.settings()
    for number, act in enumerate((*(hooks.on_news if news else ()), *hooks.also)):
        hooks.safely(getattr(act, "__qualname__", f"step {number}"), act)


def joined(trouble: Iterable[tuple[str, str]]) -> str:
    return "; ".join(f"{run}: {why}" for run, why in sorted(trouble))


def last_number(store: Store) -> int:
    newest = store.events(limit=1, newest=True)
    return newest[0].number if newest else 0


def _message_of(error: Exception) -> str:
    return error.message if isinstance(error, FleetError) else f"{type(error).__name__}: {error}"


def _public(error: Exception) -> str:
    """What every team may read of it."""
    return getattr(error, "public", "") or _message_of(error)


def _trace(error: Exception) -> str:
    import traceback  # noqa: PLC0415  # only when something is wrong

    return "".join(traceback.format_exception(error))
