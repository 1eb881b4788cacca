"""One attempt at one task. It ends exactly once, with an Outcome."""

from __future__ import annotations

from dataclasses import field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from fleet.domain.data import dataclass
from fleet.domain.errors import Refused
from fleet.domain.limits import Items, TextLimit

MAX_POINTS = 200
Point = Annotated[str, TextLimit(10_000)]
SomePoint = Annotated[str, TextLimit(10_000, some=True)]
Points = Annotated[tuple[Annotated[str, TextLimit(10_000, what="item")], ...], Items(MAX_POINTS)]

if TYPE_CHECKING:
    from collections.abc import Sequence


class RunState(StrEnum):
    CLAIMED = "claimed"  # its workspace is being prepared
    RUNNING = "running"  # its coder has been started under a keeper
    ENDED = "ended"


class Ending(StrEnum):
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    ASKED = "asked"  # parked on a question; the answer resumes it
    RATE_LIMITED = "rate_limited"
    CONTEXT_FULL = "context_full"
    TIMED_OUT = "timed_out"
    STALLED = "stalled"  # no output for too long, and no tool running
    OVER_BUDGET = "over_budget"
    OUT_OF_MEMORY = "out_of_memory"  # it exceeded the memory of its container
    STOPPED = "stopped"  # by a person, or because a person must act; its task is paused
    YIELDED = "yielded"  # all agents of its host were stopped; the task continues with a later run
    CANCELLED = "cancelled"
    LOST = "lost"  # the keeper or its host vanished while the run was going


class Wanted(StrEnum):
    """What a person or an agent wants done to a run; the supervisor of its host does it."""

    NOTHING = ""
    STOP = "stop"
    YIELD = "yield"
    CANCEL = "cancel"
    CLOSE = "close"  # end it between two turns: a person says that its task is done


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and money so far. `context` is the size of the newest prompt."""

    input: int = 0
    output: int = 0
    cached: int = 0
    context: int = 0
    usd: float = 0.0
    estimated: bool = False  # `context` is estimated from the transcript

    @property
    def tokens(self) -> int:
        """Input and output tokens, without cached ones, which every step reads again."""
        return self.input + self.output

    def __add__(self, later: Usage) -> Usage:
        return Usage(
            self.input + later.input,
            self.output + later.output,
            self.cached + later.cached,
            later.context or self.context,
            self.usd + later.usd,
            later.estimated if later.context else self.estimated,
        )


@dataclass(frozen=True, slots=True)
class DoneItem:
    task: Point
    files: Points = ()


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary in parts: the goal, the state, how to test it, and what comes next."""

    goal: SomePoint
    now: Annotated[str, TextLimit(10_000, some=True, what="state")]
    test: Point = ""
    done: Annotated[tuple[DoneItem, ...], Items(MAX_POINTS)] = ()
    blockers: Points = ()
    questions: Points = ()
    next: Points = ()
    worked: Points = ()
    failed: Points = ()
    files: Points = ()


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A point from which a later run can continue, left by a run or handed over by an actor.

    `summary`: the last text that the coder printed; `outline`: a summary in parts by its author.
    """

    commit: str = ""
    session: str = ""
    summary: str = ""
    outline: Summary | None = None
    uncommitted: int = 0  # changed files that no commit has
    fork: bool = False  # `session` is another task's: continue a copy of it
    added: int | None = None  # lines that its task has changed
    removed: int | None = None


@dataclass(frozen=True, slots=True)
class Workspace:
    """Where a run may change files. `path`: where the coder starts; `root`: of the worktree."""

    path: str
    root: str = ""
    branch: str = ""
    base: str = ""
    made: bool = False  # Fleet made it; only such workspaces are ever removed
    repository: str = ""  # the git directory that its worktrees share
    onto: str = ""  # the branch that it started from, and on which its work is to land


@dataclass(frozen=True, slots=True)
class Choice:
    """Who does a task: the agent, and the coder and model that it has. `node` serves the model.

    `route`: the rule of fleet.yaml that chose them.
    """

    agent: str
    coder: str
    model: str = ""
    node: str = ""
    route: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    ending: Ending
    detail: str = ""
    exit_code: int | None = None
    checkpoint: Checkpoint | None = None
    resume_at: int = 0
    usage: Usage = field(default_factory=Usage)
    gone: bool = True  # all its processes have certainly ended, so its workspace can be reused
    again: bool = True  # False: without a change, the next run would end the same way
    look: str = ""  # why a person must look before the task counts as done
    outage: bool = False  # lost because its node, the relay or the gateway did not answer


@dataclass(frozen=True, slots=True)
class Run:
    id: str
    version: int
    task: str
    state: RunState
    choice: Choice
    host: str
    holder: str
    claimed_at: int
    slots: tuple[str, ...] = ()
    workspace: Workspace | None = None
    wanted: Wanted = Wanted.NOTHING
    outcome: Outcome | None = None
    started_at: int = 0
    ended_at: int = 0
    closed: str = ""  # the reason that its agent, or a person, gave for the task being done

    @property
    def number(self) -> int:
        """Which run of its task this is, from 1: the epoch."""
        return int(self.id.rpartition(".")[2])

    @property
    def live(self) -> bool:
        return self.state is not RunState.ENDED


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come: one row, written at most every two seconds."""

    id: str
    version: int
    at: int
    lines: int = 0
    usage: Usage = field(default_factory=Usage)
    peak_context: int = 0
    session: str = ""
    last: str = ""
    setup: str = ""  # the set-up command that its workspace is at, since `at`
    commit: str = ""  # its newest commit that the store has for other hosts
    window: int = 0  # how many tokens its context holds; 0: not known


@dataclass(frozen=True, slots=True)
class Host:
    """A machine with a supervisor. Its lease covers all its runs: see `domain.hosts.lease`.

    `lease_until`: when the lease ends unless it is renewed, by the store's clock; clocks may differ, so
    use it only to show, or where an error does no harm.
    """

    id: str
    version: int
    name: str
    holder: str
    boot: str
    lease_until: int
    down: tuple[str, ...] = ()  # nodes that it cannot reach, each as `ADDRESS REASON`
    room: int = 0  # how many runs at once; 0: as the settings say
    missing: tuple[str, ...] = ()  # programs that it does not find, each as `OWNER PROGRAM`
    lease: int = 0  # seconds; 0: an older release wrote the row
    labels: tuple[str, ...] = ()  # what tasks may need: see `domain.hosts.labels`
    draining: bool = False  # a person wants no new runs there
    without: tuple[str, ...] = ()  # projects that it cannot work on, each as `REASON PATH`
    release: str = ""  # of fleet, that its supervisor runs
    forgotten: bool = False  # a person removed it from the list, until its supervisor starts again

    @property
    def renewed_at(self) -> int:
        """When the lease was renewed last, by the store's clock."""
        from fleet.domain.hosts.lease import ALONE  # noqa: PLC0415  # start-up time

        return self.lease_until - (self.lease or ALONE) * 1_000_000


@dataclass(frozen=True, slots=True)
class Slots:
    """The runs that hold slots of this name; the limit is in the settings.

    For a credential: until when no run may use it, and why.
    """

    id: str
    version: int
    holders: tuple[str, ...] = ()
    parked_until: int = 0
    why: str = ""


def workspace_of(runs: Sequence[Run]) -> Workspace | None:
    """The workspace of the newest run that started, or of the newest one if none did.

    `runs` are ordered, the oldest first.
    """
    newest = [run for run in reversed(runs) if run.workspace is not None]
    run = next((run for run in newest if run.started_at), newest[0] if newest else None)
    return run.workspace if run else None


def end(run: Run, outcome: Outcome, *, at: int) -> Run:
    """The run after its end. Raise `Refused` when it has already ended."""
    if run.state is RunState.ENDED:
        raise Refused(f"{run.id} has already ended.", code="ended")
    return replace(run, state=RunState.ENDED, outcome=outcome, ended_at=at, wanted=Wanted.NOTHING)


def release(slots: Slots, run_id: str) -> Slots:
    return replace(slots, holders=tuple(h for h in slots.holders if h != run_id))


def has_work(checkpoint: Checkpoint | None, run: Run) -> bool:
    """Whether the run has its own branch with commits or uncommitted changes."""
    space = run.workspace
    if space is None or not space.branch or checkpoint is None:
        return False
    return checkpoint.commit not in {"", space.base} or bool(checkpoint.uncommitted)
