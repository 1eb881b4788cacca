"""Show which agent a task would get, and what it would wait for, if it were added now."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.limits import TextLimit
from fleet.domain.schedule import waits
from fleet.domain.task import (
    Directory,
    Spec,  # imported at run time: a client reads the types of a request
)
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.choice import choose_for
from fleet.operations.tasks.change import MOST_TITLE, AddTask, Needs, Prompt, draft_task
from fleet.operations.tasks.show import WaitRow, no_room

if TYPE_CHECKING:
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context

MAX_COUNTED = 1000  # tasks before it that are counted


@dataclass(frozen=True, slots=True)
class Preview:
    """Who would do it, and why it would not start at once. `ahead`: ready tasks before it, at most 1000.

    `route`: the rule that chose who.
    """

    agent: str
    coder: str
    model: str
    node: str
    waits: tuple[WaitRow, ...]
    ahead: int
    route: str = ""


@dataclass(frozen=True, slots=True)
class PreviewTask(Request[Preview]):
    """As for `task.add`; nothing is added. `title`, `prompt`: a route may choose by them."""

    project: Directory = ""
    spec: Spec = Spec()  # frozen
    after: Needs = ()
    title: Annotated[str, TextLimit(MOST_TITLE, what="title")] = ""
    prompt: Prompt = ""


def preview(context: Context, request: PreviewTask) -> Preview:
    store = context.store
    request_to_add = AddTask(
        request.title, request.prompt, request.project, request.spec, request.after
    )
    task = replace(draft_task(context, request_to_add), id="t-0")
    choice = choose_for(context.world(task.project), task)
    needs = store.tasks_by_id(task.after)
    reasons = waits(task, [needs[n] for n in task.after if n in needs], [], now=store.now())
    reasons = reasons or no_room(context, task)
    rows = tuple(WaitRow(wait.code, wait.why, wait.fix) for wait in reasons)
    return Preview(
        choice.agent,
        choice.coder,
        choice.model,
        choice.node,
        rows,
        _ahead(context, task),
        choice.route,
    )


def _ahead(context: Context, task: Task) -> int:
    """How many ready tasks of all teams would start before this one."""
    ready = context.store.candidates(now=context.store.now(), limit=MAX_COUNTED)
    return sum(other.spec.priority <= task.spec.priority for other in ready)


OPERATIONS = (
    Operation(
        "task.preview", PreviewTask, Permission.ADD, preview,
        "Show who would do a task, and what it would wait for.", reads=True,
    ),
)  # fmt: skip
