"""Commands on several tasks: by id, by name, by a pattern with `*`; one line for each of them."""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from fleet.cli.terminal import render
from fleet.cli.terminal.view import Result, Text
from fleet.domain.errors import BadInput, NotFound, Refused
from fleet.operations.shared.names import MAX_ROWS
from fleet.operations.tasks.at_work import ListAgents
from fleet.operations.tasks.list import ListTasks
from fleet.operations.tasks.show import ShowTask

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from fleet.client import Client
    from fleet.domain.errors import FleetError
    from fleet.operations.catalogue import Request
    from fleet.operations.tasks.at_work import AgentRow
    from fleet.operations.tasks.rows import TaskRow

MOST_NAMED = 20  # tasks or agents that a question names
WILD = frozenset("*?[")  # no id and no branch has them


def is_pattern(name: str) -> bool:
    return not WILD.isdisjoint(name)


def is_like(pattern: str, task: str, branch: str) -> bool:
    """By its id, its branch, or the last part of its branch."""
    names = {task, branch, branch.rpartition("/")[2]}
    return any(fnmatchcase(name, pattern) for name in names if name)


def named(
    client: Client, names: Sequence[str], statuses: Collection[str], *, or_any: bool = False
) -> list[str]:
    """The tasks that are meant; a pattern means those of this project with one of `statuses`.

    `or_any`: where none has one of them, all that match.
    """
    if not names:
        raise BadInput("No task was named.", fix="`fleet tasks` lists them.")
    known = None
    tasks: list[str] = []
    for name in names:
        if not is_pattern(name):
            tasks.append(f"t-{name}" if name.isdecimal() else name)
            continue
        if known is None:
            known = _of_project(client)
        like = [row for row in known if is_like(name, row.task, row.branch)]
        meant = [row.task for row in like if row.status in statuses]
        meant = meant or [row.task for row in like if or_any]
        if not meant:
            raise _none_of(name, like, statuses)
        tasks += meant
    return list(dict.fromkeys(tasks))


def with_status(client: Client, status: str) -> list[str]:
    """The tasks of this project with this status, oldest first."""
    rows = client.call(ListTasks(_project(client), statuses=(status,), limit=MAX_ROWS))
    return [row.id for row in reversed(rows)]


def _project(client: Client) -> str:
    return "" if client.is_remote else client.project_or_cwd  # its directories are not ours


def _of_project(client: Client) -> list[AgentRow]:
    rows = client.call(ListAgents(_project(client), all=True, limit=MAX_ROWS))
    return list(reversed(rows))


def _none_of(name: str, like: Sequence[AgentRow], statuses: Collection[str]) -> NotFound:
    listed = "`fleet tasks --all` lists them."
    if not like:
        compared = "A pattern is compared with ids (t-3) and branches, not with titles."
        return NotFound(f"No task here matches '{name}'.", fix=f"{compared} {listed}")
    if len(statuses) == 1:
        return NotFound(f"No {next(iter(statuses))} task here matches '{name}'.", fix=listed)
    they_are = ", ".join(sorted({row.status for row in like}))
    return NotFound(
        f"No task that matches '{name}' can be changed this way: they are {they_are}.", fix=listed
    )


def confirm(names: Sequence[str], tasks: Sequence[str], verb: str, *, force: bool) -> None:
    """List the tasks that a pattern matches, and ask before changing several of them."""
    if force or len(tasks) == 1 or not any(map(is_pattern, names)) or not sys.stdin.isatty():
        return
    question = f"{verb} {len(tasks)} tasks: {some(tasks)}?"
    if not render.confirm(question, otherwise="--force"):
        raise Refused("No task was changed.", fix="Use --force to skip the question.")


def some(names: Sequence[str]) -> str:
    """The names, or the first of many and how many more there are."""
    more = len(names) - MOST_NAMED
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:MOST_NAMED])} and {more} more"


def change(
    client: Client,
    tasks: Sequence[str],
    request: Callable[[str], Request[TaskRow]],
    words: Callable[[TaskRow], str],
    notes: Callable[[Sequence[TaskRow]], tuple[str, ...]] = lambda _: (),
) -> Result:
    """Change each task; if one of several is refused, go on with the others; a single one raises.

    `words`: what became of a task. `notes`: what to say about all that were changed.
    """
    if len(tasks) == 1:
        row = client.call(ShowTask(client.call(request(tasks[0])).id)).task
        return Result("task", row, Text(f"{row.id} {words(row)}."), notes=notes([row]))
    errors = client.call_all([request(task) for task in tasks])
    changed = [
        None if e else client.call(ShowTask(t)).task for t, e in zip(tasks, errors, strict=True)
    ]
    lines = [
        f"{row.id} {words(row)}." if row else _line(e)
        for row, e in zip(changed, errors, strict=True)
    ]
    data = [
        {"name": name, "task": row, "error": _as_data(error)}
        for name, row, error in zip(tasks, changed, errors, strict=True)
    ]
    return Result(
        "changes",
        data,
        Text("\n".join(lines)),
        notes=notes([row for row in changed if row]),
        exit_status=max((error.exit_status for error in errors if error), default=0),
    )


def _line(error: FleetError | None) -> str:
    return f"{error} {error.fix}".rstrip() if error else ""


def _as_data(error: FleetError | None) -> dict[str, str] | None:
    return {"code": error.code, "message": error.message, "fix": error.fix} if error else None
