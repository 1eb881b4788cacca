"""Change what a task asks for."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Annotated, Any

from fleet.domain.access import Permission
from fleet.domain.causes import reworded
from fleet.domain.data import dataclass
from fleet.domain.errors import Refused
from fleet.domain.event import Kind
from fleet.domain.limits import TextLimit
from fleet.domain.routes import Traits
from fleet.domain.task import Base, Budget, Count, Labels, Option, Priority, Seconds, TaskState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.causes import decide
from fleet.operations.shared.choice import checked_choice
from fleet.operations.shared.names import the_task
from fleet.operations.tasks.change import Needs, Prompt, Title
from fleet.operations.tasks.commit import write_task
from fleet.operations.tasks.dependencies import needs_of, with_need
from fleet.operations.tasks.rows import TaskRow, rows
from fleet.ports import Same

if TYPE_CHECKING:
    from collections.abc import Collection

    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context

OF_TASK = ("title", "prompt", "after")
OF_LIMITS = ("attempts", "time_limit", "budget")
WHO = frozenset({"agent", "coder", "model"})
WORDS = WHO | {
    "title",
    "prompt",
    "base",
    "gate",
}  # whoever edits these must be allowed to cause the runs
AT_START = WHO | {"base", "gate", "after", "time_limit"}  # a live run keeps these
OF_PARENT = frozenset({"title", "prompt", "priority", "labels"})


@dataclass(frozen=True, slots=True)
class EditTask(Request[TaskRow]):
    """A null field stays unchanged; an empty one takes the value of the settings.

    A live run keeps the prompt it was given; the next one is told the new prompt. With another
    agent the coder is that agent's, and with another agent or coder so is the model, unless the
    request names them. `after`: all the tasks that it waits for, as in `task.add`.
    """

    task: str
    title: Title | None = None
    prompt: Prompt | None = None
    priority: Priority | None = None
    agent: Option | None = None
    coder: Option | None = None
    model: Option | None = None
    base: Base | None = None
    gate: Annotated[str, TextLimit(10_000)] | None = None
    after: Needs | None = None
    labels: Labels | None = None
    attempts: Count | None = None
    time_limit: Seconds | None = None
    budget: Budget | None = None
    review: bool | None = None


FIELDS = tuple(field.name for field in fields(EditTask) if field.name != "task")


def edit(context: Context, request: EditTask) -> TaskRow:
    task = the_task(context, request.task, Permission.ASSIGN)
    changed, same = _after(context, task, request.after)
    changed = _edited(changed, request)
    what = [name for name in FIELDS if _value(task, name) != _value(changed, name)]
    if not what:
        return rows(context, [task])[0]
    _check_possible(context, task, what)
    if WORDS & set(what):
        changed = _asked_for(context, changed, what)
    if changed.tally.stuck and {"base", "after"} & set(
        what
    ):  # these may have kept it from starting
        changed = replace(changed, paused=False, tally=replace(changed.tally, stuck=False, why=""))
    return write_task(context, changed, Kind.TASK_EDITED, same, what=", ".join(what))


def _value(task: Task, name: str) -> object:
    if name in OF_TASK:
        return task.needs if name == "after" else getattr(task, name)
    return getattr(task.spec.limits if name in OF_LIMITS else task.spec, name)


def _after(context: Context, task: Task, names: tuple[str, ...] | None) -> tuple[Task, list[Same]]:
    """The task with exactly these dependencies, and the conditions of the commit that writes it."""
    if names is None:
        return task, []
    wanted = needs_of(context, names, known=task.after)
    after = tuple(need for need in task.after if need in wanted)
    landed = tuple(need for need, landed in wanted.items() if landed)
    changed = replace(task, after=after, after_landed=landed)
    same: dict[str, Same] = {}
    for need in wanted:
        changed, seen = with_need(context, changed, need)
        same |= {t.id: Same(t) for t in seen}
    return changed, list(same.values())


def _edited(task: Task, request: EditTask) -> Task:
    if request.title is not None:
        task = replace(task, title=" ".join(request.title.split()))
    if request.prompt is not None:
        task = replace(task, prompt=request.prompt)
    values = {n: getattr(request, n) for n in FIELDS if n not in OF_TASK}
    given = {name: value for name, value in values.items() if value is not None}
    given |= _of_agent(task, given)
    limits = {name: given.pop(name) for name in OF_LIMITS if name in given}
    spec = replace(task.spec, **given, limits=replace(task.spec.limits, **limits))
    return replace(task, spec=spec)


def _of_agent(task: Task, given: dict[str, Any]) -> dict[str, str]:
    """Clear the coder and model when another agent or coder is given without them."""
    other = {n for n in ("agent", "coder") if n in given and given[n] != getattr(task.spec, n)}
    cleared = ({"coder", "model"} if "agent" in other else {"model"} if other else set()) - set(
        given
    )
    return dict.fromkeys(cleared, "")


def _check_possible(context: Context, task: Task, what: Collection[str]) -> None:
    if task.join is not None and not OF_PARENT.issuperset(what):
        raise Refused(f"{task.id} has child tasks and no run of its own.", fix="Edit its children.")
    late = [name.replace("_", " ") for name in what if name in AT_START]
    if task.state is TaskState.RUNNING and late:
        raise Refused(
            f"{task.id} is running, and its run keeps the {' and '.join(late)} it started with.",
            fix=f"End the run first: `fleet cancel {task.id}`. Then edit the task, and"
            f" `fleet retry {task.id}`.",
            code="running",
        )
    if "base" in what and (branch := _begun_branch(context, task)):
        raise Refused(
            f"{task.id} has begun, and its next run continues on {branch}.",
            fix=f"Merge the other base there (`fleet cd {task.id}` prints the directory), "
            "or add a new task.",
            code="begun",
        )


def _begun_branch(context: Context, task: Task) -> str:
    """The branch that its next run continues on; empty when no coder has worked on it yet."""
    runs = context.store.runs(task.id) if task.run_id else []
    made = (run.workspace for run in reversed(runs) if run.started_at and run.workspace)
    return next((workspace.branch for workspace in made if workspace.branch), "")


def _asked_for(context: Context, task: Task, what: Collection[str]) -> Task:
    """The task as caused by the actor too; raise unless the actor may cause the edited task."""
    spec, choice = task.spec, task.choice
    who = WHO.intersection(what)
    if choice is not None and not who & {"agent", "coder"}:
        spec = replace(spec, agent=choice.agent, coder=choice.coder)
    traits = Traits(task.title, task.prompt, spec.labels)
    run = not spec.assignee and task.join is None
    caused, _ = decide(context, task.project, spec, run=run, traits=traits)
    if who:
        choice = checked_choice(spec, context.world(task.project), traits)
        task = replace(task, choice=choice)
        task = replace(task, role=task.role or caused.role)
    return reworded(task, caused.by)


OPERATIONS = (
    Operation("task.edit", EditTask, Permission.ASSIGN, edit, "Change what a task asks for."),
)
