"""The store: what is true now and what happened, written together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleet.domain.data import NamedTuple
from fleet.domain.entry import Entry
from fleet.domain.hosts.piece import Piece
from fleet.domain.landing.landing import GateResult, Landing, Train
from fleet.domain.message import Message
from fleet.domain.run import Host, Progress, Run, Slots
from fleet.domain.task import Task

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from fleet.domain.event import Event
    from fleet.domain.schedule import Claim


Record = (
    Task | Run | Message | Progress | Host | Slots | Entry | Landing | Train | GateResult | Piece
)


class Put(NamedTuple):
    """Write this record. Version 0: it must not exist; else it must be as it was read."""

    record: Record


class Same(NamedTuple):
    """Write nothing, but insist that this record is still as it was read."""

    record: Record


Change = Put | Same


class Offer(NamedTuple):
    """Tasks that a host may claim, and the slots that it asked for, by name."""

    tasks: list[Task]
    slots: dict[str, Slots]


# Statuses, other than a task's states, by which a store can filter
STANDINGS = (
    "ready", "asking", "paused", "assigned", "held", "children", "waiting", "postponed",
    "landing", "landed", "beaten",
)  # fmt: skip


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
    branches: tuple[str, ...] = ()  # the task requests one of these branches
    branch_end: str = ""  # the task requests a longer branch name with this end
    at_work: bool = False  # running; or asked for now or in a terminal, and in view
    is_held: bool = False  # open, and not started before an actor changes something
    may_be: tuple[str, ...] = ()  # those of one of these `STANDINGS`, and perhaps some others


class MessageQuery(NamedTuple):
    """Which messages of one kind. Empty means any; newest first.

    Those about one task, or those in a team, limited to a chat or a recipient.
    """

    kind: str
    task: str = ""
    team: str = ""
    topic: str = ""
    state: str = ""
    before: str = ""  # the id after which the page starts
    limit: int = 50
    type: str = ""  # the type of a post


class EntryQuery(NamedTuple):
    """Which entries of one kind. Empty means any; newest first.

    `text`: words that the entry's text contains; `text_is`: a member's whole text.
    `counting_at`: only entries that are valid at this time.
    """

    kind: str
    team: str = ""
    owner: str = ""
    namesake: str = ""  # the owner, ignoring case
    text: str = ""
    text_is: str = ""
    counting_at: int = 0
    before: str = ""
    limit: int = 50


class LandingQuery(NamedTuple):
    """Which landings. Empty means any; newest first."""

    train: str = ""
    task: str = ""
    team: str = ""
    open_only: bool = False
    before: str = ""  # the id after which the page starts
    limit: int = 50


class TaskSearch(NamedTuple):
    """Which tasks, by words of their title and prompt; newest first. See `domain.search`."""

    words: tuple[str, ...]
    team: str = ""
    project: str = ""
    task: str = ""
    since: int = 0
    limit: int = 50


class Totals(NamedTuple):
    """Counts over all teams. `ready`: tasks that only wait for capacity."""

    members: int = 0
    chats: int = 0
    messages: int = 0
    live_runs: int = 0
    ready: int = 0


class Store(Protocol):
    """Records and events, which are written in one transaction."""

    def commit(self, changes: Sequence[Change], events: Sequence[Event]) -> list[Record]:
        """Write all of it, and return the new records; or raise `Conflict`, and write nothing."""

    def claim(self, claims: Sequence[Claim]) -> list[Run]:
        """Make the claims that are still possible, in order and in one commit; return the runs.

        A claim is skipped if its task has changed since it was read, is being claimed by another
        host, or waits for something again, or if a slot has no room left.
        """

    def together(self, *, alone: bool = True) -> AbstractContextManager[None]:
        """Write all commits of the block to the disk at its end, with one sync, or none of them.

        With `alone` a commit may fail by itself; otherwise one that fails undoes all: `Spoiled`.
        """

    def now(self) -> int:
        """Return the time of the store's clock, which decides about leases."""

    def new_id(self, kind: str) -> str:
        """Return a new id such as `t-31`, which is never given again."""

    def task(self, task_id: str) -> Task:
        """Return a task; like all methods that find one thing by its id, raise `NotFound`."""

    def tasks(self, query: TaskQuery) -> list[Task]: ...

    def search_tasks(self, query: TaskSearch) -> list[Task]:
        """Return the tasks that have all the words; none without words.

        Changed words are found once their event `task.edited` is written.
        """

    def index_words(self, limit: int = 1000) -> int:
        """Index the words of added or edited tasks, which a search also does; return how many."""

    def tasks_by_id(self, ids: Sequence[str]) -> dict[str, Task]:
        """The ones of these that exist, by id."""

    def dependents(self, task_id: str) -> list[str]: ...

    def waiting(self, ids: Sequence[str]) -> dict[str, int]:
        """Return how many open tasks wait for each of these tasks, without those with none."""

    def counts(self, *, team: str = "", project: str = "") -> dict[str, int]:
        """How many tasks are in each state, of all or of this team and project."""

    def totals(self) -> Totals: ...  # from indexes and counters: no table is read as a whole

    def candidates(self, *, now: int, limit: int) -> list[Task]:
        """Return tasks that nothing in the store keeps from running, by priority, then age."""

    def offer(self, host: str, *, now: int, limit: int, names: Sequence[str] = ()) -> Offer:
        """Return candidates for a host to claim, and the slots of these names.

        When several hosts look at once, each gets different tasks first. This is only a hint; the
        claim decides.
        """

    def candidates_after(
        self, after: Task | None, *, team: str = "", now: int, limit: int
    ) -> list[Task]:
        """Return a page of candidates after this one, of one team or of all."""

    def run(self, run_id: str) -> Run: ...

    def runs(self, task_id: str) -> list[Run]:
        """Oldest first."""

    def live_runs(self, *, host: str = "") -> list[Run]: ...

    def runs_by_id(self, run_ids: Sequence[str]) -> dict[str, Run]:
        """The ones of these that exist, by id."""

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

    def prune(self, kind: str, team: str, *, now: int) -> None: ...  # removes expired entries

    def first_event(self) -> int:
        """Return the number before which events may be gone; readers of less must start anew."""

    def forget_events(self, *, upto: int, limit: int) -> int:
        """Remove the next events up to this number, but not those of tasks that have not ended.

        Return how many numbers were checked, at most `limit`; 0: it is done. The last event stays.
        """

    def forget_tasks(self, tasks: Sequence[Task]) -> list[str]:
        """Remove ended tasks with their runs, messages, landings and events; return their ids.

        It keeps those that have changed since they were read or that another task refers to.
        """

    def landing(self, landing_id: str) -> Landing: ...

    def landings(self, query: LandingQuery) -> list[Landing]: ...

    def trains(self) -> dict[str, Train]: ...

    def gate_results(self, ids: Sequence[str]) -> dict[str, GateResult]:
        """The ones of these that exist, by id."""

    def pieces(self, commits: Sequence[str]) -> dict[str, Piece]:
        """The ones of these that exist, by id."""

    def progress(self, run_ids: Sequence[str]) -> dict[str, Progress]: ...

    def slots(self, names: Sequence[str] = ()) -> dict[str, Slots]:
        """The slots of these names, or all of them."""

    def hosts(self) -> dict[str, Host]: ...

    def events(
        self,
        *,
        after: int = 0,
        before: int = 0,
        task: str = "",
        limit: int = 1000,
        newest: bool = False,
    ) -> list[Event]:
        """Return events by number, with `newest` the last. `before`: up to that one; 0: all."""

    def events_of_kinds(self, kinds: Sequence[str], *, after: int, limit: int) -> list[Event]:
        """Return the next events of these kinds, by number."""

    def number_before(self, at: int) -> int:
        """Return the number of an event after which all have this time or a later one; 0: none.

        It takes a few steps, however many events there are, as their numbers grow with time.
        """

    def changed_at(self, task_ids: Sequence[str]) -> dict[str, int]:
        """Return the time of each task's newest event, if it has one."""

    def limit(self, seconds: float) -> None:
        """Let reads raise `TooSlow` once these seconds have passed; 0: never."""

    def wait(self, timeout: float) -> None:
        """Wait until something may have changed, for at most `timeout` seconds."""

    def close(self) -> None: ...
