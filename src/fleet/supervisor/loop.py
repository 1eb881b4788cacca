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

BUSY, IDLE = 0.1, 1.0  # seconds between rounds with and without runs; a commit wakes us at once
SOON = 0.005  # likewise, while a keeper is about to start
REST_SECONDS = 20.0  # between two whole rounds while nothing happens on a shared store
BATCH = 1000
ROUND = 0.5  # seconds a round may spend on reporting events, each of which may write files
# While the server in this process has many requests, which go first:
CROWD = 20  # events that are read at once
SLICE = 0.002  # seconds a round may spend on reporting events
REST = 0.02  # seconds between rounds
SHARE = 4  # or so many times as long as the last round took: it may look at thousands of tasks
BUGS = 5  # in a row, after which the process ends, so that a fresh one can be started


@dataclass(slots=True)
class LoopHooks:
    """What the loop calls besides `step`. If a hook fails, that is reported, and the others are called.

    `tell` gets each event. `also` is called after every step. `on_news` reads the store, so it is
    called only in whole rounds (see `Rounds`). `complaints` returns errors in settings, by project.
    `over` gets the text of a warning that no longer holds; `left` gets, by task, why the loop ends
    without waiting for it.
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

        `public` is written to the log instead, which every team can read.
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
            except Exception as error:  # noqa: BLE001  # the full disk, say, that the warning is about
                self.warn(f"files: {_message_of(error)}")

    def forget(self, topic: str) -> bool:
        text = self._warned.pop(topic, "")
        if text:
            self.over(text)
        return bool(text)

    def settings(self) -> None:
        """Report that a settings file has become invalid, or is valid again."""
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
    """Leave out a project's complaint that only repeats the home's, after the path of the file."""
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
    """Run the loop; if the store cannot be reached, try again while the agents work on."""
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
    """Makes most rounds cheap while nothing happens on a store that several hosts share.

    A whole round calls `step`. When this host has nothing to do, the other rounds only read new events
    and, now and then, look for tasks whose time has come.
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
            self._idle = self._hooks.idle()  # once per whole round: it may read the store
        return self._idle

    def sleep(self, store: Store, stopping: Callable[[], bool]) -> None:
        """Wait once more when this round was not whole and brought no news; a commit wakes us at once."""
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
    """Report new events; return the number of the last one, and whether no more are left.

    After `ROUND` seconds the rest waits for the next round, so that agents are started and leases
    renewed in between. A supervisor that stops does not report the rest; the next one writes the
    task folders that are missing.
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
    """The error as every team may read it."""
    return getattr(error, "public", "") or _message_of(error)


def _trace(error: Exception) -> str:
    import traceback  # noqa: PLC0415  # only when something is wrong

    return "".join(traceback.format_exception(error))
