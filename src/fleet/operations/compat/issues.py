"""Tasks as an issue tracker shows them: each with everything about it."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.limits import Items, Name, OneOf, Whole
from fleet.domain.message import MessageKind, MessageState
from fleet.domain.task import ENDED, TaskState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.compat.states import BD_STATUSES, from_bd, to_bd
from fleet.operations.shared.names import MAX_ROWS, PAGE, team_in_view, the_task
from fleet.operations.shared.pages import pages
from fleet.operations.tasks.rows import STATE_OF, rows
from fleet.ports import TaskQuery

if TYPE_CHECKING:
    from fleet.domain.message import Message
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context
    from fleet.operations.tasks.rows import TaskRow

LIVE = tuple(str(s) for s in TaskState if s not in {TaskState.DONE, TaskState.CANCELLED})


@dataclass(frozen=True, slots=True)
class CommentRow:
    id: str
    author: str
    text: str
    at: Time


@dataclass(frozen=True, slots=True)
class Issue:
    """`status` is Fleet's, `bd` is bd's name for it. `question` is its open question, if any."""

    id: str
    title: str
    description: str
    status: str
    bd: str
    priority: int
    labels: tuple[str, ...]
    assignee: str
    author: str
    project: str
    cwd: str
    coder: str
    model: str
    parent: str
    after: tuple[str, ...]
    needed_by: tuple[str, ...]
    run: str
    created_at: Time
    updated_at: Time
    closed_at: Time | None
    why: str
    question: str
    comments: tuple[CommentRow, ...]
    team: str


@dataclass(frozen=True, slots=True)
class ListIssues(Request[tuple[Issue, ...]]):
    """`tasks`: only these; empty: all that the caller may see, newest first.

    `status`: a status of bd. `all`: also closed ones, unless a status is given.
    """

    tasks: Annotated[
        tuple[str, ...], Items(200, example="Ask for the others in another request.")
    ] = ()
    status: Annotated[str, OneOf(("", *BD_STATUSES))] = ""
    assignee: Name = ""
    all: bool = False
    limit: Annotated[int, Whole(0, MAX_ROWS)] = 50
    before: str = ""


def issues(context: Context, request: ListIssues) -> tuple[Issue, ...]:
    if request.tasks:
        named = [the_task(context, name, Permission.READ) for name in request.tasks]
        messages = [context.store.messages(task.id) for task in named]
        asking = {task.id: _open(some) for task, some in zip(named, messages, strict=True)}
        task_rows = rows(context, named, asking)
        return tuple(_issue(context, *one) for one in zip(named, task_rows, messages, strict=True))
    limit, team = request.limit or MAX_ROWS, team_in_view(context)
    wanted = from_bd(request.status) if request.status else ()
    states = tuple(sorted({str(STATE_OF[s]) for s in wanted})) or (() if request.all else LIVE)
    before = the_task(context, request.before, Permission.READ).id if request.before else ""
    query = TaskQuery(states, team=team, before=before, limit=PAGE, assignee=request.assignee)
    matching = (
        _issue(context, task, row, context.store.messages(task.id))
        for page in pages(context.store.tasks, query)
        for task, row in zip(page, rows(context, page), strict=True)
        if not wanted or row.status in wanted
    )
    return tuple(islice(matching, limit))


def _open(messages: list[Message]) -> list[Message]:
    return [m for m in messages if m.kind is MessageKind.QUESTION and m.state is MessageState.OPEN]


def _issue(context: Context, task: Task, row: TaskRow, messages: list[Message]) -> Issue:
    store = context.store
    latest = store.events(task=task.id, limit=1, newest=True)
    questions = _open(messages)
    closed = to_bd(row.status) == "closed"
    return Issue(
        id=task.id,
        title=task.title,
        description=task.prompt,
        status=row.status,
        bd=to_bd(row.status),
        priority=task.spec.priority,
        labels=task.spec.labels,
        assignee=task.spec.assignee or (task.run_id if task.state is TaskState.RUNNING else ""),
        author=task.author,
        project=task.project,
        cwd=row.cwd,
        coder=row.coder,
        model=row.model,
        parent=task.parent,
        after=task.after,
        needed_by=tuple(store.dependents(task.id)),
        run=task.run_id,
        created_at=task.created_at,
        updated_at=latest[0].at if latest else task.created_at,
        closed_at=task.tally.ended_at or None if closed else None,
        why=task.tally.why,
        question=questions[-1].text if questions and task.state not in ENDED else "",
        comments=tuple(
            CommentRow(m.id, m.author, m.text, m.at) for m in messages if m.kind is MessageKind.NOTE
        ),
        team=task.team,
    )


OPERATIONS = (
    Operation(
        "task.issues",
        ListIssues,
        Permission.READ,
        issues,
        "List tasks as issues, in the words of bd.",
    ),
)
