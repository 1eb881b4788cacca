"""Notify a person when a task asks, fails or ends; driven by the log of events alone.

Where several hosts share a store, the host of the run sends the notice. When that host is down, or
there was no run, the host with the lowest id that is up sends it.
"""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple
from fleet.domain.errors import NotFound, Unavailable
from fleet.domain.event import Kind
from fleet.domain.inbox import ended_item, question_item
from fleet.domain.task import TaskState

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleet.config import Settings
    from fleet.domain.event import Event
    from fleet.domain.message import Message
    from fleet.domain.run import Host
    from fleet.domain.task import Task
    from fleet.ports import Mark, Notifier, Store

MAX_TRIES = 3
TRY_AGAIN_SECONDS = 1.0  # before the second try; twice as long before the third
BATCH = 200
MAX_UNMARKED_EVENTS = 500  # events without a notice, after which the mark is written anyway
MAX_CHARACTERS = 500  # of the question, or of why the task failed


class Notice(NamedTuple):
    event: str  # as in `notify.about`
    task: str
    title: str
    text: str
    state: str
    at: int

    def body(self) -> dict[str, Any]:
        """The body that a webhook is sent. Slack shows `text`, Discord `content`."""
        text = f"{self.title}: {self.text}"
        return {**self._asdict(), "text": text, "content": text}


def notice_of(event: Event, task: Task, message: Message | None) -> Notice | None:
    """The notice for this event; None for an event that no person needs to see.

    `message` is the one that the event names.
    """
    if event.type == Kind.MESSAGE_ASKED and message is not None:
        item = question_item(task, message)
        options = "".join(f"\n{n}. {o}" for n, o in enumerate(item.options, 1))
        text = f"{_cut(item.words)}{options}\n{item.actions[0].command}"
        return Notice("asked", task.id, f"{task.id} asks", text, "asking", event.at)
    if event.type != Kind.TASK_SETTLED:
        return None
    state = str(event.data.get("state", ""))
    match state:
        case "failed":
            text = f"{task.title}\n{_cut(task.tally.why)}\n{_next(task, TaskState.FAILED)}".strip()
            return Notice("failed", task.id, f"{task.id} failed", text, state, event.at)
        case "open" if event.data.get("why"):
            text = f"{task.title}\n{_cut(str(event.data['why']))}"
            return Notice("failed", task.id, f"{task.id} needs you", text, state, event.at)
        case "done":
            return Notice("done", task.id, f"{task.id} is done", task.title, state, event.at)
        case "review":
            title = f"{task.id} waits for your review"
            text = f"{task.title}\n{_next(task, TaskState.REVIEW)}"
            return Notice("done", task.id, title, text, state, event.at)
    return None


def alert_of(event: Event) -> Notice:
    title = f"{event.data.get('subject', 'Alert')} from {event.actor}"
    return Notice("alert", "", title, _cut(str(event.data.get("text", ""))), "", event.at)


def _next(task: Task, state: TaskState) -> str:
    """The command to type, as in the inbox; empty for a task with children, which has no own work."""
    item = ended_item(replace(task, state=state))
    return "" if task.join is not None else item.actions[0].command


def _cut(text: str) -> str:
    clean = "".join(c if c.isprintable() or c == "\n" else " " for c in text).strip()
    return clean if len(clean) <= MAX_CHARACTERS else clean[: MAX_CHARACTERS - 1] + "…"


def notifying_host(hosts: Mapping[str, Host], run_host: str, *, here: str, now: int) -> str:
    """The id of the host that sends the notice, as seen from `here`."""
    awake = {here} | {h.id for h in hosts.values() if h.lease_until > now and h.holder}
    return run_host if run_host in awake else min(awake)


class Notices:
    """The loop calls `step` in every round; a thread does the slow sending."""

    def __init__(
        self,
        store: Store,
        *,
        host: str,
        settings: Callable[[], Settings],
        notifiers: Callable[[], Sequence[Notifier]],
        mark: Mark,
        warn: Callable[[str], None],
        clean: Callable[[str], str] = str,
    ) -> None:
        self._store = store
        self._host = host
        self._settings = settings
        self._notifiers = notifiers
        self._mark = mark
        self._warn = warn
        self._clean = clean
        self._last: int | None = None
        self._marked = 0
        self._sender: Sender | None = None

    def step(self) -> None:
        self._report()
        settings = self._settings().notify
        if not settings.any_channel:
            self._forget()
            return
        if self._last is None:
            self._begin()
        assert self._last is not None
        for event in self._store.events(after=self._last, limit=BATCH):
            notice = self._notice(event)
            if notice is not None and notice.event in settings.about:
                self._send(event.number, notice)
            self._last = event.number
        if self._last - self._marked > MAX_UNMARKED_EVENTS:
            self._write_mark()

    def close(self, seconds: float) -> None:
        """Wait for the notices being sent; the next supervisor sends those that are left."""
        if self._sender is not None:
            self._sender.close(seconds)
        self._report()
        if self._last is not None:
            self._write_mark()

    def _begin(self) -> None:
        """Continue after the last supervisor's mark; without one, or in another store, start from now."""
        newest = self._store.events(limit=1, newest=True)
        last = newest[0].number if newest else 0
        marked = self._mark.read()
        self._last = self._marked = last if marked is None or marked > last else marked
        self._mark.write(self._marked)

    def _forget(self) -> None:
        if self._last is not None or self._mark.read() is not None:
            self._mark.write(None)
        self._last = None

    def _notice(self, event: Event) -> Notice | None:
        if event.type == Kind.ALERT_RAISED:
            return alert_of(event) if self._is_ours("") else None
        if event.type not in {Kind.MESSAGE_ASKED, Kind.TASK_SETTLED}:
            return None
        try:
            task = self._store.task(event.task)
            message_id = str(event.data.get("message", ""))
            message = self._store.message(message_id) if message_id else None
            run_id = event.run or task.run_id
            run_host = self._store.run(run_id).host if run_id else ""
        except NotFound:  # pruned since
            return None
        return notice_of(event, task, message) if self._is_ours(run_host) else None

    def _is_ours(self, run_host: str) -> bool:
        """Whether this host sends the notice."""
        store, here = self._store, self._host
        return notifying_host(store.hosts(), run_host, here=here, now=store.now()) == here

    def _send(self, number: int, notice: Notice) -> None:
        if self._sender is None:
            self._sender = Sender(self._mark)
        safe = notice._replace(title=self._clean(notice.title), text=self._clean(notice.text))
        self._sender.put(number, safe.body(), self._notifiers())

    def _write_mark(self) -> None:
        """Move the mark past events without a notice, once all earlier notices are sent."""
        if (self._sender is None or self._sender.idle) and self._last is not None:
            self._marked = self._last
            self._mark.write(self._marked)

    def _report(self) -> None:
        while self._sender is not None and self._sender.failures:
            self._warn(self._sender.failures.pop(0))


class Sender:
    """Sends notices one after the other, in a thread of its own."""

    def __init__(self, mark: Mark) -> None:
        self._mark = mark
        self._todo: queue.Queue[tuple[int, dict[str, Any], Sequence[Notifier]]] = queue.Queue()
        self._broken: dict[str, str] = {}
        self._closing = threading.Event()
        self.failures: list[str] = []
        threading.Thread(target=self._work, daemon=True).start()

    @property
    def idle(self) -> bool:
        return not self._todo.unfinished_tasks

    def put(self, number: int, body: dict[str, Any], notifiers: Sequence[Notifier]) -> None:
        self._todo.put((number, body, notifiers))

    def close(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self.idle and time.monotonic() < until:
            time.sleep(0.01)
        self._closing.set()

    def _work(self) -> None:
        while not self._closing.is_set():
            number, body, notifiers = self._todo.get()
            for notifier in notifiers:
                self._notify(notifier, body)
            if not self._closing.is_set():  # else the next supervisor sends it again
                try:
                    self._mark.write(number)
                except OSError as error:
                    self.failures.append(f"notified: {error}")
            self._todo.task_done()

    def _notify(self, notifier: Notifier, body: dict[str, Any]) -> None:
        """A notifier that failed last time gets one try, so that the others do not wait for it."""
        tries = 1 if notifier.name in self._broken else MAX_TRIES
        for number in range(tries):
            try:
                notifier.send(body)
            except Unavailable as error:
                why = error.message
            except Exception as error:  # noqa: BLE001  # a bug in it must not end the supervisor
                why = f"{type(error).__name__}: {error}"
            else:
                self._broken.pop(notifier.name, None)
                return
            if number < tries - 1 and self._closing.wait(TRY_AGAIN_SECONDS * 2**number):
                return
        if self._broken.get(notifier.name) != why:
            self._broken[notifier.name] = why
            self.failures.append(f"{notifier.name}: {body['task']} could not be notified: {why}")
