"""Add several tasks at once, which may wait for each other: all of them or none."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import FleetError, Mismatch, NotFound, Refused, nearest
from fleet.domain.event import Kind
from fleet.domain.limits import BLANK, Items, Name, TextLimit
from fleet.domain.record_json import dumps
from fleet.domain.task import Directory, Spec, Task, find_circle, need_of
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.entries import new_entry
from fleet.operations.tasks.change import AddTask, JoinName, Needs, Prompt, Title, draft_task
from fleet.operations.tasks.commit import parent_changes
from fleet.operations.tasks.rows import TaskRow, rows
from fleet.ports import Put

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context
    from fleet.ports import Change

PlanName = Annotated[
    str,
    TextLimit(
        100,
        pattern=rf"(?!(t-)?[0-9]+(\.[0-9]+)?$)[^\u0000-\u001f{BLANK},]*",
        what="name for a task",
        example="Use up to 100 characters without spaces and commas, unlike t-31.",
    ),
]


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """Like `task.add`. `after` and `parent` are names of tasks in the same request, or other tasks.

    `name`: how the others call it; it is not kept.
    """

    title: Title
    name: PlanName = ""
    prompt: Prompt = ""
    project: Directory = ""
    spec: Spec = Spec()  # frozen
    after: Needs = ()
    parent: str = ""
    join: JoinName = ""
    team: Name = ""


@dataclass(frozen=True, slots=True)
class AddTasks(Request[tuple[TaskRow, ...]]):
    """At most 1000 tasks, added in this order.

    `again`: also if the same tasks were added before in the same way, which is refused otherwise.
    """

    tasks: Annotated[
        tuple[PlannedTask, ...],
        Items(1000, 1, "Split them. A later part can wait for the ids of an earlier one."),
    ]
    again: bool = False


def add_all(context: Context, request: AddTasks) -> tuple[TaskRow, ...]:
    planned = request.tasks
    by_name = check_plan(planned)
    earlier = _earlier(context, request)
    drafts = [_draft(context, n, planned, by_name) for n in range(len(planned))]
    ids = [context.store.new_id("t") for _ in planned]  # last, so that a refused plan uses no ids
    known = {name: ids[n] for name, n in by_name.items()}
    tasks = [_linked(draft, ids[n], planned[n], known) for n, draft in enumerate(drafts)]
    entry = replace(earlier, body={"tasks": ids})
    changes = [*(Put(t) for t in tasks), *_parents(context, drafts), Put(entry)]
    events = [
        replace(context.event(Kind.TASK_ADDED, t.id, title=t.title), at=t.created_at) for t in tasks
    ]
    written = context.commit(changes, *events)[: len(tasks)]
    return tuple(rows(context, [t for t in written if isinstance(t, Task)], {}))


def check_plan(planned: Sequence[PlannedTask]) -> dict[str, int]:
    """Return the position of each name. Raise `BadInput` when the plan cannot be carried out.

    The error is about the task at `about["index"]`.
    """
    by_name: dict[str, int] = {}
    for n, task in enumerate(planned):
        if not task.name:
            continue
        if task.name in by_name:
            raise _about(n, Mismatch(f"Two tasks are named '{task.name}'.", fix="Rename one."))
        by_name[task.name] = n
    _check_waits(planned, by_name)
    return by_name


def _check_waits(planned: Sequence[PlannedTask], by_name: Mapping[str, int]) -> None:
    """A task waits for its children, too: one that waits for its parent would never start."""
    needs = [[by_name[a] for a in _needs(t, by_name) if a in by_name] for t in planned]
    for n, task in enumerate(planned):
        parent = by_name.get(task.parent)
        if parent is None:
            continue
        if not planned[parent].join:
            words = f"'{task.parent}' cannot have child tasks."
            raise _about(n, Mismatch(words, fix=f"Give '{task.parent}' `join: all`."))
        needs[parent].append(n)
    if circle := find_circle(needs):
        names = " → ".join(planned[n].name or planned[n].title for n in circle)
        words = f"These tasks would wait for each other: {names}."
        raise _about(circle[0], Mismatch(words, fix="Take one `after` or `parent` out."))


def _earlier(context: Context, request: AddTasks) -> Entry:
    """The entry that records this request. Raise `Refused` if the request was carried out before."""
    import hashlib  # noqa: PLC0415  # start-up time

    planned = dumps([context.project, request.tasks])
    digest = hashlib.sha256(planned.encode()).hexdigest()
    actor = context.actor
    earlier = context.store.entry(EntryKind.PLAN, actor.team, digest)
    if earlier is None:
        return new_entry(context, EntryKind.PLAN, team=actor.team, key=digest, owner=actor.name)
    if not request.again:
        ids = earlier.body["tasks"]
        which = ids[0] if len(ids) == 1 else f"{ids[0]} to {ids[-1]}"
        raise Refused(
            f"The same tasks were added before: {which}.",
            fix="To add them once more: `fleet add --file FILE --again` (`again` in a request).",
            code="repeated",
        )
    return replace(earlier, at=context.store.now())


def _draft(
    context: Context, n: int, planned: Sequence[PlannedTask], by_name: Mapping[str, int]
) -> Task:
    """The nth planned task, without an id and without links to the other planned tasks."""
    task = planned[n]
    request = AddTask(
        task.title,
        task.prompt,
        task.project,
        task.spec,
        tuple(n for n in task.after if n not in by_name and need_of(n)[0] not in by_name),
        "" if task.parent in by_name else task.parent,
        task.join,
        task.team,
    )
    try:
        return draft_task(context, request)
    except NotFound as error:
        slips = (nearest(name, by_name) for name in (*_needs(task, by_name), request.parent))
        error.fix = next(filter(None, slips), error.fix)
        raise _about(n, error) from None
    except FleetError as error:
        raise _about(n, error) from None


def _about(n: int, error: FleetError) -> FleetError:
    error.about = {**error.about, "index": n}
    return error


def _linked(draft: Task, task_id: str, task: PlannedTask, known: Mapping[str, str]) -> Task:
    needs = dict.fromkeys(draft.after, False) | dict.fromkeys(draft.after_landed, True)
    needs |= {known[name]: landed for name, landed in _needs(task, known).items() if name in known}
    return replace(
        draft,
        id=task_id,
        after=tuple(needs),
        after_landed=tuple(need for need, landed in needs.items() if landed),
        parent=known.get(task.parent, draft.parent),
    )


def _needs(task: PlannedTask, names: Collection[str]) -> dict[str, bool]:
    """By name of a task that it waits for, whether that task must have landed.

    A planned task's own name may end with `:landed`; then the whole of it is the name.
    """
    needs: dict[str, bool] = {}
    for written in task.after:
        name, landed = (written, False) if written in names else need_of(written)
        needs[name] = needs.get(name, False) or landed
    return needs


def _parents(context: Context, drafts: Sequence[Task]) -> list[Change]:
    """The changes of the existing parents, each once; one new child stands for all, as all are open."""
    one_of = {draft.parent: draft for draft in drafts if draft.parent}
    changes = [
        change
        for draft in one_of.values()
        for change in parent_changes(context.store, draft, now=context.store.now())
    ]
    return list({change.record.id: change for change in changes}.values())


OPERATIONS = (
    Operation(
        "task.add_all",
        AddTasks,
        Permission.ADD,
        add_all,
        "Queue several tasks that may wait for each other: all of them or none.",
        idempotent=False,
    ),
)
