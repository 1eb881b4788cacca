"""Change the title, prompt or priority of a task."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.access import Permission
from fleet.domain.causes import reworded
from fleet.domain.data import dataclass
from fleet.domain.event import Kind
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.causes import decide
from fleet.operations.shared.names import clean_text, some_text, the_task
from fleet.operations.tasks.change import MOST_PROMPT, MOST_TITLE
from fleet.operations.tasks.check_spec import check_spec
from fleet.operations.tasks.commit import write_task
from fleet.operations.tasks.rows import TaskRow, rows

if TYPE_CHECKING:
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context


@dataclass(frozen=True, slots=True)
class EditTask(Request[TaskRow]):
    """A null field stays unchanged. A live run keeps the prompt it was given."""

    task: str
    title: str | None = None
    prompt: str | None = None
    priority: int | None = None


def edit(context: Context, request: EditTask) -> TaskRow:
    task = the_task(context, request.task, Permission.ASSIGN)
    changed = _edited(task, request)
    if changed == task:
        return rows(context, [task])[0]
    what = [n for n in ("title", "prompt") if getattr(task, n) != getattr(changed, n)]
    if what:
        changed = _reworded(context, changed)
    what += ["priority"] if task.spec != changed.spec else []
    return write_task(context, changed, Kind.TASK_EDITED, what=", ".join(what))


def _edited(task: Task, request: EditTask) -> Task:
    if request.title is not None:
        one_line = " ".join(request.title.split())
        title = some_text("title", one_line, most=MOST_TITLE, example="Name what is to be done.")
        task = replace(task, title=title)
    if request.prompt is not None:
        task = replace(task, prompt=clean_text("prompt", request.prompt, most=MOST_PROMPT))
    if request.priority is not None and request.priority != task.spec.priority:
        task = replace(task, spec=replace(task.spec, priority=request.priority))
        check_spec(task.spec)
    return task


def _reworded(context: Context, task: Task) -> Task:
    """Raise unless the actor could have asked for the task: its words are now the actor's."""
    spec, choice = task.spec, task.choice
    if choice is not None:
        spec = replace(spec, agent=choice.agent, coder=choice.coder)
    caused, _ = decide(context, task.project, spec)
    return reworded(task, caused.by)


OPERATIONS = (
    Operation(
        "task.edit", EditTask, Permission.ASSIGN, edit, "Change a task's title, prompt or priority."
    ),
)
