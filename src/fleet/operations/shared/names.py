"""Finds the task, run or question that a name in a request means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fleet.domain.access import Permission, Role, allow, sees
from fleet.domain.errors import Mismatch, NotFound, Refused
from fleet.domain.message import MessageKind
from fleet.ports import MessageQuery

if TYPE_CHECKING:
    from fleet.domain.message import Message
    from fleet.domain.run import Run
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context

LIST = "`fleet tasks --all` lists them."
MAX_ROWS = 10_000  # rows in one reply
PAGE = 200  # rows in one reply of a server; a client asks again for more
_TASK = r"(?:t-)?([0-9]{1,18})(?:\.([0-9]{1,9}))?"
_MESSAGE = r"m-[0-9]{1,18}"


def is_task_name(name: str) -> bool:
    """Whether the name means a task, even if a branch has the same name."""
    return re.fullmatch(_TASK, name) is not None


def the_task(context: Context, name: str, permission: Permission) -> Task:
    """The task with this id (`t-31`, `31`), run (`t-31.2`) or branch; empty: the actor's own."""
    task_id = name.strip() or context.actor.task
    if not task_id:
        raise NotFound("No task was named.", fix=LIST)
    match = re.fullmatch(_TASK, task_id)
    if match is None:
        from fleet.operations.shared.branch_names import resolve  # noqa: PLC0415  # it needs this module

        return resolve(context, task_id, permission, project=context.project)
    task = task_in_view(context, f"t-{int(match[1])}")
    if task is None:
        raise NotFound(f"There is no task '{task_id[:60]}'.", fix=LIST)
    allow(context.actor, permission)
    if match[2]:
        _numbered(context, task, int(match[2]))
    return task


def task_in_view(context: Context, task_id: str) -> Task | None:
    """The task of this id; None when there is none in a team that the actor sees."""
    task = context.store.tasks_by_id([task_id]).get(task_id)
    return task if task is not None and sees(context.actor, task.team) else None


def the_run(context: Context, name: str, permission: Permission) -> Run:
    """The run with this id (`t-31.2`), or the newest run of the task."""
    task = the_task(context, name, permission)
    match = re.fullmatch(_TASK, name.strip())
    if match and match[2]:
        return _numbered(context, task, int(match[2]))
    if not task.run_id:
        raise Refused(
            f"{task.id} has not run yet.", fix=f"`fleet show {task.id}` says why.", code="no_run"
        )
    return context.store.run(task.run_id)


def _numbered(context: Context, task: Task, number: int) -> Run:
    try:
        return context.store.run(f"{task.id}.{number}")
    except NotFound as error:
        raise NotFound(
            f"{task.id} has no run {number}.", fix=f"`fleet show {task.id}` lists its runs."
        ) from error


def the_question(context: Context, name: str, permission: Permission) -> Message:
    """The question with this id (`m-7`), or the one open question of a task."""
    name = name.strip()
    if re.fullmatch(_MESSAGE, name):
        question = message_on_task(context, name)
        if question is None:
            raise NotFound(f"There is no question '{name}'.", fix="`fleet questions` lists them.")
        allow(context.actor, permission)
        return question
    task = the_task(context, name, permission)
    still = context.store.open_questions([task.id])
    if len(still) == 1:
        return still[0]
    if still:
        known = "; ".join(f"{m.id} ({' '.join(m.text.split())[:60]})" for m in still)
        raise Mismatch(
            f"{task.id} asks {len(still)} questions: {known}.",
            fix=f"Name one of them: fleet answer {still[0].id} TEXT",
        )
    if context.store.find_messages(MessageQuery(MessageKind.QUESTION, task.id, limit=1)):
        raise Refused(
            f"{task.id} has no open question any more.",
            fix=f"`fleet show {task.id}` has the answer.",
            code="answered",
        )
    raise Refused(f"{task.id} has asked nothing.", fix="`fleet questions` lists what is open.")


def message_on_task(context: Context, name: str) -> Message | None:
    """The message of this id about a task that the actor sees."""
    try:
        message = context.store.message(name)
    except NotFound:
        return None
    return message if message.task and task_in_view(context, message.task) else None


def team_in_view(context: Context, team: str = "") -> str:
    """The team whose tasks the actor may see; empty: all teams, for a coordinator."""
    if team:
        allow(context.actor, Permission.READ, team=team)
        return team
    return "" if context.actor.role is Role.COORDINATOR else context.actor.team


def cursor_of(row: object) -> str:
    """The `before` of the next page, when this row is the last of a page."""
    return str(getattr(row, "id", "") or getattr(row, "task", ""))
