"""Everything the core needs from outside. Fakes of each ship in `fleet.testing`.

What passes through a port is a named tuple.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from fleet.domain.data import NamedTuple
from fleet.domain.entry import Entry
from fleet.domain.message import Message
from fleet.domain.query import EntryQuery as EntryQuery  # noqa: PLC0414, TC001  # re-exported
from fleet.domain.query import MessageQuery as MessageQuery  # noqa: PLC0414, TC001  # re-exported
from fleet.domain.query import TaskQuery as TaskQuery  # noqa: PLC0414, TC001  # re-exported
from fleet.domain.run import Host, Progress, Run, Slots
from fleet.domain.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from fleet.domain.event import Event
    from fleet.domain.fleet import Node
    from fleet.domain.nodes.inventory import Inventory, Resident
    from fleet.domain.run import Workspace
    from fleet.domain.task import Spec
    from fleet.domain.transcript import Said

NOTHING: Mapping[str, Any] = MappingProxyType({})

Record = Task | Run | Message | Progress | Host | Slots | Entry


class Put(NamedTuple):
    """Write this record. Version 0: it must not exist; else it must be as it was read."""

    record: Record


class Same(NamedTuple):
    """Write nothing, but insist that this record is still as it was read."""

    record: Record


Change = Put | Same


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

    def candidates(self, *, now: int, limit: int) -> list[Task]:
        """Tasks that nothing in the store holds back, by priority, then age."""

    def run(self, run_id: str) -> Run: ...

    def runs(self, task_id: str) -> list[Run]:
        """Oldest first."""

    def live_runs(self, *, host: str = "") -> list[Run]: ...

    def message(self, message_id: str) -> Message: ...

    def messages(self, task_id: str) -> list[Message]:
        """Oldest first."""

    def open_messages(self, kind: str, *, limit: int = 100) -> list[Message]:
        """Unanswered questions, undelivered words; oldest first."""

    def posts(self, query: MessageQuery) -> list[Message]: ...

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

    def wait(self, timeout: float) -> None:
        """Return as soon as something may have changed, or when the time is up."""

    def close(self) -> None: ...


class Launch(NamedTuple):
    """How to start one coder. `env` is the whole environment."""

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = NOTHING
    stdin: str | None = None  # the first thing it hears; None: nothing at all
    keep_stdin: bool = False  # more may follow; else its standard input ends there
    opening: str = ""  # what whoever adopts the run needs to follow the conversation
    terminal: bool = False  # in a terminal of its own: what its hooks write is its transcript
    title: str = ""  # what people know it by, such as its branch: in the name of its terminal


class Presence(StrEnum):
    NEVER = "never"  # no keeper has started
    ALIVE = "alive"
    EXITED = "exited"  # the keeper recorded how the coder ended
    GONE = "gone"  # the keeper is provably dead and recorded nothing
    UNKNOWN = "unknown"  # a look that failed asserts nothing


class Look(NamedTuple):
    presence: Presence
    code: int | None = None
    stderr: str = ""
    began: float | None = None  # of one that is alive: when, by `Clock.since_boot`


class Launcher(Protocol):
    """Starts coders under keepers, which outlive whoever started them."""

    def launch(self, run_id: str, launch: Launch) -> None:
        """Once per run, however often it is called and by however many."""

    def look(self, run_id: str) -> Look: ...

    def tell(self, run_id: str, text: str, *, key: str) -> None:
        """Put text on the coder's standard input, once for every key however often it is called.

        Raise `Unavailable` when it is in a terminal: there, people and `Terminal` speak to it.
        """

    def told(self, run_id: str) -> list[str]:
        """The keys of all that it was told, in order."""

    def close(self, run_id: str) -> None:
        """End the coder's standard input, after all that it has been told."""

    def opening(self, run_id: str) -> str:
        """The `opening` that this run was launched with."""

    def first(self, run_id: str) -> str:
        """The `stdin` that it was launched with, or nothing. In a terminal it is to be pasted."""

    def stop(self, run_id: str, *, grace: float) -> None:
        """Ask the keeper to end its coder: politely, then after `grace` seconds not."""

    def end(self, run_id: str) -> bool:
        """End whatever is left of the run, and let nothing of it start later.

        True when every process of it is provably gone.
        """

    def renew(self, run_ids: Sequence[str], *, until: float) -> None:
        """Let their keepers end themselves then (by `Clock.since_boot`), unless renewed again."""


class ScreenState(StrEnum):
    """What a screen shows, by rules that are data. One that no rule knows asserts nothing."""

    WORKING = "working"
    READY = "ready"  # it waits for a prompt
    TYPING = "typing"  # there are words in its prompt box that nobody has sent
    WANTS = "wants"  # a permission: keys would answer it
    UNKNOWN = "unknown"


class Screen(NamedTuple):
    """What a run's terminal shows now; `rule` is what its state was told by."""

    text: str
    cursor: tuple[int, int] = (0, 0)  # column and line, from the upper left
    alive: bool = True
    status: int | None = None  # how it ended; not known at once
    state: ScreenState = ScreenState.UNKNOWN
    rule: str = ""
    watchers: int = 0  # people who are attached


class Terminal(Protocol):
    """The terminals that coders run in. All raise `Unavailable` when the run has none now."""

    def screen(self, run_id: str, *, history: int = 0) -> Screen:
        """With so many lines from before what is visible."""

    def is_ready(self, run_id: str) -> bool:
        """Whether one may paste: its screen shows that it waits for a prompt, and nobody types."""

    def paste(self, run_id: str, text: str) -> None:
        """Type this, byte for byte, and then Enter; nobody else's text comes in between.

        That it was taken is not proven by this. Raise `Refused`, having typed nothing, when its
        program has ended (`exited`), shows a dialog, which the keys would answer
        (`wants_permission`), or has somebody's words in its prompt box (`typing`); `BadInput` when
        it is nothing that can be typed.
        """

    def press(self, run_id: str, key: str) -> None:
        """One of `Enter`, `Escape`, `C-c`, `C-u` and `C-g`."""


class Chunk(NamedTuple):
    lines: tuple[str, ...]
    offset: int  # where the next read starts


class Transcripts(Protocol):
    """All that coders said. Lines are read by (run, offset), whole lines only."""

    def read(self, run_id: str, offset: int, *, limit: int = 1 << 20, final: bool = False) -> Chunk:
        """At most about `limit` bytes. `final`: nothing more comes, so a last half line counts."""

    def stderr(self, run_id: str, *, tail: int = 4096) -> str: ...


class Merge(NamedTuple):
    """Work to start from: a branch, or its commit when the branch is no more."""

    branch: str
    commit: str = ""


class Site(NamedTuple):
    """Where a run is to work, and what its workspace must contain."""

    task: Task
    run: Run
    merges: tuple[Merge, ...] = ()  # of the tasks it waited for, in order
    previous: Workspace | None = None  # of an earlier run whose processes are gone
    start: str = ""  # a commit to continue from, when there is no `previous`


class Checkout(Protocol):
    """Workspaces. One is planned, then recorded, then made: so nothing made is ever unowned.

    All raise `Refused` when it cannot be had as asked (a conflict, a base that is not there).
    """

    def plan(self, site: Site) -> Workspace:
        """Where it will be. Makes nothing."""

    def prepare(self, workspace: Workspace, site: Site) -> None:
        """Idempotent: called again after a crash, it finishes what it began."""

    def commit(self, workspace: Workspace) -> str:
        """The commit its branch is at, or the empty string."""


class Brief(NamedTuple):
    """What a coder is told when it starts."""

    run_id: str
    prompt: str
    cwd: str
    task_dir: str
    model: str = ""
    instructions: str = ""
    session: str = ""  # of an earlier run, to be continued
    env: Mapping[str, str] = NOTHING
    options: Mapping[str, object] = NOTHING


class Listener(Protocol):
    """One conversation, as a fold over what the coder said: no effects, the same again on replay."""

    def hear(self, line: str) -> Sequence[Said]: ...

    def words(self, text: str) -> str | None:
        """How to say this to it now; None when it cannot be spoken to."""


class Coder(Protocol):
    """A coding-agent program that we can drive."""

    name: str
    resumes: bool  # an earlier conversation
    stalls: bool  # silence, with no tool running, means that it hangs
    costs: bool  # it says what it has cost, so that a budget in dollars can stop it
    window: int  # tokens of its context, where neither the settings nor the program say

    def launch(self, brief: Brief) -> Launch: ...

    def listen(self, opening: str) -> Listener:
        """From the first line; `opening` is the launch's."""


@runtime_checkable
class InTerminal(Protocol):
    """A coder with a screen, which people can attach to. The prompt is delivered once it is ready."""

    def launch_in_terminal(self, brief: Brief) -> Launch: ...

    def watch(self, opening: str) -> Listener:
        """Over the lines that its hooks wrote; `opening` is the launch's."""


class Pulse(NamedTuple):
    """Whether a node answers; None: not known. `why`: what a look at it came to."""

    up: bool | None
    why: str = ""


class Nodes(Protocol):
    def pulse(self, node: Node) -> Pulse:
        """What is known now; it is looked at again by itself while somebody asks."""


class Backend(Protocol):
    """One node, spoken to as its kind of program is. Both raise `Unavailable`, which says why."""

    def look(self, *, within: float) -> Inventory:
        """What it has now; nothing is loaded by asking. `within` so many seconds, in all."""

    def load(self, upstream: str, *, context: int, within: float) -> Resident:
        """Have a model in memory, to stay, once the node itself says that it is there."""


class TaskFiles(Protocol):
    """A task's own folder, for people and agents to read. What is in it decides nothing."""

    @property
    def trouble(self) -> str:
        """What could not be written, and why; empty when all is well."""

    def begin(self, task: Task, run: Run) -> None:
        """Before its coder starts: `task.json`, and the artifacts that are not there yet."""

    def said(self, run: Run, heard: Sequence[tuple[int, Said]]) -> None:
        """What was said, each with the number of its line; known lines are passed over."""

    def note(self, event: Event) -> None:
        """A fact about a task, or about none."""

    def ended(self, run: Run) -> None: ...

    def edited(self, task: Task) -> Spec:
        """What it asks for, with what a person wrote into its `task.json` since.

        Raise `BadInput` when that cannot be taken in.
        """


class Job(Protocol):
    """Something slow that was begun beside everything else."""

    def done(self) -> bool: ...

    def result(self) -> None:
        """Raise what it raised."""


class Jobs(Protocol):
    def begin(self, act: Callable[[], None]) -> Job: ...


class Clock(Protocol):
    def now(self) -> int:
        """UTC, in microseconds."""

    def since_boot(self) -> float:
        """Seconds, which also pass while the machine sleeps."""
