"""Bring the work of tasks to its branch: queue it, look at the queue, change it.

The lander of the repository's host does the work; see `fleet.supervisor.landing`.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import Permission, allow
from fleet.domain.causes import check_may_force
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import Mismatch, NotFound, Refused, Unavailable
from fleet.domain.event import Kind
from fleet.domain.landing.landing import (
    HOWS,
    MERGE,
    ORDER_STEP,
    UNDO_LABEL,
    Landing,
    LandingState,
    LandingWish,
    Proposal,
    Train,
    blocker_of,
    check_ready,
    gate_name,
    new_landing,
    new_train,
    queued_again,
    tested_tree,
    with_pull,
)
from fleet.domain.limits import Items, Name, OneOf, Rows, TextLimit
from fleet.domain.run import Checkpoint, has_work
from fleet.domain.task import Option, Spec, TaskState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.causes import own_task
from fleet.operations.shared.names import team_in_view, the_task
from fleet.operations.tasks.change import AddTask, new_task
from fleet.ports import LandingQuery, Put

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.domain.landing.landing import Planned
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context
    from fleet.ports import Change, Store

MOST_WAITING = 1000  # of one branch, that a landing can be moved among
GitName = Annotated[str, TextLimit(250, what="branch")]
Reason = Annotated[str, TextLimit(1000, what="reason")]
LandingName = Annotated[str, TextLimit(250, some=True, what="landing", example="fleet land list")]


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """What its branch would be with these landings. `members`: landings, in order; `tasks`: theirs.

    `state`: testing, or waiting for a slot. `began`: when its gate began; `gate`: by that name,
    `land.output` reads what it prints.
    """

    members: tuple[str, ...]
    tasks: tuple[str, ...]
    commit: str
    tree: str
    state: str
    began: Time | None
    gate: str = ""


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """Why it landed, or why it does not. `rule`: in a sentence; `before`: what it was merged onto.

    `gate`: the command; empty: nothing was tested. `passed` and `failed`: how often, on this `tree`.
    `took`: microseconds. `output`: the end of what it printed when it failed; `land.show` gives it.
    """

    rule: str
    before: str
    tree: str
    gate: str
    passed: int
    failed: int
    took: int
    at: Time
    output: str = ""


@dataclass(frozen=True, slots=True)
class LandingRow:
    """`ahead`: how many landings of its branch come before it. `commit`: the merge that landed it.

    `onto`: its branch, such as main; `origin/main` is the one of a git remote. `gate`: testing,
    waiting for a slot, passed or failed; empty: it is not its turn. `candidates`: those that are
    tested now with it among their members. `evidence`: of one that landed, or that failed.
    `remote`: it is pushed there; `pr`: by a pull request, whose address is `pull`. `nothing`: its task changed nothing, so that its branch
    stays as it is; only `land.show` looks. `waits`: why nothing lands on its branch now. `given`: the member who looks
    after it, of one that is held.
    """

    id: str
    task: str
    title: str
    state: str
    onto: str
    project: str
    how: str
    tip: str
    commit: str
    why: str
    force: str
    returns: int
    ahead: int | None
    author: str
    at: Time
    gate: str = ""
    candidates: tuple[CandidateRow, ...] = ()
    evidence: EvidenceRow | None = None
    pull: str = ""
    nothing: bool = False
    waits: str = ""
    remote: str = ""
    pr: bool = False
    given: str = ""


@dataclass(frozen=True, slots=True)
class LandTasks(Request[tuple[LandingRow, ...]]):
    """`onto`: a branch; empty: the one that each task started from. `how`: merge or squash.

    `push`: the branch is that of the remote `land.remote`: the work is built on it and pushed there.
    `pr`: likewise, but by a pull request on the forge of that remote.

    `force` is the reason for landing work that is not done or does not pass its gate.
    """

    tasks: Annotated[tuple[LandingName, ...], Items(100, 1, "Name the tasks to land.")]
    onto: GitName = ""
    how: Annotated[str, OneOf(HOWS, "way to land")] = MERGE
    force: Reason = ""
    push: bool = False
    pr: bool = False


@dataclass(frozen=True, slots=True)
class ListLandings(Request[tuple[LandingRow, ...]]):
    """Those that have not landed yet, in order; with `all`, every one, newest first."""

    all: bool = False
    limit: Rows = 50
    before: str = ""


@dataclass(frozen=True, slots=True)
class ShowLanding(Request[LandingRow]):
    """`landing`: its id, or a task's."""

    landing: LandingName


@dataclass(frozen=True, slots=True)
class HoldLanding(Request[LandingRow]):
    """It waits until it is released."""

    landing: LandingName
    why: Reason = ""


@dataclass(frozen=True, slots=True)
class GiveLanding(Request[LandingRow]):
    """`to`: a member of its team, who looks after it until it is queued again; empty: anybody.

    It is listed under *needs you* to everybody, and counts for that member alone.
    """

    landing: LandingName
    to: Name = ""


@dataclass(frozen=True, slots=True)
class ReleaseLanding(Request[LandingRow]):
    """A landing that was held is queued again; what is in the way of a queued one is tried again."""

    landing: LandingName


@dataclass(frozen=True, slots=True)
class DropLanding(Request[LandingRow]):
    """The task stays done, and its work stays on its own branch."""

    landing: LandingName


@dataclass(frozen=True, slots=True)
class UndoLanding(Request[LandingRow]):
    """A new task takes the landed work out of its branch again, tested like any other.

    Where that conflicts with later work, an agent does it; `agent`: which.
    """

    landing: LandingName
    agent: Option = ""


@dataclass(frozen=True, slots=True)
class MoveLanding(Request[LandingRow]):
    """`before`: another landing of the same branch; empty: it becomes the first."""

    landing: LandingName
    before: Annotated[str, TextLimit(250, what="landing")] = ""


def land(context: Context, request: LandTasks) -> tuple[LandingRow, ...]:
    if request.push and request.pr:
        raise Mismatch("Work lands by a push or by a pull request, not by both.", fix="Choose one.")
    onto, force = request.onto.strip(), request.force.strip()
    check_may_force(context.actor, own_task(context), force)
    tasks = [the_task(context, name, Permission.MERGE) for name in dict.fromkeys(request.tasks)]

    def wish_for(task: Task) -> LandingWish:
        return _wish(context, task, request, force)

    return queue_landings(context, tasks, onto, wish_for)


def queue_landings(
    context: Context, tasks: Sequence[Task], onto: str, wish_for: Callable[[Task], LandingWish]
) -> tuple[LandingRow, ...]:
    changes: list[Change] = []
    events, landings, trains = [], [], dict[str, Train]()
    known = context.store.trains()
    for task in tasks:
        wish = wish_for(task)
        landing = _landing(context, task, onto, wish)
        if landing.train not in trains:
            train = known.get(landing.train) or new_train(landing)
            trains[landing.train] = replace(train, waits="")  # try at once
        waiting = replace(task, tally=replace(task.tally, landing=landing.id))
        changes += [Put(landing), Put(waiting)]
        about = {"landing": landing.id, "onto": landing.onto, "force": wish.force}
        events.append(context.event(Kind.LANDING_QUEUED, task.id, **about))
        landings.append(landing)
    context.commit([*map(Put, trains.values()), *changes], *events)
    return tuple(_row(context, landing) for landing in landings)


def _wish(context: Context, task: Task, request: LandTasks, force: str) -> LandingWish:
    """As the request says, else as the settings do: here, on the remote, or by a pull request."""
    settings = context.world(task.project).settings.land
    pr = request.pr or (settings.pr and not request.push)
    wish = LandingWish(context.actor.name, request.how, force)
    if not (pr or request.push or settings.push):
        return wish
    allow(context.actor, Permission.PUSH)
    pull = Proposal(merge=settings.merge) if pr else None
    return replace(wish, remote=settings.remote, pull=pull)


def _landing(context: Context, task: Task, onto: str, wish: LandingWish) -> Landing:
    if task.tally.landing:
        raise _already_queued(context.store.landing(task.tally.landing), onto)
    if not wish.force:
        _check_not_beaten(task)
        _check_asks_nothing(context, task)
        check_ready(task)
    checkpoint = task.tally.checkpoint
    repository, own, branch = _where(context, task)
    target = onto or context.world(task.project).settings.land.onto or branch
    if not wish.force:
        _check_not_there(context, task, repository, wish.remote, target)
    if not target:
        raise Mismatch(
            f"{task.id} did not start from a branch, so Fleet does not know where to land it.",
            fix=f"fleet land {task.id} --onto BRANCH",
        )
    if target == own and not wish.remote:
        raise Refused(
            f"{own} is the branch of {task.id} itself, so its work cannot land there.",
            fix=f"fleet land {task.id} --onto BRANCH",
            code="own_branch",
        )
    if checkpoint is None or not checkpoint.commit:
        raise Refused(
            f"{task.id} has no commit that could land.",
            fix=f"`fleet show {task.id}` shows what happened.",
            code="no_commit",
        )
    with suppress(Unavailable):  # the repository is on another machine
        if wish.remote:
            context.trees().check_remote(repository, wish.remote)
        elif onto:
            context.trees().check_branch(repository, onto)
    store = context.store
    return new_landing(store.new_id("l"), task, repository, target, wish, at=store.now())


def _check_not_there(context: Context, task: Task, repository: str, remote: str, onto: str) -> None:
    """Raise where its work has landed, unless somebody took it out of the branch since."""
    if not task.tally.landed:
        return
    if remote or not onto or _is_there(context, repository, onto, task.tally.landed, task):
        raise _landed_already(task)


def _landed_already(task: Task) -> Refused:
    return Refused(
        f"{task.id} has landed already ({task.tally.landed[:12]}).",
        fix=f"To take it out again: fleet land undo {task.id}",
        code="landed",
    )


def _is_there(context: Context, repository: str, onto: str, commit: str, task: Task) -> bool:
    """Whether the branch has the work that landed; also where that cannot be looked up."""
    point = task.tally.checkpoint
    try:
        return context.trees().has_work(repository, onto, commit, point.commit if point else commit)
    except Unavailable:
        return True
    except NotFound:
        return False


def _check_not_beaten(task: Task) -> None:
    if task.tally.beaten:
        raise Refused(
            f"{task.tally.beaten}, another solution of the same work, was picked instead of {task.id}.",
            fix=f"To choose this one: fleet pick {task.parent} {task.id}",
            code="beaten",
        )


def _check_asks_nothing(context: Context, task: Task) -> None:
    if task.state is TaskState.OPEN and context.store.open_questions([task.id]):
        raise Refused(
            f"{task.id} is not done: it asks something, and waits for the answer.",
            fix=f"fleet answer {task.id} TEXT",
            code="not_done",
        )


def _already_queued(landing: Landing, onto: str) -> Refused:
    if landing.state is LandingState.HELD:
        why = f"The landing of {landing.task} is held ({landing.id}): {landing.why}"
        return Refused(why, fix=f"fleet land release {landing.task}", code="landing")
    if landing.state is LandingState.RETURNED:
        why = f"{landing.task} was sent back to its agent ({landing.id}), and lands when that is done."
        return Refused(why, fix=f"fleet land show {landing.id}", code="landing")
    elsewhere = onto not in {"", landing.onto}
    drop = f"fleet land drop {landing.task}, then fleet land {landing.task} --onto {onto}"
    return Refused(
        f"{landing.task} is already waiting to land on {landing.branch} ({landing.id}).",
        fix=drop if elsewhere else f"fleet land show {landing.id}",
        code="landing",
    )


def _where(context: Context, task: Task) -> tuple[str, str, str]:
    """The repository, the task's own branch, and the one that it started from."""
    runs = reversed(context.store.runs(task.id))
    workspace = next((run.workspace for run in runs if run.workspace), None)
    if workspace is None and task.tally.landed:  # it undid another one, which needs no agent
        raise _landed_already(task)
    if workspace is None or not workspace.branch:
        raise Refused(
            f"{task.id} has no branch of its own, so there is nothing to land.",
            fix=f"`fleet show {task.id}` shows where it works, and whether it has run.",
            code="no_branch",
        )
    if workspace.repository:
        repository = context.trees().repository_of(task) or workspace.repository
        return repository, workspace.branch, workspace.onto
    repository, onto = context.trees().origin(task)  # an older version made this workspace
    return repository, workspace.branch, onto


def the_landing(context: Context, name: str) -> Landing:
    name = name.strip()
    if not name.startswith("l-"):
        task = the_task(context, name, Permission.READ)
        newest = context.store.landings(LandingQuery(task=task.id, limit=1))
        if not newest:
            raise NotFound(
                f"{task.id} was never queued to land.", fix=f"Queue it: fleet land {task.id}"
            )
        return newest[0]
    with suppress(NotFound):
        landing = context.store.landing(name)
        the_task(context, landing.task, Permission.READ)  # in view?
        return landing
    raise NotFound(f"There is no landing '{name[:40]}'.", fix="fleet land list --all")


def _open_landing(context: Context, name: str) -> Landing:
    landing = the_landing(context, name)
    the_task(context, landing.task, Permission.MERGE)
    if not landing.open:
        how = "has landed already" if landing.state == "landed" else f"is {landing.state}"
        raise Refused(f"{landing.id} {how}.", fix=f"fleet land show {landing.id}", code="ended")
    return landing


def _row(
    context: Context, landing: Landing, ahead: int | None = None, *, whole: bool = False
) -> LandingRow:
    train = context.store.trains().get(landing.train)
    queued = landing.state is LandingState.QUEUED
    plan = plan_of(context.store, landing)
    candidates = tuple(candidate_row(context, one) for one in plan)
    evidence = _evidence(context, landing, plan, whole=whole)
    blocked = blocker_of(train) if train and queued else ""
    return LandingRow(
        id=landing.id,
        task=landing.task,
        title=context.store.task(landing.task).title,
        state=landing.state,
        onto=landing.branch,
        project=landing.project,
        how=landing.wish.how,
        tip=landing.tip,
        commit=landing.commit,
        why=landing.why or blocked,
        force=landing.wish.force,
        returns=landing.returns,
        ahead=ahead,
        author=landing.wish.author,
        at=landing.at,
        gate=_gate_state(landing, candidates, evidence),
        candidates=candidates,
        evidence=evidence,
        pull=landing.pull.url if landing.pull else "",
        nothing=whole and _is_empty(context.store, landing),
        waits=blocked,
        remote=landing.wish.remote,
        pr=landing.wish.pull is not None,
        given=landing.wish.given if landing.state is LandingState.HELD else "",
    )


def plan_of(store: Store, landing: Landing) -> list[Planned]:
    """The candidates that are tested now with it among their members."""
    train = store.trains().get(landing.train)
    if train is None or landing.state is not LandingState.QUEUED:
        return []
    return [planned for planned in train.plan if landing.id in planned.members]


def _is_empty(store: Store, landing: Landing) -> bool:
    task = store.task(landing.task)
    checkpoint = task.tally.checkpoint
    if checkpoint is None or not task.run_id or landing.tip != checkpoint.commit:
        return False
    return not has_work(checkpoint, store.run(task.run_id))


def candidate_row(context: Context, planned: Planned) -> CandidateRow:
    """With the members that the actor sees: a branch can get the work of several teams."""
    team = team_in_view(context)
    landings = [context.store.landing(member) for member in planned.members]
    seen = [landing for landing in landings if team in {"", landing.team}]
    result = context.store.gate_results([planned.result]).get(planned.result)
    number = result.ended + 1 if result else 1
    return CandidateRow(
        members=tuple(landing.id for landing in seen),
        tasks=tuple(landing.task for landing in seen),
        commit=planned.commit,
        tree=planned.tree,
        state="testing" if planned.began else "waiting",
        began=planned.began or None,
        gate=gate_name(planned.result, number) if planned.tests(result) else "",
    )


def _evidence(
    context: Context, landing: Landing, plan: Sequence[Planned], *, whole: bool
) -> EvidenceRow | None:
    """What its gate has said: of the tree that landed, or the last one that was tested alone."""
    kept = landing.evidence
    alone = next((one.result for one in plan if one.members == (landing.id,)), "")
    name = kept.result or alone
    result = context.store.gate_results([name]).get(name) if name else None
    if result is None:
        rule = kept.rule
        return EvidenceRow(rule, kept.before, "", "", 0, 0, 0, 0) if rule else None
    return EvidenceRow(
        rule=kept.rule,
        before=kept.before,
        tree=tested_tree(result.id),
        gate=result.command,
        passed=result.passed,
        failed=result.failed,
        took=round(result.seconds * 1_000_000),
        at=result.at,
        output=result.output if whole else "",
    )


def _gate_state(
    landing: Landing, candidates: Sequence[CandidateRow], evidence: EvidenceRow | None
) -> str:
    if candidates:
        return "testing" if any(one.state == "testing" for one in candidates) else "waiting"
    if evidence is None or not evidence.gate:
        return ""
    return "passed" if landing.state is LandingState.LANDED or evidence.passed else "failed"


def list_all(context: Context, request: ListLandings) -> tuple[LandingRow, ...]:
    query = LandingQuery(
        team=team_in_view(context), open_only=not request.all, before=request.before,
        limit=request.limit,
    )  # fmt: skip
    landings = context.store.landings(query)
    if request.all:
        return tuple(_row(context, landing) for landing in landings)
    landings.sort(key=lambda landing: (landing.train, landing.order))
    counts: dict[str, int] = {}
    rows = []
    for landing in landings:
        ahead = None
        if landing.state is LandingState.QUEUED:
            ahead = counts[landing.train] = counts.get(landing.train, -1) + 1
        rows.append(_row(context, landing, ahead))
    return tuple(rows)


def show(context: Context, request: ShowLanding) -> LandingRow:
    landing = the_landing(context, request.landing)
    return _row(context, landing, _ahead(context, landing), whole=True)


def _ahead(context: Context, landing: Landing) -> int | None:
    if landing.state is not LandingState.QUEUED:
        return None
    query = LandingQuery(train=landing.train, open_only=True, limit=MOST_WAITING)
    queue = [one for one in context.store.landings(query) if one.state is LandingState.QUEUED]
    return sum(one.order < landing.order for one in queue)


def _changed(context: Context, landing: Landing, kind: Kind, **data: str) -> LandingRow:
    about = {"landing": landing.id, "onto": landing.onto, **data}
    changes: list[Change] = [Put(landing)]
    if landing.state is LandingState.DROPPED:
        task = context.store.task(landing.task)
        changes.append(Put(replace(task, tally=replace(task.tally, landing=""))))
    context.commit(changes, context.event(kind, landing.task, **about))
    return _row(context, landing)


def hold(context: Context, request: HoldLanding) -> LandingRow:
    landing = _open_landing(context, request.landing)
    if landing.state is LandingState.HELD:
        return _row(context, landing)
    why = request.why.strip()
    why = why or f"{context.actor.name} holds it."
    landing = replace(landing, state=LandingState.HELD, why=why)
    return _changed(context, landing, Kind.LANDING_HELD, why=why)


def give(context: Context, request: GiveLanding) -> LandingRow:
    landing, to = _open_landing(context, request.landing), request.to.strip()
    if landing.state is not LandingState.HELD:
        raise Refused(
            f"{landing.id} is {landing.state}: only what is held waits for a person.",
            fix=f"fleet land hold {landing.id}",
            code="not_held",
        )
    is_known = to in {"", context.actor.name} or context.store.entry(
        EntryKind.MEMBER, landing.team, to
    )
    if not is_known:
        raise NotFound(
            f"There is no member '{to[:60]}' in team {landing.team}.",
            fix="`fleet teams` lists the members.",
        )
    if landing.wish.given == to:
        return _row(context, landing)
    given = replace(landing, wish=replace(landing.wish, given=to))
    return _changed(context, given, Kind.LANDING_GIVEN, to=to or "anybody")


def release(context: Context, request: ReleaseLanding) -> LandingRow:
    landing = _open_landing(context, request.landing)
    if landing.state is LandingState.QUEUED:
        train = context.store.trains()[landing.train]
        if train.waits:  # try at once
            context.commit([Put(replace(train, waits=""))])
        return _row(context, landing)
    task = context.store.task(landing.task)
    checkpoint = task.tally.checkpoint
    tip = checkpoint.commit if checkpoint and checkpoint.commit else landing.tip
    now = context.store.now()
    queued = replace(queued_again(landing, tip, at=now), returns=0)
    if queued.wish.pull is not None:
        queued = with_pull(queued, None)  # that one may be over: it is looked for again
    return _changed(context, queued, Kind.LANDING_QUEUED)


def drop(context: Context, request: DropLanding) -> LandingRow:
    landing = _open_landing(context, request.landing)
    dropped = replace(landing, state=LandingState.DROPPED, why=f"{context.actor.name} dropped it.")
    return _changed(context, dropped, Kind.LANDING_DROPPED)


UNDO = """\
Undo the work of {task} ({title}): it landed on {onto} with commit {commit}.

Take out what it changed, all of it and nothing else:

    git diff {before} {commit}

Work that came later stays, and must still work. Where it builds on what you take out, keep its intent. Run the tests,
and commit."""


def undo(context: Context, request: UndoLanding) -> LandingRow:
    """Where nothing conflicts, git makes the commit; a person or an agent is needed only otherwise."""
    _check_not_by_hand(context, request.landing)
    landing = the_landing(context, request.landing)
    work = the_task(context, landing.task, Permission.MERGE)
    _check_brought_something(landing)
    _check_not_undone(context, landing)
    _check_still_there(context, landing, work)
    task = _undo_task(context, request, landing, work)  # first: it may be refused
    commit = _reverted(context, landing, work)
    task = replace(task, spec=replace(task.spec, base=commit or landing.onto))
    wish = LandingWish(context.actor.name, remote=landing.wish.remote)
    point = Checkpoint(commit=commit)
    ready = replace(task, tally=replace(task.tally, checkpoint=point))
    new = _new_landing(context, ready, landing, wish)
    if not commit:  # an agent does it first: then it is queued
        new = replace(new, state=LandingState.RETURNED, why="It conflicts with later work.")
    state = TaskState.DONE if commit else TaskState.OPEN
    tally = replace(ready.tally, checkpoint=point if commit else None, landing=new.id)
    if commit:
        tally = replace(tally, ended_at=context.store.now())
    added = context.event(Kind.TASK_ADDED, task.id, title=task.title)
    about = {"landing": new.id, "onto": new.onto, "force": ""}
    queued = context.event(Kind.LANDING_QUEUED, task.id, **about)
    undone = replace(landing, evidence=replace(landing.evidence, undone=task.id))
    changes: list[Change] = [Put(replace(task, state=state, tally=tally)), Put(new), Put(undone)]
    context.commit(changes, added, queued)
    return _row(context, new)


def _check_not_by_hand(context: Context, name: str) -> None:
    """Raise for a task that a person merged: of what came with it Fleet has written nothing down."""
    task = None if name.strip().startswith("l-") else the_task(context, name, Permission.READ)
    if task is None or not task.tally.landed:
        return
    if not context.store.landings(LandingQuery(task=task.id, limit=1)):
        raise Refused(
            f"{task.id} was merged without Fleet, so Fleet does not know what came with it.",
            fix="Take it out by hand as well, with git revert.",
            code="not_landed",
        )


def _check_brought_something(landing: Landing) -> None:
    why, before = "", landing.evidence.before
    if landing.state is not LandingState.LANDED or not before:
        why = f"{landing.id} is {landing.state}: there is nothing to undo."
    elif before == landing.commit:
        why = f"{landing.task} brought nothing to {landing.onto}, so there is nothing to undo."
    if why:
        raise Refused(why, fix=f"fleet land show {landing.id}", code="not_landed")


def _check_not_undone(context: Context, landing: Landing) -> None:
    """Raise while a task takes it out, or has; one that failed, or was undone itself, has not."""
    last = _undoing(context.store, landing)
    if last is None:
        return
    name, has_landed = last.task, last.state is LandingState.LANDED
    raise Refused(
        f"{landing.task} was undone by {name} ({last.commit[:12]})."
        if has_landed
        else f"{name} undoes {landing.task} already.",
        fix=f"To bring it back: fleet land undo {name}" if has_landed else f"fleet show {name}",
        code="undone",
    )


def _undoing(store: Store, landing: Landing) -> Landing | None:
    """The landing that takes this one out of its branch, or has; one that was undone has not."""
    name = landing.evidence.undone
    task = store.tasks_by_id([name]).get(name) if name else None
    if task is None or task.state in {TaskState.FAILED, TaskState.CANCELLED}:
        return None
    (last,) = store.landings(LandingQuery(task=name, limit=1)) or (None,)
    if last is None or last.state is LandingState.DROPPED or last.evidence.undone:
        return None
    return last


def is_undone(store: Store, task: str) -> bool:
    """Whether what this task landed last has been taken out of its branch again."""
    (newest,) = store.landings(LandingQuery(task=task, limit=1)) or (None,)
    last = _undoing(store, newest) if newest else None
    return last is not None and last.state is LandingState.LANDED


def _check_still_there(context: Context, landing: Landing, work: Task) -> None:
    if landing.wish.remote:
        return
    repository = context.store.trains()[landing.train].repository
    if not _is_there(context, repository, landing.onto, landing.commit, work):
        raise Refused(
            f"{landing.onto} does not have {landing.commit[:12]} any more: somebody took it out.",
            fix=f"To land it again: fleet land {work.id}",
            code="not_landed",
        )


def _reverted(context: Context, landing: Landing, work: Task) -> str:
    """A commit without it; empty: it conflicts, or the repository is elsewhere."""
    repository = context.store.trains()[landing.train].repository
    message = f"Undo {work.id}: {work.title}\n\nThis takes out {landing.commit}."
    if landing.wish.remote:
        return ""
    try:
        span = (landing.evidence.before, landing.commit)
        return context.trees().revert(repository, landing.onto, span, message)
    except Unavailable:
        return ""


def _undo_task(context: Context, request: UndoLanding, landing: Landing, work: Task) -> Task:
    prompt = UNDO.format(
        task=work.id, title=work.title, onto=landing.onto, commit=landing.commit,
        before=landing.evidence.before,
    )  # fmt: skip
    agent, coder, model = (request.agent, "", "") if request.agent else _who_did(context, work)
    spec = Spec(
        agent=agent, coder=coder, model=model, cwd=work.spec.cwd, base=landing.onto,
        gate=work.spec.gate, labels=(UNDO_LABEL,),
    )  # fmt: skip
    wanted = AddTask(
        f"Undo {work.id}: {work.title}"[:200], prompt, work.project, spec, team=work.team
    )
    return new_task(context, wanted)


def _who_did(context: Context, work: Task) -> tuple[str, str, str]:
    """The agent, the coder and the model that did the work, as a task asks for them."""
    spec = work.spec
    run = context.store.runs_by_id([work.run_id]).get(work.run_id) if work.run_id else None
    if spec.agent or spec.coder or run is None:
        return spec.agent, spec.coder, spec.model
    if run.choice.agent in context.world(work.project).fleet.agents:
        return run.choice.agent, "", spec.model
    return "", run.choice.coder, spec.model


def _new_landing(context: Context, task: Task, old: Landing, wish: LandingWish) -> Landing:
    store = context.store
    repository = store.trains()[old.train].repository
    return new_landing(store.new_id("l"), task, repository, old.onto, wish, at=store.now())


def move(context: Context, request: MoveLanding) -> LandingRow:
    landing = _open_landing(context, request.landing)
    query = LandingQuery(train=landing.train, open_only=True, limit=MOST_WAITING)
    queue = sorted(context.store.landings(query), key=lambda one: one.order)
    others = [one for one in queue if one.id != landing.id]
    where = 0
    if request.before:
        target = request.before.strip()
        team = team_in_view(context)
        seen = (n for n, one in enumerate(others) if team in {"", one.team})
        if target in {landing.id, landing.task}:
            raise Mismatch(
                f"{landing.id} cannot be moved before itself.",
                fix=f"To the front: fleet land move {landing.id}",
            )
        where = next((n for n in seen if target in {others[n].id, others[n].task}), -1)
        if where < 0:
            raise NotFound(
                f"{target} is not waiting to land on {landing.onto}.",
                fix="`fleet land` lists what waits.",
            )
    after = others[where].order if others else landing.order
    earlier = others[where - 1].order if others and where else after - 2 * ORDER_STEP
    moved = replace(landing, order=(earlier + after) // 2, wish=replace(landing.wish, moved=True))
    return _changed(context, moved, Kind.LANDING_MOVED)


_P = Permission
OPERATIONS = (
    Operation(
        "land.add", LandTasks, _P.MERGE, land, "Queue the work of tasks to land.", outside=True),
    Operation("land.list", ListLandings, _P.READ, list_all, "List what waits to land."),
    Operation("land.show", ShowLanding, _P.READ, show, "Show a landing."),
    Operation("land.hold", HoldLanding, _P.MERGE, hold, "Hold a landing."),
    Operation("land.give", GiveLanding, _P.MERGE, give, "Give a held landing to a member."),
    Operation("land.release", ReleaseLanding, _P.MERGE, release, "Queue a held landing again."),
    Operation("land.drop", DropLanding, _P.MERGE, drop, "Drop a landing."),
    Operation("land.move", MoveLanding, _P.MERGE, move, "Move a landing within its queue.", idempotent=False),
    Operation(
        "land.undo", UndoLanding, _P.ASSIGN, undo, "Take landed work out of its branch again.",
        outside=True,
    ),
)  # fmt: skip
