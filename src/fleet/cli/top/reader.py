"""The threads of `fleet top`: one reads, one does what was asked for. Neither holds up the screen.

Each has a client of its own, because a store belongs to one thread.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Any

from fleet.cli.terminal.view import Text
from fleet.cli.top.rows import RUNNING, TopReading
from fleet.domain.data import NamedTuple
from fleet.domain.errors import FleetError, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.cli.terminal.view import Result
    from fleet.client import Client
    from fleet.operations.tasks.rows import TaskRow
    from fleet.operations.tasks.show import TaskDetail

LOOK_SECONDS = 1.0  # seconds between two looks
SHARE = 10  # of its time that a reader spends reading is at most one in so many
MOST_TASKS, MOST_ITEMS, MOST_AGENTS = 1000, 200, 100
LINES = 2000  # of a transcript
DELIVERY_SECONDS = 10.0  # for an agent to read what was sent to it
DIFF_SECONDS = 5.0  # for which a diff is shown before it is made again


class WantedPage(NamedTuple):
    """What is shown of which task: `output`, `diff` or `about`."""

    task: str
    run: str = ""
    tab: str = "output"


class Page(NamedTuple):
    """`lines` of what was wanted; `live`: the newest line is the last one."""

    wanted: WantedPage
    lines: list[str]
    live: bool = False


class TopReader(threading.Thread):
    def __init__(
        self,
        connect: Callable[[], Client],
        show: Callable[[TopReading], None],
        turn: Callable[[Page], None],
        *,
        everywhere: bool = False,
    ) -> None:
        super().__init__(daemon=True, name="top-reader")
        self._connect, self._show, self._turn = connect, show, turn
        self.everywhere = everywhere
        self._wanted: WantedPage | None = None
        self._output: Output | None = None
        self._diff: tuple[float, WantedPage, list[str]] | None = None
        self._wake, self._over = threading.Event(), threading.Event()

    def want(self, wanted: WantedPage | None) -> None:
        if wanted != self._wanted:
            self._wanted = wanted
            self._wake.set()

    def again(self) -> None:
        """Something was done: look at once."""
        self._diff = None
        self._wake.set()

    def end(self) -> None:
        self._over.set()
        self._wake.set()

    def run(self) -> None:
        client: Client | None = None
        while not self._over.is_set():
            began = time.monotonic()
            try:
                client = client or self._connect()
                self._read_page(client)
                self._show(self._look(client))
            except FleetError as error:
                self._show(TopReading(error=error.message))
            except OSError as error:
                self._show(TopReading(error=str(error)))
            took = time.monotonic() - began
            self._wake.wait(max(LOOK_SECONDS, took * (SHARE - 1)))
            if self._wake.is_set():
                self._wake.clear()
                if client is not None and not self._over.is_set():
                    self._try_page(client)

    def _look(self, client: Client) -> TopReading:
        from fleet.operations.inbox import ListInbox
        from fleet.operations.tasks.list import ListTasks

        project = client.scope(everywhere=self.everywhere)
        items = client.call(ListInbox(project, limit=MOST_ITEMS))
        tasks = client.call(ListTasks(project, limit=MOST_TASKS))
        doing, supervised = self._doing(client, tasks), client.supervised()
        return TopReading(items, tasks, client.now(), doing=doing, supervised=supervised)

    def _doing(self, client: Client, tasks: Sequence[TaskRow]) -> dict[str, str]:
        from fleet.operations.tasks.observe import LookAtAgents

        live = [task.id for task in tasks if task.status in RUNNING][:MOST_AGENTS]
        try:
            sights = client.call(LookAtAgents(tuple(live))) if live else ()
        except FleetError:  # one of them has ended meanwhile, or the server does not tell
            return {}
        return {sight.task: sight.doing for sight in sights}

    def _try_page(self, client: Client) -> None:
        try:
            self._read_page(client)
        except (FleetError, OSError):
            return  # the next look says what is wrong

    def _read_page(self, client: Client) -> None:
        wanted = self._wanted
        if wanted is None or not wanted.task:
            return
        try:
            page = self._page(client, wanted)
        except FleetError as error:
            if error.exit_status == 3 and client.is_remote:
                raise
            page = Page(wanted, [error.message, error.fix])
        if wanted == self._wanted:
            self._turn(page)

    def _page(self, client: Client, wanted: WantedPage) -> Page:
        match wanted.tab:
            case "diff":
                return Page(wanted, self._diff_lines(client, wanted))
            case "about":
                return Page(wanted, about(client, wanted.task))
        if not wanted.run:
            return Page(wanted, ["It has not run yet.", "", *about(client, wanted.task)])
        if self._output is None or self._output.run != wanted.run:
            self._output = Output(client, wanted.run)
        return Page(wanted, self._output.read(), live=True)

    def _diff_lines(self, client: Client, wanted: WantedPage) -> list[str]:
        from fleet.operations.worktrees import DiffWorktree

        if self._diff is None or self._diff[1] != wanted or self._diff[0] < time.monotonic():
            diff = client.call(DiffWorktree(wanted.task))
            lines = diff.text.splitlines() or ["It has changed nothing."]
            lines += ["… the rest is cut"] if diff.cut else []
            self._diff = (time.monotonic() + DIFF_SECONDS, wanted, lines)
        return self._diff[2]


class Output:
    """What a run says: the screen of its terminal while it has one, else its transcript."""

    def __init__(self, client: Client, run: str) -> None:
        from fleet.operations.tasks.show import ShowTask

        self.run, self._client = run, client
        detail = client.call(ShowTask(run))
        self._terminal = detail.spec.mode == "terminal" and _is_live(detail)
        self._lines: list[str] | None = None

    def read(self) -> list[str]:
        if self._terminal:
            from fleet.operations.tasks.transcript import ReadScreen

            try:
                return list(self._client.call(ReadScreen(self.run)).lines)
            except FleetError:  # it has ended, or is on another machine
                self._terminal = False
        return self._transcript()

    def _transcript(self) -> list[str]:
        from fleet.cli.tasks.logs import so_far
        from fleet.operations.tasks.transcript import ReadTranscript

        if self._lines is None:
            self._spoken, self._read, last = so_far(self._client, self.run, LINES, raw=False)
        else:
            self._spoken = self._client.call(ReadTranscript(self.run, self._spoken.offset))
            last = [self._read(line) for line in self._spoken.lines]
        texts = [line["text"] for line in last if line["text"]]
        known = self._lines or []
        self._lines = [*known, *(one for text in texts for one in text.splitlines())][-LINES:]
        return self._lines or [
            "It has said nothing yet." if self._spoken.live else "It said nothing."
        ]


def _is_live(detail: TaskDetail) -> bool:
    return any(not run.ending for run in detail.runs)


def about(client: Client, task: str) -> list[str]:
    """As `fleet show` says it."""
    from fleet.cli.tasks.views import detail_view
    from fleet.cli.terminal.layout import lines
    from fleet.operations.tasks.show import ShowTask

    view = detail_view(client.call(ShowTask(task)), client.now())
    return lines(view, room=None, colour=False)


class Deed(NamedTuple):
    """An operation by its name, so that one can take the place of another; `words` say it is done."""

    operation: str
    words: str
    fields: dict[str, Any]


class Hands(threading.Thread):
    """Carries out one thing after the other, and tells how it went: words, and whether it failed."""

    def __init__(self, connect: Callable[[], Client], tell: Callable[[str, bool], None]) -> None:
        super().__init__(daemon=True, name="top-hands")
        self._connect, self._tell = connect, tell
        self._todo: queue.Queue[Deed] = queue.Queue()

    def do(self, deed: Deed) -> None:
        self._todo.put(deed)

    def run(self) -> None:
        client: Client | None = None
        while True:
            deed = self._todo.get()
            try:
                client = client or self._connect()
                words = carry_out(client, deed)
            except FleetError as error:
                self._tell(f"{error.message} {error.fix}".strip(), True)
            except OSError as error:
                self._tell(str(error), True)
            else:
                self._tell(words, False)


def carry_out(client: Client, deed: Deed) -> str:
    """Do it as the command of that name does it, and say what came of it."""
    if deed.operation == "message.send":
        from fleet.cli.tasks.messages import tell

        task, text = deed.fields["task"], deed.fields["text"]
        return _sentence(tell(client, task, (text,), None, wait=DELIVERY_SECONDS))
    try:
        client.call(request_of(deed.operation)(**deed.fields))
    except Refused as error:
        if error.code != "untested":
            raise
        return _queued_to_land(client, deed.fields["task"])
    return deed.words


def _queued_to_land(client: Client, task: str) -> str:
    """Its gate has to pass first: the supervisor sees to it, or else we do."""
    from fleet.cli.landing.land import land_now
    from fleet.operations.landing.landing import LandTasks

    if not client.supervised():
        return _sentence(land_now(client, (task,), ""))
    (row,) = client.call(LandTasks((task,)))
    return f"{row.task} waits to land on {row.onto} ({row.id})."


def _sentence(result: Result) -> str:
    return result.view.text if isinstance(result.view, Text) else ""


def request_of(operation: str) -> Any:
    """The request of the operation of that name."""
    return requests()[operation]


def requests() -> dict[str, Any]:
    from fleet.operations.catalogue import operations

    if not _REQUESTS:
        _REQUESTS.update({known.name: known.request for known in operations()})
    return _REQUESTS


_REQUESTS: dict[str, Any] = {}
