"""The store: what is true now and what happened, written together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleet.domain.data import NamedTuple
from fleet.domain.entry import Entry
from fleet.domain.message import Message
from fleet.domain.run import Host, Progress, Run, Slots
from fleet.domain.task import Task

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from fleet.domain.event import Event


Record = Task | Run | Message | Progress | Host | Slots | Entry


class Put(NamedTuple):
    """Write this record. Version 0: it must not exist; else it must be as it was read."""

    record: Record


class Same(NamedTuple):
    """Write nothing, but insist that this record is still as it was read."""

    record: Record


Change = Put | Same


class TaskQuery(NamedTuple):
    """Which tasks. Empty means any; newest first, unless `oldest_first`."""

    states: tuple[str, ...] = ()
    project: str = ""
    team: str = ""
    parent: str = ""
    before: str = ""  # the id after which the page starts
    limit: int = 50
    oldest_first: bool = False
    assignee: str = ""
    branches: tuple[str, ...] = ()  # it asks for one of these
    branch_end: str = ""  # it asks for a longer branch that ends like this
    at_work: bool = False  # running; or asked for now or in a terminal, and in view


class MessageQuery(NamedTuple):
    """Which messages of one kind. Empty means any; newest first.

    About one task; or of those that are said in a team, where: in a chat, or to a name.
    """

    kind: str
    task: str = ""
    team: str = ""
    topic: str = ""
    state: str = ""
    before: str = ""  # the id after which the page starts
    limit: int = 50
    type: str = ""  # of a post


class EntryQuery(NamedTuple):
    """Which entries of one kind. Empty means any; newest first.

    `text`: each of these words is in theirs. `text_is`: of a member, all of the text.
    `counting_at`: those that count then.
    """

    kind: str
    team: str = ""
    owner: str = ""
    text: str = ""
    text_is: str = ""
    counting_at: int = 0
    before: str = ""
    limit: int = 50


class Totals(NamedTuple):
    """How much there is, in all teams. `ready`: tasks that only wait for capacity."""

    members: int = 0
    chats: int = 0
    messages: int = 0
    live_runs: int = 0
    ready: int = 0


class Store(Protocol):
    """The present and the past, written together."""

    def commit(self, changes: Sequence[Change], events: Sequence[Event]) -> list[Record]:
        """Write all of it or, raising `Conflict`, nothing. Returns the records as they now are."""

    def together(self, *, alone: bool = True) -> AbstractContextManager[None]:
        """The commits in here reach the disk at its end, with one wait; if that fails, none does.

        Each may fail `alone`; else one that does so spoils all: `Spoiled`, and none was made.
        """

    def now(self) -> int:
        """The store's clock, by which leases are judged."""

    def new_id(self, kind: str) -> str:
        """`t-31`; never given twice."""

    def task(self, task_id: str) -> Task:
        """Raise `NotFound` when there is none; so does whatever else finds one thing by its id."""

    def tasks(self, query: TaskQuery) -> list[Task]: ...

    def tasks_by_id(self, ids: Sequence[str]) -> dict[str, Task]:
        """Those of them that exist."""

    def dependents(self, task_id: str) -> list[str]: ...

    def counts(self) -> dict[str, int]:
        """How many tasks are in each state."""

    def totals(self) -> Totals: ...  # from indexes and counters: no table is read as a whole

    def candidates(self, *, now: int, limit: int) -> list[Task]:
        """Tasks that nothing in the store holds back, by priority, then age."""

    def run(self, run_id: str) -> Run: ...

    def runs(self, task_id: str) -> list[Run]:
        """Oldest first."""

    def live_runs(self, *, host: str = "") -> list[Run]: ...

    def runs_by_id(self, run_ids: Sequence[str]) -> dict[str, Run]:
        """Those of them that exist."""

    def message(self, message_id: str) -> Message: ...

    def messages(self, task_id: str, *, newest: int = 0) -> list[Message]:
        """Oldest first; all of them, or the newest."""

    def open_questions(self, task_ids: Sequence[str]) -> list[Message]:
        """The unanswered questions of these tasks; oldest first."""

    def questions(self, *, team: str = "", after: str = "", limit: int = 100) -> list[Message]:
        """The unanswered questions of tasks that have not ended; oldest first.

        `after`: the last of the page before.
        """

    def open_messages(self, kind: str, *, limit: int = 100) -> list[Message]:
        """Unanswered questions, undelivered words; oldest first."""

    def find_messages(self, query: MessageQuery) -> list[Message]: ...

    def entry(self, kind: str, team: str, key: str) -> Entry | None: ...

    def entry_by_id(self, entry_id: str) -> Entry: ...

    def entries(self, query: EntryQuery) -> list[Entry]: ...

    def prune(self, kind: str, team: str, *, now: int) -> None: ...  # those that count no longer

    def progress(self, run_ids: Sequence[str]) -> dict[str, Progress]: ...

    def slots(self, names: Sequence[str] = ()) -> dict[str, Slots]:
        """Those named, or all."""

    def hosts(self) -> dict[str, Host]: ...

    def events(
        self, *, after: int = 0, task: str = "", limit: int = 1000, newest: bool = False
    ) -> list[Event]:
        """In order of number; with `newest`, the last ones."""

    def changed_at(self, task_ids: Sequence[str]) -> dict[str, int]:
        """The time of the newest event about each of them, where there is one."""

    def limit(self, seconds: float) -> None:
        """Raise `TooSlow` from what is read after these seconds, or is still going on then; 0: never."""

    def wait(self, timeout: float) -> None:
        """Return as soon as something may have changed, or when the time is up."""

    def close(self) -> None: ...
