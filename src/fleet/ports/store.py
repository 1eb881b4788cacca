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
    """Tasks that a host may claim, and by name the slots that it asked for."""

    tasks: list[Task]
    slots: dict[str, Slots]


# Where a task can stand that a store finds by itself, though it is not one of its states
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
    branches: tuple[str, ...] = ()  # it asks for one of these
    branch_end: str = ""  # it asks for a longer branch that ends like this
    at_work: bool = False  # running; or asked for now or in a terminal, and in view
    is_held: bool = False  # open, until an actor lets it run, or changes what keeps it from running
    may_be: tuple[str, ...] = ()  # every task of one of these `STANDINGS`, and perhaps some others


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
    namesake: str = ""  # whose owner differs from this name at most by the case of its letters
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
    """Which tasks, by words of their title and prompt: see `domain.search`. Newest first."""

    words: tuple[str, ...]
    team: str = ""
    project: str = ""
    task: str = ""
    since: int = 0
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

    def claim(self, claims: Sequence[Claim]) -> list[Run]:
        """Make those of these claims, in their order and in one commit, that can still be made; return the runs.

        Passed over are those whose task changed since it was read, is being taken by another host
        at this moment, or waits for something again; and those for which a slot has no room left.
        """

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

    def search_tasks(self, query: TaskSearch) -> list[Task]:
        """The tasks that have all the words; without words, none. A change of words counts with its event `task.edited`."""

    def index_words(self, limit: int = 1000) -> int:
        """Index the words of some tasks that were added or edited, as a search does; how many."""

    def tasks_by_id(self, ids: Sequence[str]) -> dict[str, Task]:
        """The ones of these that exist, by id."""

    def dependents(self, task_id: str) -> list[str]: ...

    def waiting(self, ids: Sequence[str]) -> dict[str, int]:
        """How many open tasks wait for each of them, where any do."""

    def counts(self, *, team: str = "", project: str = "") -> dict[str, int]:
        """How many tasks are in each state, of all or of this team and project."""

    def totals(self) -> Totals: ...  # from indexes and counters: no table is read as a whole

    def candidates(self, *, now: int, limit: int) -> list[Task]:
        """Tasks that nothing in the store holds back, by priority, then age."""

    def offer(self, host: str, *, now: int, limit: int, names: Sequence[str] = ()) -> Offer:
        """The candidates for a host that is going to claim them, and the slots of these names.

        Where many hosts look at once, each is given others first for a moment. It is a hint; the
        claim decides.
        """

    def candidates_after(
        self, after: Task | None, *, team: str = "", now: int, limit: int
    ) -> list[Task]:
        """A page of them for people: those that come after this one, of one team or of all."""

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

    def prune(self, kind: str, team: str, *, now: int) -> None: ...  # those that count no longer

    def first_event(self) -> int:
        """Events before this number may be gone: who has read less must start from the state."""

    def forget_events(self, *, upto: int, limit: int) -> int:
        """Remove the next ones up to this number, but not those of tasks that have not ended.

        How many numbers were looked at, at most `limit`; 0: it is done. The last event stays.
        """

    def forget_tasks(self, tasks: Sequence[Task]) -> list[str]:
        """Remove ended tasks with their runs, messages, landings and events; which.

        Those stay that changed since they were read, or that another task refers to.
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
        """In order of number; with `newest`, the last ones. `before`: those up to that one; 0: all."""

    def events_of_kinds(self, kinds: Sequence[str], *, after: int, limit: int) -> list[Event]:
        """In order of number."""

    def number_before(self, at: int) -> int:
        """The number of an event after which all have this time or a later one; 0: of none.

        Found in a few steps, however many there are: numbers grow with time.
        """

    def changed_at(self, task_ids: Sequence[str]) -> dict[str, int]:
        """The time of the newest event about each of them, where there is one."""

    def limit(self, seconds: float) -> None:
        """Raise `TooSlow` from what is read after these seconds, or is still going on then; 0: never."""

    def wait(self, timeout: float) -> None:
        """Return as soon as something may have changed, or when the time is up."""

    def close(self) -> None: ...
