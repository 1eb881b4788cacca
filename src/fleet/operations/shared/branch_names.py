"""Find a task by a name of any kind: its id, a run, a branch or the end of a branch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fleet.domain.access import Permission, allow
from fleet.domain.errors import Mismatch, NotFound, nearest
from fleet.domain.task import ENDED
from fleet.operations.shared.names import LIST, team_in_view, the_task
from fleet.ports import TaskQuery

if TYPE_CHECKING:
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context

MOST_CANDIDATES = 10  # candidates that are listed when a name could mean several tasks
MAX_NAMESAKES = 200  # tasks that are checked for one name
MAX_NEAR = 50  # newest tasks whose branches are suggested for a mistyped name
MAX_INSIDE = 3  # ids inside a branch name that are looked up
_ID = re.compile(r"(?:t-)?[0-9]{1,18}(?:\.[0-9]{1,9})?")
_GIVEN = re.compile(r"(?:-a[0-9]+)?(?:-[0-9]+)?")  # added to a branch name that was taken
_INSIDE = re.compile(r"t-[0-9]{1,18}")
_NTH = re.compile(r"(.+)-A([0-9]{1,4})")  # ai-fleet's name for the second of a batch


def resolve(
    context: Context, name: str, permission: Permission = Permission.READ, *, project: str = ""
) -> Task:
    """The task with this id (`t-31`, `31`), run (`t-31.2`), branch, or unique end of a branch.

    Tasks that have not ended come first, then tasks of `project`. Of ended tasks with the same branch,
    the newest is meant. Raise `Mismatch` with the candidates when several are left, `NotFound` when
    there is none.
    """
    name = name.strip()
    if not name or _ID.fullmatch(name):
        return the_task(context, name, permission)
    task = _named(context, name, project) or _numbered(context, name, project)
    if task is None:
        raise NotFound(f"There is no task or branch '{name[:60]}'.", fix=_near(context, name))
    allow(context.actor, permission)
    return task


def is_id(name: str) -> bool:
    """Whether the name is the id of a task or a run, rather than a branch."""
    return _ID.fullmatch(name) is not None


def letters(number: int) -> str:
    """The name of the nth child of a batch, from 1: A, B, … Z, AA, AB and so on."""
    name = ""
    while number > 0:
        number, letter = divmod(number - 1, 26)
        name = chr(ord("A") + letter) + name
    return name


def branch_of(context: Context, task: Task) -> str:
    """The branch of its newest run with a branch, or else the branch that the task asks for."""
    runs = reversed(context.store.runs(task.id))
    made = next((r.workspace.branch for r in runs if r.workspace and r.workspace.branch), "")
    return made or task.spec.branch


def _named(context: Context, name: str, project: str) -> Task | None:
    tasks = [t for t in _may_have(context, name) if _is(context, t, name)]
    named = [t for t in tasks if t.state not in ENDED]
    if len(named) > 1:  # several asked for the branch: the one that got it
        named = [t for t in named if branch_of(context, t) == name] or named
    if task := _one(name, named, project):
        return task
    if task := _newest(name, [t for t in tasks if t.state in ENDED], project):
        return task
    tasks = [t for t in _may_end(context, name) if _ends(context, t, name)]
    for ended in (False, True):
        if task := _one(name, [t for t in tasks if (t.state in ENDED) is ended], project):
            return task
    return None


def _numbered(context: Context, name: str, project: str) -> Task | None:
    """`fix-A2` is the second of the batch `fix-A`, `fix-B`, … where no branch has that name."""
    match = _NTH.fullmatch(name)
    return _named(context, f"{match[1]}-{letters(int(match[2]))}", project) if match else None


def _may_have(context: Context, name: str) -> list[Task]:
    """The tasks that may be on this branch, newest first.

    The branch of a run begins with the one that its task asks for, or contains the task's id.
    """
    ends = (i for i, sign in enumerate(name) if sign == "-" and _GIVEN.fullmatch(name[i:]))
    branches = (name, *(name[:end] for end in ends if end))
    return _tasks(context, name, TaskQuery(branches=branches))


def _may_end(context: Context, name: str) -> list[Task]:
    return _tasks(context, name, TaskQuery(branch_end=name))


def _tasks(context: Context, name: str, query: TaskQuery) -> list[Task]:
    store, team = context.store, team_in_view(context)
    tasks = store.tasks(query._replace(team=team, limit=MAX_NAMESAKES))
    ids = [match[0] for match in _INSIDE.finditer(name)][:MAX_INSIDE]
    known = {task.id for task in tasks}
    by_id = store.tasks_by_id(ids).values()
    return [*tasks, *(t for t in by_id if t.id not in known and team in {"", t.team})]


def _is(context: Context, task: Task, name: str) -> bool:
    if task.spec.branch == name:
        return True
    return _may_be(task, name) and any(
        r.workspace and r.workspace.branch == name for r in context.store.runs(task.id)
    )


def _may_be(task: Task, name: str) -> bool:
    """Whether a run of the task may have this branch, so that its runs must be read."""
    branch = task.spec.branch
    if branch:
        return name.startswith(branch) and bool(_GIVEN.fullmatch(name[len(branch) :]))
    head, matched, rest = name.rpartition(task.id)
    return bool(matched and _GIVEN.fullmatch(rest) and (not head or not head[-1].isalnum()))


def _ends(context: Context, task: Task, name: str) -> bool:
    if _has_end(task.spec.branch, name):
        return True
    return _may_be(task, name) and _has_end(branch_of(context, task), name)


def _has_end(branch: str, name: str) -> bool:
    """Whether the branch ends with `name` at a word boundary: `login-A` ends `fix/login-A`, `gin-A` not."""
    head = branch.removesuffix(name)
    return bool(head) and head != branch and (not head[-1].isalnum() or not name[0].isalnum())


def _one(name: str, tasks: list[Task], project: str) -> Task | None:
    mine = [t for t in tasks if project and t.project == project] or tasks
    if len(mine) > 1:
        listed = ", ".join(f"{t.id} ({_words(t)})" for t in mine[:MOST_CANDIDATES])
        more = f" and {len(mine) - MOST_CANDIDATES} more" if len(mine) > MOST_CANDIDATES else ""
        raise Mismatch(
            f"'{name[:60]}' could mean {len(mine)} tasks: {listed}{more}.",
            fix="Use the id.",
            code="ambiguous",
        )
    return mine[0] if mine else None


def _newest(name: str, tasks: list[Task], project: str) -> Task | None:
    """The newest task with this branch; ambiguous when several projects have one."""
    last: dict[str, Task] = {}
    for task in tasks:  # newest first
        last.setdefault(task.project, task)
    return _one(name, list(last.values()), project)


def _words(task: Task) -> str:
    return task.spec.branch or " ".join(task.title.split())[:40]


def _near(context: Context, name: str) -> str:
    query = TaskQuery(team=team_in_view(context), limit=MAX_NEAR)
    known = [t.spec.branch for t in context.store.tasks(query) if t.spec.branch]
    return nearest(name, known) or LIST
