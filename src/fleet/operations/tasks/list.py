"""Lists of tasks."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated

from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.errors import Refused
from fleet.domain.limits import Items, Name, OneOf, Rows
from fleet.domain.task import SETTLED, Directory, TaskState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.names import MAX_ROWS, team_in_view, the_task
from fleet.operations.shared.pages import pages
from fleet.operations.tasks.rows import STATE_OF, TaskRow, rows
from fleet.ports import STANDINGS, TaskQuery

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.operations.catalogue import Context

Statuses = Annotated[
    tuple[Annotated[str, OneOf(tuple(STATE_OF), "state of a task")], ...], Items(50)
]
IN_VIEW = tuple(str(state) for state in TaskState if state not in SETTLED)


@dataclass(frozen=True, slots=True)
class ListTasks(Request[tuple[TaskRow, ...]]):
    """`all`: also done and cancelled tasks. `statuses`: states, or statuses as a list shows them.

    `before`: the last task of the page before. `tasks`: these, whatever their state, each once and
    in this order.
    """

    project: Directory = ""
    team: Name = ""
    all: bool = False
    statuses: Statuses = ()
    before: str = ""
    limit: Rows = 50
    tasks: Annotated[tuple[str, ...], Items(MAX_ROWS)] = ()


@dataclass(frozen=True, slots=True)
class ReadyTasks(Request[tuple[TaskRow, ...]]):
    """In the order in which they start. `before`: the last task of the page before."""

    limit: Rows = 50
    before: str = ""


def list_tasks(context: Context, request: ListTasks) -> tuple[TaskRow, ...]:
    limit, team = request.limit, team_in_view(context, request.team)
    if request.tasks:
        return _named(context, request.tasks, limit)
    before = the_task(context, request.before, Permission.READ).id if request.before else ""
    query = TaskQuery((), request.project, team, before=before, limit=limit)
    first, *others = _groups(request.statuses)
    listed = _matching(context, _narrowed(query, first, request), first)
    if not others:
        return tuple(listed)
    by_id = {row.id: row for row in listed}
    for group in others:
        by_id |= {r.id: r for r in _matching(context, _narrowed(query, group, request), group)}
    return tuple(sorted(by_id.values(), key=_newest)[:limit])


def _groups(statuses: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Split the statuses into those that an index finds and the others, which are read separately."""
    indexed = tuple(status for status in statuses if status in STANDINGS)
    others = tuple(status for status in statuses if status not in STANDINGS)
    return [group for group in (indexed, others) if group] or [()]


def _narrowed(query: TaskQuery, group: tuple[str, ...], request: ListTasks) -> TaskQuery:
    if group and group[0] in STANDINGS:
        return query._replace(may_be=group)
    if group:
        return query._replace(states=tuple(sorted({str(STATE_OF[name]) for name in group})))
    return query if request.all else query._replace(states=IN_VIEW)


def _matching(context: Context, query: TaskQuery, statuses: tuple[str, ...]) -> Iterable[TaskRow]:
    """The newest rows of these statuses; the query may return tasks of others, which are left out."""
    if not statuses:
        return rows(context, context.store.tasks(query))
    matching = (row for page in pages(context.store.tasks, query) for row in rows(context, page))
    return islice((row for row in matching if _is_wanted(row, statuses)), query.limit)


def _newest(row: TaskRow) -> int:
    return -int(row.id.removeprefix("t-"))


def _named(context: Context, names: tuple[str, ...], limit: int) -> tuple[TaskRow, ...]:
    if len(names) > limit:
        raise Refused(f"{len(names)} tasks were named; the limit is {limit}.", fix="Name fewer.")
    named = {t.id: t for t in (the_task(context, name, Permission.READ) for name in names)}
    return tuple(rows(context, list(named.values())))


def _is_wanted(row: TaskRow, statuses: tuple[str, ...]) -> bool:
    return row.state in statuses or row.status in statuses


def ready(context: Context, request: ReadyTasks) -> tuple[TaskRow, ...]:
    limit, team = request.limit, team_in_view(context)
    last = the_task(context, request.before, Permission.READ) if request.before else None
    tasks = context.store.candidates_after(last, team=team, now=context.store.now(), limit=limit)
    return tuple(rows(context, tasks))


_READ = Permission.READ
OPERATIONS = (
    Operation("task.list", ListTasks, _READ, list_tasks, "List the tasks, newest first."),
    Operation("task.ready", ReadyTasks, _READ, ready, "List the tasks that could start now."),
)
