"""Tasks as a list shows them. The status is computed here, and never stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.base.outside import Time
from fleet.domain.choice import DEFAULT, frozen
from fleet.domain.data import dataclass
from fleet.domain.run import Choice, RunState
from fleet.domain.schedule import reasons
from fleet.domain.spending.budget import DOLLAR, granted
from fleet.domain.task import ENDED, TaskState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.domain.message import Message
    from fleet.domain.run import Progress, Run, Usage
    from fleet.domain.schedule import Reason
    from fleet.domain.task import Spec, Task
    from fleet.operations.catalogue import Context
    from fleet.ports import Store

OPEN, DONE = TaskState.OPEN, TaskState.DONE  # looking up a member of an enum is slow
STATUS_BY_REASON = {  # the status of an open task by the reason why it waits; the first reason counts
    "asking": "asking",
    "paused": "paused",
    "assigned": "assigned",
    "held": "held",
    "after": "waiting",
    "uncommitted": "waiting",
    "unlanded": "waiting",
    "postponed": "postponed",
    "children": "children",
}
STATE_OF = {  # by status that a list shows, and by state: the state
    **{str(state): state for state in TaskState},
    **dict.fromkeys(("ready", *STATUS_BY_REASON.values()), TaskState.OPEN),
    **dict.fromkeys(("starting", "stopping"), TaskState.RUNNING),
    **dict.fromkeys(("landing", "landed", "beaten"), TaskState.DONE),
}


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Tokens, and the cost in millionths of a dollar. `context` is the size of the newest prompt.

    `estimated`: the coder reports no usage, so it is estimated from the transcript.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    context: int = 0
    cost: int = 0
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class RunNow:
    """The newest run of a task, as a list shows it.

    `setup`: the set-up command that its workspace is at, since `heard_at`. `added`, `removed`: lines
    that its task has changed, known when the run has succeeded. `node`: serves its model. `window`:
    how many tokens its context holds, of which `usage.context` are in use.
    """

    id: str
    started_at: Time | None
    ended_at: Time | None
    heard_at: Time | None
    lines: int | None
    peak_context: int | None
    usage: UsageRow
    last: str
    setup: str = ""
    branch: str = ""
    added: int | None = None
    removed: int | None = None
    node: str = ""
    window: int = 0


@dataclass(frozen=True, slots=True)
class TaskRow:
    """`given`: which of agent, coder and model the task itself names.

    `landing`: the id of its landing, until it has landed. `landed`: the commit it landed with.
    `uncommitted`: of one that is done, how many changed files its agent left that no commit has.
    `route`: the rule of fleet.yaml that chose its agent and model. `parent`: the task that it is a
    part of. `waits_for`: the tasks it runs after that are not done. `spent`, of `budget`: what all
    its runs have cost, of a task with a budget of its own; in millionths of a dollar. `paused`: no
    further run of it starts; a run that goes on is let go on.
    """

    id: str
    title: str
    status: str
    state: str
    team: str
    priority: int
    labels: tuple[str, ...]
    agent: str
    coder: str
    model: str
    given: tuple[str, ...]
    project: str
    cwd: str
    created_at: Time
    run: RunNow | None
    landing: str = ""
    landed: str = ""
    uncommitted: int = 0
    route: str = ""
    parent: str = ""
    waits_for: tuple[str, ...] = ()
    spent: int = 0
    budget: int = 0
    paused: bool = False


def rows(
    context: Context, tasks: Sequence[Task], asking: Mapping[str, list[Message]] | None = None
) -> list[TaskRow]:
    """The rows of a list.

    `asking`: the open questions of these tasks, if the caller has them.
    """
    store = context.store
    needs = store.tasks_by_id(sorted({n for t in tasks for n in t.after}))
    runs = store.runs_by_id([t.run_id for t in tasks if t.run_id])
    progress = store.progress(list(runs))
    if asking is None:
        asking = _open_questions(store, tasks)
    now = store.now()
    made = []
    for task in tasks:
        wanted = [needs[n] for n in task.after if n in needs]
        why = reasons(task, wanted, asking.get(task.id, ()), now=now) if task.state is OPEN else ()
        run_id = task.run_id
        undone: tuple[str, ...] = ()
        if wanted and task.state not in ENDED:
            undone = tuple(n.id for n in wanted if n.state != DONE)
        made.append(_row(task, why, runs.get(run_id), progress.get(run_id), undone))
    return made


def _open_questions(store: Store, tasks: Sequence[Task]) -> dict[str, list[Message]]:
    by_task: dict[str, list[Message]] = {}
    for question in store.open_questions([t.id for t in tasks if t.state is OPEN]):
        by_task.setdefault(question.task, []).append(question)
    return by_task


def _row(
    task: Task,
    why: Sequence[Reason],
    run: Run | None,
    progress: Progress | None,
    waits_for: tuple[str, ...],
) -> TaskRow:
    spec, who = task.spec, _who(task, run)
    own = spec.limits.budget
    budget = granted(own, own, task.tally.grants).cost if own.cost else 0
    return TaskRow(
        id=task.id,
        title=task.title,
        status=_status(task, why, run),
        state=task.state,
        team=task.team,
        priority=spec.priority,
        labels=spec.labels,
        agent=who.agent,
        coder=who.coder,
        model=who.model,
        given=_given(spec) if spec.agent or spec.coder or spec.model else (),
        project=task.project,
        cwd=spec.cwd,
        created_at=task.created_at,
        run=_run_now(run, progress) if run else None,
        landing=task.tally.landing,
        landed=task.tally.landed,
        uncommitted=task.uncommitted,
        route=who.route,
        parent=task.parent,
        waits_for=waits_for,
        spent=_spent(task, run, progress) if budget else 0,
        budget=budget,
        paused=task.paused,
    )


def _given(spec: Spec) -> tuple[str, ...]:
    named = (("agent", spec.agent), ("coder", spec.coder), ("model", spec.model))
    return tuple([name for name, value in named if value])


def _spent(task: Task, run: Run | None, progress: Progress | None) -> int:
    running = progress.usage.usd if progress is not None and run is not None and run.live else 0.0
    return round((task.tally.spent.usd + running) * DOLLAR)


def _who(task: Task, run: Run | None) -> Choice:
    """The choice of the task's newest run or of the task; `default` if it is made at the start."""
    if run is not None and task.state is not OPEN:
        return run.choice
    if (choice := frozen(task)) is not None:
        return choice
    spec = task.spec
    return Choice(spec.agent or spec.coder or DEFAULT, spec.coder or DEFAULT, spec.model)


def _status(task: Task, why: Sequence[Reason], run: Run | None) -> str:
    state = task.state
    if state is OPEN:
        return _status_of_open(why) if why else "ready"
    if state is TaskState.RUNNING:
        if run is not None and run.wanted:
            return "stopping"
        return "starting" if run is not None and run.state is RunState.CLAIMED else "running"
    if state is DONE and (task.tally.landing or task.tally.landed):
        return "landing" if task.tally.landing else "landed"
    return "beaten" if state is DONE and task.tally.beaten else str(state)


def _status_of_open(why: Sequence[Reason]) -> str:
    if len(why) == 1:
        return STATUS_BY_REASON[why[0][0]]
    codes = {code for code, _ in why}
    return next(status for code, status in STATUS_BY_REASON.items() if code in codes)


def _run_now(run: Run, progress: Progress | None) -> RunNow:
    ended, heard = run.outcome, progress
    usage = ended.usage if ended else heard.usage if heard else None
    return RunNow(
        id=run.id,
        started_at=run.started_at or None,
        ended_at=run.ended_at or None,
        heard_at=heard.at if heard else None,
        lines=heard.lines if heard else None,
        peak_context=max(heard.peak_context if heard else 0, usage.context if usage else 0) or None,
        usage=usage_row(usage),
        last=ended.detail if ended else heard.last if heard else "",
        setup=heard.setup if heard and run.state is RunState.CLAIMED else "",
        branch=run.workspace.branch if run.workspace else "",
        added=ended.checkpoint.added if ended and ended.checkpoint else None,
        removed=ended.checkpoint.removed if ended and ended.checkpoint else None,
        node=run.choice.node,
        window=heard.window if heard else 0,
    )


def usage_row(usage: Usage | None) -> UsageRow:
    if usage is None:
        return UsageRow()
    cost = round(usage.usd * DOLLAR)
    return UsageRow(usage.input, usage.output, usage.cached, usage.context, cost, usage.estimated)
