"""A piece of work to be done, and what the ending of a run means for it."""

from __future__ import annotations

from dataclasses import field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

from fleet.domain.data import FLAT, dataclass
from fleet.domain.errors import Mismatch, Refused
from fleet.domain.fleet import PERMISSIONS
from fleet.domain.limits import MOST_SECONDS, Items, Name, OneOf, TextLimit, Whole
from fleet.domain.run import Checkpoint, Choice, Ending, Outcome, Run, RunState, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

SECOND = 1_000_000
MAX_LOSSES = 5  # a task whose keepers keep vanishing would otherwise be started for ever
MAX_OUTAGES = 50  # a prompt that crashes its node would otherwise be tried for ever
OUTAGE_PAUSE = 3 * SECOND  # longer than the supervisor needs to notice that a node is down
FIRST_OUTAGES = 5  # after so many outages, the pause doubles each time
LONGEST_OUTAGE_PAUSE = 300 * SECOND
MAX_FULLS = 25  # a prompt that alone fills the context would otherwise be tried for ever
RATE_LIMIT_PAUSE = 300 * SECOND  # when the program does not say when the limit ends
MAX_BACKOFF = 3600 * SECOND
PRIORITIES = ("critical", "high", "normal", "low")  # what priorities 0 to 3 are called

Priority = Annotated[int, Whole(0, 4, example="0 is the first, 4 the last; the default is 2.")]
Option = Annotated[  # it becomes an argument of a command
    str, TextLimit(200, pattern=r"(?!-)[^\0]*", example="It cannot begin with '-'.")
]
BRANCH = (  # without what git refuses in its name, or takes for a whole ref
    r"(?![-/.]|refs/|.*(\.\.|//|@\{|/\.|\.lock(/|$))|@$|HEAD$)[^\x00-\x20\x7f~^:?*\[\\]*(?<![/.])"
)
Branch = Annotated[
    str,
    TextLimit(
        200, pattern=BRANCH, what="branch name", example="Use letters, digits, '-', '_' and '/'."
    ),
]
Base = Annotated[
    str,
    TextLimit(
        200,
        pattern=r"(?!-)[^\0]*",
        what="name of a commit",
        example="Name a branch, a tag or a commit.",
    ),
]
Directory = Annotated[str, TextLimit(4096, what="directory")]
Labels = Annotated[
    tuple[
        Annotated[
            str, TextLimit(200, some=True, what="label", example="Name it, or leave it out.")
        ],
        ...,
    ],
    Items(50),
]
Permissions = Annotated[str, OneOf(("", *PERMISSIONS), "permission")]
Count = Annotated[int, Whole(0, example="Use 0 for what the settings say.")]
Seconds = Annotated[int, Whole(0, MOST_SECONDS, example="Use 0 for what the settings say.")]


class TaskState(StrEnum):
    OPEN = "open"
    RUNNING = "running"
    REVIEW = "review"  # its agent says it is done; a person has to agree
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


ENDED = frozenset({TaskState.DONE, TaskState.FAILED, TaskState.CANCELLED})
SETTLED = ENDED - {
    TaskState.FAILED
}  # a failed task stays in view until it is tried again or cancelled


class Join(StrEnum):
    """When a task that is made of child tasks is done."""

    ALL = "all"
    ANY = "any"


class Mode(StrEnum):
    QUEUED = ""  # started when there is room
    NOW = "now"  # started at once, whatever else runs
    TERMINAL = "terminal"  # likewise, in a terminal that people can attach to


@dataclass(frozen=True, slots=True)
class Budget:
    """What all runs of a task together may use; zero means no limit."""

    cost: Count = 0  # in millionths of a dollar
    tokens: Count = 0
    seconds: Seconds = 0


@dataclass(frozen=True, slots=True)
class Limits:
    attempts: Count = 0
    time_limit: Seconds = 0  # seconds that one run may take
    budget: Budget = field(default_factory=Budget)
    agents: Count = 0  # how many of its children run at once
    permissions: Permissions = ""  # what its runs may do; empty: as its agent is declared
    needs: Labels = ()  # labels that its host must have; a host's id and name are labels, too


@dataclass(frozen=True, slots=True)
class Spec:
    """What a task asks for. Empty and zero mean: as the settings say."""

    agent: Option = ""
    coder: Option = ""
    model: Option = ""
    priority: Priority = 2
    labels: Labels = ()
    cwd: Directory = ""
    in_place: bool = False
    base: Base = ""
    branch: Branch = ""
    review: bool = False
    limits: Limits = field(default_factory=Limits)
    gate: str = ""  # a command that must succeed before the task is done
    assignee: Name = ""  # the member who does it by hand; no run is started then
    mode: Annotated[str, OneOf(tuple(Mode))] = ""
    quick: bool = False  # skip the set-up of its workspace


@dataclass(frozen=True, slots=True)
class Cuts:
    """How many of a task's runs were cut short, and cost no attempt."""

    losses: int = 0  # their keeper or host vanished
    outages: int = 0  # their models were down
    fulls: int = 0  # their context was full


@dataclass(frozen=True, slots=True)
class Tally:
    """The sum of a task's runs."""

    runs: int = 0  # the number of its newest run: the epoch
    failures: int = 0
    cuts: Cuts = field(default=Cuts(), metadata=FLAT)
    not_before: int = 0
    why: str = ""  # the reason for `not_before`, or for the ending
    checkpoint: Checkpoint | None = None
    ended_at: int = 0
    spent: Usage = field(default_factory=Usage)  # by the runs that have ended
    worked: int = 0  # microseconds, by the runs that have ended
    grants: int = 0  # how often a person granted its budget again
    stuck: bool = False  # paused by the supervisor until a person has changed something; see `why`
    landing: str = ""  # the id of its landing, until it has landed
    landed: str = ""  # the commit with which its work landed
    beaten: str = ""  # the task that was picked instead of this one in a race


LANDED = ":landed"  # after the name of a task that another waits for


def need_of(written: str) -> tuple[str, bool]:
    """The task named in `t-3` or `t-3:landed`, and whether its work must land first."""
    return written.removesuffix(LANDED), written.endswith(LANDED)


@dataclass(frozen=True, slots=True)
class Task:
    id: str
    version: int
    state: TaskState
    title: str
    prompt: str
    project: str
    author: str
    created_at: int
    team: str = "local"
    spec: Spec = field(default_factory=Spec)
    after: tuple[str, ...] = ()
    after_landed: tuple[str, ...] = ()  # the tasks of `after` whose work must land first
    parent: str = ""
    join: Join | None = None  # set: the task consists of its children and never runs itself
    paused: bool = False
    tally: Tally = field(default_factory=Tally)
    depth: int = 0  # how many agents are between a person and this task
    role: str = ""  # the role of its runs in the team; empty: as its agent is declared
    spawned: bool = (
        False  # asked for by an agent or over a server: it always waits for a free place
    )
    caused_by: str = (
        ""  # the role of who lets it run; empty: a person at this machine. See `causes`
    )
    choice: Choice | None = None  # made when the task was added; None: made when it starts

    @property
    def needs(self) -> tuple[str, ...]:
        """What it waits for, as a user writes it: `t-3`, or `t-3:landed` if t-3 must land first."""
        return tuple(f"{n}{LANDED}" if n in self.after_landed else n for n in self.after)

    @property
    def run_id(self) -> str:
        """The id of its newest run; empty before the first."""
        return f"{self.id}.{self.tally.runs}" if self.tally.runs else ""

    @property
    def uncommitted(self) -> int:
        """How many changed files its agent left uncommitted; 0 before the task is done."""
        point = self.tally.checkpoint
        return point.uncommitted if point and self.state is TaskState.DONE else 0


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and how soon a failed task is tried again."""

    attempts: int = 2
    backoff: int = 10 * SECOND

    def pause(self, failures: int, jitter: float) -> int:
        """Doubling, up to an hour; `jitter` in [0, 1) spreads tasks that failed together."""
        full = min(MAX_BACKOFF, self.backoff * 2 ** (failures - 1))
        return int(full * (1 + 0.25 * jitter))


def claim(
    task: Task, choice: Choice, *, host: str, holder: str, slots: tuple[str, ...], at: int
) -> tuple[Task, Run]:
    """The task as running, and its new run. Raise `Refused` unless the task is open."""
    if task.state is not TaskState.OPEN or task.join is not None:
        raise Refused(f"{task.id} is {task.state}: only an open task can be started.")
    number = task.tally.runs + 1
    tally = replace(task.tally, runs=number, not_before=0, why="", stuck=False)
    run = Run(
        id=f"{task.id}.{number}",
        version=0,
        task=task.id,
        state=RunState.CLAIMED,
        choice=choice,
        host=host,
        holder=holder,
        claimed_at=at,
        slots=slots,
    )
    return replace(task, state=TaskState.RUNNING, tally=tally), run


def settle(
    task: Task,
    outcome: Outcome,
    *,
    retry: Retry,
    now: int,
    jitter: float = 0.0,
    waiting: bool = False,
    reviewed: bool = False,
    took: int = 0,
) -> Task:
    """The task after its newest run has ended. `took`: how long the run lasted.

    `waiting`: a message to it has not been received, so it is not done yet. `reviewed`: a person
    closed it.
    """
    if task.state is not TaskState.RUNNING:
        raise Refused(f"{task.id} is {task.state}: there is no run to settle.")
    tally = replace(
        task.tally,
        checkpoint=outcome.checkpoint or task.tally.checkpoint,
        spent=task.tally.spent + outcome.usage,
        worked=task.tally.worked + took,
    )
    open_again = replace(task, state=TaskState.OPEN, tally=replace(tally, why=outcome.detail))
    match outcome.ending:
        case Ending.SUCCEEDED if waiting and not reviewed:
            return open_again
        case Ending.SUCCEEDED:
            looks = (task.spec.review and not reviewed) or outcome.look
            state = TaskState.REVIEW if looks else TaskState.DONE
            return _ended(task, state, tally, outcome.look or outcome.detail, now)
        case Ending.FAILED | Ending.TIMED_OUT | Ending.STALLED | Ending.OUT_OF_MEMORY:
            return _failed(task, tally, outcome, retry, now, jitter)
        case Ending.ASKED | Ending.OVER_BUDGET | Ending.YIELDED:
            return open_again  # an open question keeps it from starting
        case Ending.CONTEXT_FULL:
            return _full(task, tally, outcome, now)
        case Ending.RATE_LIMITED:
            until = outcome.resume_at or now + RATE_LIMIT_PAUSE
            return replace(open_again, tally=replace(open_again.tally, not_before=until))
        case Ending.STOPPED:
            tally = replace(open_again.tally, stuck=not outcome.again)
            return replace(open_again, paused=True, tally=tally)
        case Ending.CANCELLED:
            return _ended(task, TaskState.CANCELLED, tally, outcome.detail, now)
        case Ending.LOST:
            return _lost(task, tally, outcome, retry, now, jitter)


def _ended(task: Task, state: TaskState, tally: Tally, why: str, now: int) -> Task:
    return replace(task, state=state, tally=replace(tally, why=why, ended_at=now))


def _failed(
    task: Task, tally: Tally, outcome: Outcome, retry: Retry, now: int, jitter: float
) -> Task:
    failures = tally.failures + 1
    tally = replace(tally, failures=failures)
    if not outcome.again or failures >= (task.spec.limits.attempts or retry.attempts):
        return _ended(task, TaskState.FAILED, tally, outcome.detail, now)
    tally = replace(tally, not_before=now + retry.pause(failures, jitter), why=outcome.detail)
    return replace(task, state=TaskState.OPEN, tally=tally)


def _full(task: Task, tally: Tally, outcome: Outcome, now: int) -> Task:
    """Reopen the task for a new conversation; after `MAX_FULLS` times it has failed."""
    fulls = tally.cuts.fulls + 1
    tally = replace(tally, cuts=replace(tally.cuts, fulls=fulls), why=outcome.detail)
    if fulls >= MAX_FULLS:
        why = f"Its context was full {fulls} times."
        return _ended(task, TaskState.FAILED, tally, why, now)
    return replace(task, state=TaskState.OPEN, tally=tally)


def _lost(
    task: Task, tally: Tally, outcome: Outcome, retry: Retry, now: int, jitter: float
) -> Task:
    """A lost run costs no attempt, up to a limit; after the first it starts again at once."""
    if outcome.outage:
        return _cut_off(task, tally, outcome, now, jitter)
    losses = tally.cuts.losses + 1
    tally = replace(tally, cuts=replace(tally.cuts, losses=losses))
    if losses >= MAX_LOSSES:
        why = f"Lost {losses} times: {outcome.detail}"
        return _ended(task, TaskState.FAILED, tally, why, now)
    pause = retry.pause(losses - 1, jitter) if losses > 1 else 0
    tally = replace(tally, not_before=now + pause, why=outcome.detail)
    return replace(task, state=TaskState.OPEN, tally=tally)


def _cut_off(task: Task, tally: Tally, outcome: Outcome, now: int, jitter: float) -> Task:
    """Reopen a task after an outage; outages are counted apart, as they are not the task's fault."""
    outages = tally.cuts.outages + 1
    tally = replace(tally, cuts=replace(tally.cuts, outages=outages))
    if outages >= MAX_OUTAGES:
        why = f"Cut off by outages {outages} times: {outcome.detail}"
        return _ended(task, TaskState.FAILED, tally, why, now)
    pause = min(OUTAGE_PAUSE * 2 ** max(0, outages - FIRST_OUTAGES), LONGEST_OUTAGE_PAUSE)
    pause = int(pause * (1 + 0.25 * jitter))
    tally = replace(tally, not_before=now + pause, why=outcome.detail)
    return replace(task, state=TaskState.OPEN, tally=tally)


def join(parent: Task, children: Sequence[Task], *, now: int) -> Task:
    """The parent in the state that follows from its children; open again when one of them is."""
    if parent.join is None or not children:
        return parent
    states = {c.state for c in children}
    if states == {TaskState.DONE} or (parent.join is Join.ANY and TaskState.DONE in states):
        return _joined(parent, TaskState.DONE, "", now)
    if not states <= ENDED:
        return _joined(parent, TaskState.OPEN, "", 0)
    if states == {TaskState.CANCELLED} and parent.spec.limits.agents and not parent.paused:
        return _joined(parent, TaskState.OPEN, "", 0)  # a swarm ends only when it is ended itself
    if states == {TaskState.CANCELLED}:
        return _joined(parent, TaskState.CANCELLED, "All of it was cancelled.", now)
    bad = ", ".join(c.id for c in children if c.state is not TaskState.DONE)
    return _joined(parent, TaskState.FAILED, f"Not done: {bad}.", now)


def _joined(parent: Task, state: TaskState, why: str, now: int) -> Task:
    return parent if parent.state is state else _ended(parent, state, parent.tally, why, now)


def other_base(task: str) -> str:
    """The command that makes a task start from another branch."""
    return f"fleet edit {task} --base BRANCH"


def mend_of(task: Task) -> str:
    """The command that makes a paused task continue."""
    base = other_base(task.id)
    return base if task.tally.stuck and base in task.tally.why else f"fleet resume {task.id}"


def is_ended_swarm(task: Task) -> bool:
    """Whether the swarm was ended: it takes no new tasks, whatever becomes of those it has."""
    return task.paused or task.state is TaskState.CANCELLED


def reopen(task: Task) -> Task:
    """The ended task, open again with all of its attempts."""
    if task.join is not None:
        raise Refused(
            f"{task.id} has child tasks and no run of its own.",
            fix="Retry the children that failed.",
        )
    if task.state not in ENDED and task.state is not TaskState.REVIEW:
        raise Refused(
            f"{task.id} is {task.state}, so it needs no retry.",
            fix=f"`fleet show {task.id}` says how it stands; fleet send {task.id} TEXT tells its agent.",
            code="not_ended",
        )
    tally = replace(
        task.tally,
        failures=0,
        cuts=Cuts(),
        not_before=0,
        why="",
        ended_at=0,
        stuck=False,
    )
    return replace(task, state=TaskState.OPEN, tally=tally, paused=False)


def close(task: Task, why: str, *, now: int) -> Task:
    """The task as done, because a person or an agent says so."""
    if task.join is not None:
        raise Refused(
            f"{task.id} has child tasks and no run of its own.", fix="Close its children."
        )
    if task.state is TaskState.RUNNING:
        raise Refused(
            f"{task.id} is running.",
            fix=f"Wait for it: fleet logs -f {task.id}. Or end it: fleet cancel {task.id}",
        )
    if task.state is TaskState.DONE:
        raise Refused(f"{task.id} is already done.", code="ended")
    return _ended(task, TaskState.DONE, task.tally, why, now)


def cancel(task: Task, why: str, *, now: int) -> Task:
    if task.state is TaskState.RUNNING:
        raise Refused(f"{task.id} is running: its run must be stopped first.")
    if task.state in SETTLED:
        raise Refused(f"{task.id} is already {task.state}.", code="ended")
    return _ended(task, TaskState.CANCELLED, task.tally, why, now)


def grant(task: Task) -> Task:
    """The task with its budget granted once more."""
    return replace(task, tally=replace(task.tally, grants=task.tally.grants + 1, why=""))


def depend(task: Task, on: str, needs: Callable[[str], Iterable[str]]) -> Task:
    """The task, waiting for `on` too. `needs(id)` gives the tasks that a task waits for."""
    if on in task.after:
        return task
    path = find_path(on, task.id, needs)
    if path:
        chain = " → ".join([task.id, *path])
        raise Mismatch(f"{task.id} cannot wait for {on}: they would wait for each other ({chain}).")
    return replace(task, after=(*task.after, on))


def find_path(start: str, goal: str, needs: Callable[[str], Iterable[str]]) -> list[str]:
    """A chain of tasks from `start` to `goal`, each waiting for the next; empty if there is none."""
    came_from: dict[str, str] = {start: ""}
    queue = [start]
    while queue:
        task = queue.pop()
        if task == goal:
            path = []
            while task:
                path.append(task)
                task = came_from[task]
            return path[::-1]
        for need in needs(task):
            if need not in came_from:
                came_from[need] = task
                queue.append(need)
    return []


def find_circle(needs: Sequence[Sequence[int]]) -> list[int]:
    """The positions of tasks that wait for each other in a circle, the first also last; empty if none.

    `needs[n]` are the positions of the tasks that the nth task waits for.
    """
    from graphlib import CycleError, TopologicalSorter  # noqa: PLC0415  # start-up time

    try:
        TopologicalSorter(dict(enumerate(needs))).prepare()
    except CycleError as error:
        circle: list[int] = error.args[1]
        return circle[::-1]
    return []
