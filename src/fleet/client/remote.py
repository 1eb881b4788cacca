"""A client of a server elsewhere."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from fleet.client.client import Client, with_sights
from fleet.domain.access import Actor, Role, allow
from fleet.domain.errors import FleetError, Refused
from fleet.operations.catalogue import Request, find
from fleet.operations.shared.names import MAX_ROWS, PAGE
from fleet.operations.shared.pages import pages_of_replies

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.app import App
    from fleet.app.server_address import Remote
    from fleet.operations.catalogue import Operation
    from fleet.operations.tasks.at_work import AgentRow

Reply = TypeVar("Reply")

RETRY_SECONDS = 5.0  # after which a stream that broke is tried again
POLL_SECONDS = 1.0  # between two looks while there is no stream


class RemoteClient(Client):
    """A server elsewhere does all the work."""

    is_remote = True

    def __init__(self, app: App) -> None:
        from fleet.app.server_address import remote_of

        super().__init__(app)
        self._remote = remote_of(app)
        self._news = EventNews(self._remote)

    @cached_property
    def actor(self) -> Actor:
        from fleet.app.identity import person

        team, run = self.loaded.settings.team, self._app.env.get("FLEET_RUN_ID", "")
        return Actor(run, Role.WORKER, team, run) if run else person(self._app.env, team)

    def call(self, request: Request[Reply]) -> Reply:
        operation = find(type(request))
        if not self.actor.run:  # a user may have chosen a lower role than that of the token
            allow(self.actor, operation.permission)
        return ask_by_pages(self._remote, operation, request)

    def call_all(self, requests: Sequence[Request[Any]]) -> list[FleetError | None]:
        return [self._try_call(request) for request in requests]

    def _try_call(self, request: Request[Any]) -> FleetError | None:
        try:
            self.call(request)
        except FleetError as error:
            return error
        return None

    def now(self) -> int:
        return time.time_ns() // 1000

    def wait(self, seconds: float) -> None:
        self._news.wait(seconds)

    def state(self, task_id: str) -> str:
        from fleet.operations.tasks.show import ShowTask

        return self.call(ShowTask(task_id)).task.state

    @property
    def url(self) -> str:
        return self._remote.url

    @property
    def server_url(self) -> str:
        return self._remote.url

    def server_of(self, run_id: str) -> Remote | None:
        del run_id
        return self._remote

    def health(self) -> dict[str, Any]:
        """The server's health page; raise `Unavailable` when it does not answer."""
        health: dict[str, Any] = self._remote.say("GET", "/health")
        return health

    def supervised(self) -> bool:
        return True  # we cannot know, and do not warn

    def note_merged(self) -> None:
        """The server's supervisor looks."""

    def land(self, settled: Callable[[], bool], *, patience: float) -> None:
        until = time.monotonic() + patience
        while not settled() and time.monotonic() < until:
            self.wait(0.5)

    def deliver(self, message: str, *, patience: float) -> None:
        from fleet.operations.messages.ask_answer_send import ReadMessage

        until = time.monotonic() + patience
        while (words := self.call(ReadMessage(message))).status == "queued":
            if self.state(words.task) != "running" or time.monotonic() > until:
                return
            self.wait(0.2)

    def observed(self, rows: tuple[AgentRow, ...] | list[AgentRow]) -> list[dict[str, Any]]:
        """Return the rows with what the server observes, as the terminals are there."""
        from fleet.operations.tasks.observe import LookAtAgents
        from fleet.ports import Sight

        live = tuple(row.task for row in rows if row.run and row.ended_at is None)
        seen = self.call(LookAtAgents(live)) if live else ()
        sights = {
            s.run: Sight(s.doing, s.by, s.cpu, s.memory, s.exit, s.screen, s.asks) for s in seen
        }
        return with_sights(rows, sights)

    def opening(self, run_id: str) -> str:
        del run_id
        return ""

    def last_screen(self, run_id: str) -> None:
        del run_id

    def refresh(self, task_id: str) -> None:
        pass

    def this_machine(self, action: str) -> NoReturn:
        raise local_only(action)


class EventNews:
    """Lets callers wait for the next event; a thread reads the server's event stream."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._happened = threading.Event()
        self._reader: threading.Thread | None = None
        self._retry_at = 0.0

    def wait(self, seconds: float) -> None:
        """Return at the next event, or when the time is up; at once when the stream begins."""
        if self._reader is None and time.monotonic() >= self._retry_at:
            self._retry_at = time.monotonic() + RETRY_SECONDS
            self._reader = threading.Thread(target=self._read, daemon=True)
            self._reader.start()
        pause = seconds if self._reader else min(seconds, POLL_SECONDS)
        self._happened.wait(pause)
        self._happened.clear()

    def _read(self) -> None:
        with suppress(FleetError):
            for line in self._remote.lines("/events"):
                if line.startswith("data: "):
                    self._happened.set()
        self._reader = None
        self._happened.set()


def ask_by_pages(remote: Remote, operation: Operation, request: Request[Reply]) -> Reply:
    """Ask for a long list page by page."""
    limit = getattr(request, "limit", PAGE)
    if not hasattr(request, "before") or 1 <= limit <= PAGE or limit < 0:
        reply: Reply = remote.call(operation.name, request, operation.reply)
        return reply
    pages = pages_of_replies(
        lambda page: remote.call(operation.name, page, operation.reply), request, PAGE
    )
    rows = islice(chain.from_iterable(pages), limit or MAX_ROWS)
    return tuple(rows)  # type: ignore[return-value]  # the reply of a list operation is a tuple


def local_only(action: str) -> Refused:
    return Refused(
        f"{action} acts on this machine, and FLEET_URL names another server.",
        fix="Unset FLEET_URL, or run the command on the server's machine.",
        code="local_only",
    )
