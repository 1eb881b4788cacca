"""A person is told when a task asks, fails or ends. Only the log of events is read for it.

Several hosts on one store: an event is told by the host of its run, or when that one is silent (or
there was no run) by the first host that is not.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple
from fleet.domain.errors import NotFound, Unavailable
from fleet.domain.event import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleet.config import Settings
    from fleet.domain.event import Event
    from fleet.domain.message import Message
    from fleet.domain.run import Host
    from fleet.domain.task import Task
    from fleet.ports import Mark, Notifier, Store

MAX_TRIES = 3
TRY_AGAIN_SECONDS = 1.0  # seconds before the second try; twice as long before the third
BATCH = 200
MAX_UNMARKED_EVENTS = 500  # events without a notice, after which the number is written all the same
MAX_CHARACTERS = 500  # characters of what was asked, or of why it failed


class Notice(NamedTuple):
    event: str  # as in `notify.about`
    task: str
    title: str
    text: str
    state: str
    at: int

    def body(self) -> dict[str, Any]:
        """What a webhook gets. Slack shows `text`, Discord `content`."""
        text = f"{self.title}: {self.text}"
        return {**self._asdict(), "text": text, "content": text}


def notice_of(event: Event, task: Task, message: Message | None) -> Notice | None:
    """None when it is nothing to tell a person. `message` is the one that the event names."""
    if event.type == Kind.MESSAGE_ASKED and message is not None:
        options = "".join(f"\n{n}. {o}" for n, o in enumerate(message.options, 1))
        text = f"{_cut(message.text)}{options}\nfleet answer {task.id} TEXT"
        return Notice("asked", task.id, f"{task.id} asks", text, "asking", event.at)
    if event.type != Kind.TASK_SETTLED:
        return None
    state = str(event.data.get("state", ""))
    match state:
        case "failed":
            text = f"{task.title}\n{_cut(task.tally.why)}".strip()
            return Notice("failed", task.id, f"{task.id} failed", text, state, event.at)
        case "done":
            return Notice("done", task.id, f"{task.id} is done", task.title, state, event.at)
        case "review":
            title = f"{task.id} waits for your review"
            return Notice("done", task.id, title, task.title, state, event.at)
    return None


def _cut(text: str) -> str:
    clean = "".join(c if c.isprintable() or c == "\n" else " " for c in text).strip()
    return clean if len(clean) <= MAX_CHARACTERS else clean[: MAX_CHARACTERS - 1] + "…"


def teller(hosts: Mapping[str, Host], run_host: str, *, here: str, now: int) -> str:
    """The id of the host that tells it, as seen from one that is awake."""
    awake = {here} | {h.id for h in hosts.values() if h.lease_until > now and h.holder}
    return run_host if run_host in awake else min(awake)


class Notices:
    """`step` is done in every round of the loop; what is slow is done beside it."""

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
        self._voice: Voice | None = None

    def step(self) -> None:
        self._report()
        wanted = self._settings().notify
        if not (wanted.desktop or wanted.webhook):
            self._forget()
            return
        if self._last is None:
            self._begin()
        assert self._last is not None
        for event in self._store.events(after=self._last, limit=BATCH):
            notice = self._notice(event)
            if notice is not None and notice.event in wanted.about:
                self._speak(event.number, notice)
            self._last = event.number
        if self._last - self._marked > MAX_UNMARKED_EVENTS:
            self._remember()

    def close(self, seconds: float) -> None:
        """Wait so long for what is under way; what is not told then, the next one tells."""
        if self._voice is not None:
            self._voice.rest(seconds)
        self._report()
        if self._last is not None:
            self._remember()

    def _begin(self) -> None:
        """Where the last supervisor left off; the first time, or in another store, from now."""
        newest = self._store.events(limit=1, newest=True)
        now = newest[0].number if newest else 0
        held = self._mark.read()
        self._last = self._marked = now if held is None or held > now else held
        self._mark.write(self._marked)

    def _forget(self) -> None:
        if self._last is not None or self._mark.read() is not None:
            self._mark.write(None)
        self._last = None

    def _notice(self, event: Event) -> Notice | None:
        if event.type not in {Kind.MESSAGE_ASKED, Kind.TASK_SETTLED}:
            return None
        try:
            task = self._store.task(event.task)
            named = str(event.data.get("message", ""))
            message = self._store.message(named) if named else None
            by = event.run or task.run_id
            run_host = self._store.run(by).host if by else ""
        except NotFound:  # pruned since
            return None
        store, here = self._store, self._host
        if teller(store.hosts(), run_host, here=here, now=store.now()) != here:
            return None
        return notice_of(event, task, message)

    def _speak(self, number: int, notice: Notice) -> None:
        if self._voice is None:
            self._voice = Voice(self._mark)
        safe = notice._replace(title=self._clean(notice.title), text=self._clean(notice.text))
        self._voice.say(number, safe.body(), self._notifiers())

    def _remember(self) -> None:
        """Past events that are nobody's news, once all before them is told."""
        if (self._voice is None or self._voice.idle) and self._last is not None:
            self._marked = self._last
            self._mark.write(self._marked)

    def _report(self) -> None:
        while self._voice is not None and self._voice.failures:
            self._warn(self._voice.failures.pop(0))


class Voice:
    """Tells one after the other, in a thread of its own."""

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

    def say(self, number: int, body: dict[str, Any], by: Sequence[Notifier]) -> None:
        self._todo.put((number, body, by))

    def rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self.idle and time.monotonic() < until:
            time.sleep(0.01)
        self._closing.set()

    def _work(self) -> None:
        while not self._closing.is_set():
            number, body, by = self._todo.get()
            for notifier in by:
                self._tell(notifier, body)
            if not self._closing.is_set():  # else it is told once more, rather than not at all
                try:
                    self._mark.write(number)
                except OSError as error:
                    self.failures.append(f"notified: {error}")
            self._todo.task_done()

    def _tell(self, notifier: Notifier, body: dict[str, Any]) -> None:
        """One that failed the last time gets one try, so that the others do not wait for it."""
        tries = 1 if notifier.name in self._broken else MAX_TRIES
        for number in range(tries):
            try:
                notifier.send(body)
            except Unavailable as error:
                why = error.message
            except Exception as error:  # noqa: BLE001  # a bug in it ends no supervisor
                why = f"{type(error).__name__}: {error}"
            else:
                self._broken.pop(notifier.name, None)
                return
            if number < tries - 1 and self._closing.wait(TRY_AGAIN_SECONDS * 2**number):
                return
        if self._broken.get(notifier.name) != why:
            self._broken[notifier.name] = why
            self.failures.append(f"{notifier.name}: {body['task']} could not be notified: {why}")
