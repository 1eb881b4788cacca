"""A task's wish to be on a branch, the train that carries it there, and what gates have said.

`train` decides what a train does next.
"""

from __future__ import annotations

from dataclasses import field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from fleet.domain.data import FLAT, dataclass
from fleet.domain.errors import Refused
from fleet.domain.landing.train import GateVerdicts
from fleet.domain.task import Task, TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MERGE, SQUASH = HOWS = ("merge", "squash")
PRIORITY_STEP = 1 << 50  # between the orders of two priorities
ORDER_STEP = 1 << 20  # between the orders of two landings, so that one can be moved in between
GATE_PREFIX = "land-"  # of the names of gates
UNDO_LABEL = "undo"  # of a task that takes landed work out again


class LandingState(StrEnum):
    QUEUED = "queued"  # it waits for its turn, or is being tested
    RETURNED = "returned"  # its agent mends a conflict or a failed gate; then it is queued again
    HELD = "held"  # a person holds it, or it came back too often
    LANDED = "landed"
    DROPPED = "dropped"  # it is not wanted any more


OPEN = frozenset({LandingState.QUEUED, LandingState.RETURNED, LandingState.HELD})


@dataclass(frozen=True, slots=True)
class Pull:
    """The pull request of a landing. `head`: the commit that we tested, pushed and reported.

    `tip`: what was to land then; `head` has it, and what a person added on the task's branch.
    `tested_on`: the commit of the target onto which it was merged for the test.
    """

    number: int
    url: str
    branch: str
    head: str
    tip: str
    tested_on: str
    state: str = "open"
    trouble: str = ""  # why the forge did not merge it when we asked


@dataclass(frozen=True, slots=True)
class Proposal:
    """How a pull request is to be opened; empty: with the words of its task.

    `merge`: we merge it as soon as the forge lets us. Else people do, or the forge by its rules.
    """

    title: str = ""
    body: str = ""
    merge: bool = False
    opened: Pull | None = None


@dataclass(frozen=True, slots=True)
class LandingWish:
    """How a task is to land, and who said so. `force`: why it lands without passing its gate."""

    author: str
    how: str = MERGE
    force: str = ""
    remote: str = ""  # it is built on this remote's branch, and pushed there
    pull: Proposal | None = None  # by a pull request there, which the forge merges
    moved: bool = False  # a person said when it lands, before or after which others
    given: str = ""  # the member who looks after it, while it is held


@dataclass(frozen=True, slots=True)
class Evidence:
    """As what it landed, and why. `commit`: the merge that brought it to its branch.

    `before`: the commit that this merge was made on. `result`: of the gate that tested the landed
    tree; empty: none did. `rule`: in a sentence. `undone`: the task that takes it out again.
    """

    commit: str = ""
    before: str = ""
    result: str = ""
    rule: str = ""
    undone: str = ""


@dataclass(frozen=True, slots=True)
class Landing:
    id: str
    version: int
    state: LandingState
    task: str
    team: str
    project: str
    train: str  # the id of the train
    onto: str
    tip: str  # the commit that is to land
    wish: LandingWish
    at: int
    order: int = 0  # a smaller one lands earlier
    why: str = ""  # the reason for its state
    returns: int = 0  # how often it came back
    evidence: Evidence = field(default=Evidence(), metadata=FLAT)

    @property
    def pull(self) -> Pull | None:
        """What was opened for it on a forge."""
        return self.wish.pull.opened if self.wish.pull else None

    @property
    def commit(self) -> str:
        return self.evidence.commit

    @property
    def open(self) -> bool:
        return self.state in OPEN

    @property
    def priority(self) -> int:
        return self.order // PRIORITY_STEP

    @property
    def branch(self) -> str:
        """The branch as git calls it: `origin/main` is the one of a remote."""
        return _branch(self.onto, self.wish.remote)


@dataclass(frozen=True, slots=True)
class Move:
    """A branch is about to go from one commit to another, with these landings."""

    before: str
    after: str
    landings: tuple[str, ...]
    steps: tuple[str, ...] = ()  # the merge of each of them, in the same order; the last is `after`
    result: str = ""  # of the gate that tested it
    rule: str = ""  # why it may land
    tips: tuple[str, ...] = ()  # the work of each of them, as it was merged

    def each(self) -> list[tuple[str, str, str]]:
        """Of each landing: its id, the commit that its merge was made on, and that merge."""
        steps = self.steps or (self.after,) * len(self.landings)
        return list(zip(self.landings, (self.before, *steps), steps, strict=False))


@dataclass(frozen=True, slots=True)
class Planned:
    """A candidate that is tested now, or as soon as there is a slot.

    `members`: landings. `result`: its gate's, once that has ended. `began`: 0: it waits for a slot.
    """

    members: tuple[str, ...]
    commit: str
    tree: str
    result: str
    began: int = 0

    def tests(self, result: GateResult | None) -> bool:
        """Whether its gate runs, by what the gates of its tree have said so far."""
        return self.began > (result.at if result else 0)


@dataclass(frozen=True, slots=True)
class Train:
    """The queue of one branch of one repository, or of its remote. One host at a time runs it."""

    id: str
    version: int
    repository: str
    onto: str
    host: str = ""
    batch: int = 1
    paused: str = ""  # who paused it
    stopped: str = ""  # what a person must look at before anything lands
    waits: str = ""  # what is in its way now, such as a checkout with changes of its own
    move: Move | None = None  # decided, and perhaps carried out
    remote: str = ""  # whose branch it is; empty: the repository's own
    plan: tuple[Planned, ...] = ()
    rate: float = 1.0  # of the candidates that were tested, how many passed lately
    flaky: str = ""  # the gate that failed and then passed on the same tree, the last time
    pulls: bool = False  # its members are pull requests: the forge moves the branch

    @property
    def branch(self) -> str:
        """The branch as git calls it: `origin/main` is the one of a remote."""
        return _branch(self.onto, self.remote)


@dataclass(frozen=True, slots=True)
class GateResult:
    """What a gate said of one tree. The id is made of the tree, the gate and its environment."""

    id: str
    version: int
    at: int = 0
    passed: int = 0
    failed: int = 0
    seconds: float = 0.0
    lost: int = 0  # gates whose keeper vanished
    forgotten: int = 0  # failures from before the work was queued again
    output: str = ""  # the end of what the last gate that failed printed
    command: str = ""
    late: bool = False  # the last one was stopped at its time limit
    tests: dict[str, str] = field(default_factory=dict)  # of a race: see `report`
    reported: bool = False  # whether the gates that decide were asked for them

    @property
    def knows_tests(self) -> bool:
        """Whether a gate that passed was asked for them: what another one says changes nothing."""
        return self.reported and self.passed > 0

    @property
    def verdict(self) -> GateVerdicts:
        return GateVerdicts(self.passed, self.failed)

    @property
    def ended(self) -> int:
        """How many gates have tested this tree, or were lost while they did."""
        return self.passed + self.failed + self.lost + self.forgotten


def _branch(onto: str, remote: str) -> str:
    return f"{remote}/{onto}" if remote else onto


def train_id(repository: str, onto: str, remote: str = "", *, pulls: bool = False) -> str:
    whose = f" of {remote}" if remote else ""
    return f"{onto}{whose}{' by pull request' if pulls else ''} in {repository}"


def new_train(landing: Landing) -> Train:
    """The train of this landing, which is the first one there."""
    _, _, repository = landing.train.partition(" in ")  # a branch has no space in its name
    wish = landing.wish
    pulls = wish.pull is not None
    return Train(landing.train, 0, repository, landing.onto, remote=wish.remote, pulls=pulls)


def blocker_of(train: Train) -> str:
    """Why nothing lands on its branch now; empty: nothing is in the way."""
    if train.paused:
        return f"{train.paused} paused {train.branch}."
    return train.stopped or train.waits


def gate_command(commands: Iterable[str]) -> str:
    """One command that passes when all of these do; empty: there are none."""
    unique = list(dict.fromkeys(command for command in commands if command))
    if len(unique) < 2:
        return "".join(unique)
    return " && ".join(f"({command}\n)" for command in unique)


def result_id(tree: str, gate: str, setup: Sequence[str], environment: Sequence[str] = ()) -> str:
    """A result depends on the tree, the command, how its worktree was set up, and where it ran.

    `environment`: the system, and the values of the variables that the gate depends on.
    """
    from hashlib import sha256  # noqa: PLC0415  # start-up time

    parts = [gate, *setup, *(("", *environment) if environment else ())]
    key = "\0".join(parts).encode("utf-8", "surrogateescape")
    return f"{tree} {sha256(key).hexdigest()[:16]}"


def tested_tree(result_id: str) -> str:
    """The tree that this result is about."""
    return result_id.partition(" ")[0]


def gate_name(result_id: str, number: int) -> str:
    """Of the gate that tests this tree as the `number`th: its process and its output."""
    return f"{GATE_PREFIX}{result_id.replace(' ', '-')}.{number}"


def since(result: GateResult, queued_at: int) -> GateResult:
    """The result without failures from before then: who queues work again has mended something."""
    if not result.verdict.bad or result.at >= queued_at:
        return result
    return replace(result, failed=0, forgotten=result.forgotten + result.failed)


def with_pass(result: GateResult, *, at: int) -> GateResult:
    """The result after one more gate that passed, and that nobody wanted a report of."""
    return replace(result, passed=result.passed + 1, at=at, reported=result.knows_tests)


def with_report(result: GateResult) -> GateResult:
    """Nothing, where nobody wanted a report of what its gates have said: which tests ran is not known."""
    if result.reported:
        return result
    forgotten = result.forgotten + result.passed + result.failed
    return replace(result, passed=0, failed=0, forgotten=forgotten)


def landing_rule(result: GateResult, *, queued_at: int) -> str:
    """Why the tree with this result may land, in a sentence."""
    if result.verdict.flaky:
        return "It failed the gate once and passed it then: the gate is flaky."
    if result.at < queued_at:
        return "Its files had passed the gate before."
    return "It passed the gate."


def new_landing(
    number: str, task: Task, repository: str, onto: str, wish: LandingWish, *, at: int
) -> Landing:
    """The last of its task's priority in the queue of its branch. The task has a commit."""
    assert task.tally.checkpoint is not None
    return Landing(
        id=number,
        version=0,
        state=LandingState.QUEUED,
        task=task.id,
        team=task.team,
        project=task.project,
        train=train_id(repository, onto, wish.remote, pulls=wish.pull is not None),
        onto=onto,
        tip=task.tally.checkpoint.commit,
        wish=wish,
        at=at,
        order=task.spec.priority * PRIORITY_STEP + int(number.removeprefix("l-")) * ORDER_STEP,
    )


def check_ready(task: Task) -> None:
    """Raise `Refused` with the reason why the task's work cannot land as it is."""
    why = {
        TaskState.OPEN: f"{task.id} is not done yet.",
        TaskState.RUNNING: f"{task.id} is still running.",
        TaskState.REVIEW: f"{task.id} waits for your review.",
        TaskState.FAILED: f"{task.id} failed: {task.tally.why or 'its attempts are spent.'}",
        TaskState.CANCELLED: f"{task.id} was cancelled.",
    }.get(task.state, "")
    if why:
        fix = f"fleet land {task.id} --force --why TEXT lands what it has committed."
        if task.state is TaskState.REVIEW:
            fix = f"fleet diff {task.id}, then accept it: fleet close {task.id}"
        raise Refused(why, fix=fix, code="not_done")
    if task.tally.checkpoint and task.tally.checkpoint.uncommitted:
        raise Refused(
            f"{task.id} has work that is not committed.",
            fix=f"fleet worktree commit {task.id} -m MESSAGE",
            code="dirty",
        )


def landed(task: Task, commit: str, *, now: int) -> Task:
    """The task whose work is on its branch; one in review is done by that."""
    tally = replace(task.tally, landing="", landed=commit)
    if task.state is TaskState.REVIEW:
        return replace(task, state=TaskState.DONE, tally=replace(tally, why="", ended_at=now))
    return replace(task, tally=tally)


def with_pull(landing: Landing, pull: Pull | None) -> Landing:
    """The landing with this pull request; None: another one may be opened."""
    assert landing.wish.pull is not None
    proposal = replace(landing.wish.pull, opened=pull)
    return replace(landing, wish=replace(landing.wish, pull=proposal))


def sent_back(landing: Landing, *, why: str, tries: int, result: str = "") -> Landing:
    """The landing that could not be made: with its agent, or after `tries` with a person.

    `result`: of the gate that it failed.
    """
    returns = landing.returns + 1
    state = LandingState.HELD if returns > tries else LandingState.RETURNED
    evidence = Evidence(result=result)
    return replace(landing, state=state, why=why, returns=returns, evidence=evidence)


def queued_again(landing: Landing, tip: str, *, at: int) -> Landing:
    """What an earlier gate has said is not about this work any more."""
    wish = replace(landing.wish, given="")
    queued, none = LandingState.QUEUED, Evidence()
    return replace(landing, state=queued, tip=tip, why="", at=at, evidence=none, wish=wish)
