"""Spawn an agent under a handle: a task that goes through the queue and its limits."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.access import Permission
from fleet.domain.causes import KINDS
from fleet.domain.data import dataclass
from fleet.domain.errors import BadInput, Refused
from fleet.domain.event import Kind
from fleet.domain.fleet import RUN_ROLES
from fleet.domain.run import Checkpoint
from fleet.domain.task import ENDED, Mode, Spec
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.branch_names import is_id
from fleet.operations.shared.causes import check_directory
from fleet.operations.shared.entries import must_be_self, the_team
from fleet.operations.shared.names import clean_text, some_text
from fleet.operations.tasks.change import MOST_TITLE, AddTask, new_task
from fleet.operations.tasks.commit import write_task
from fleet.operations.tasks.rows import TaskRow
from fleet.ports import TaskQuery

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context

SESSION = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")


@dataclass(frozen=True, slots=True)
class SpawnAgent(Request[TaskRow]):
    """`handle` names its branch; empty: the branch is named after the task.

    `session`: the conversation that it continues. `terminal`: people can attach to it. `role`: its
    role in the team, with no more permissions than the caller's. `kind`: a declared agent or a
    role; anything else becomes a label. `depth` counts only if it is larger than the depth that
    follows from the caller.
    """

    handle: str
    prompt: str
    team: str = ""
    cwd: str = ""
    agent: str = ""
    model: str = ""
    swarm: str = ""
    session: str = ""
    depth: int = 0
    priority: int = 2
    after: tuple[str, ...] = ()
    terminal: bool = False
    sender: str = ""
    role: str = ""
    kind: str = ""


def spawn(context: Context, request: SpawnAgent) -> TaskRow:
    must_be_self(context, request.sender)
    session = _session(request.session)
    prompt = some_text("prompt", request.prompt, most=1_000_000, example="Say what it is to do.")
    handle = _handle(request.handle)
    project = clean_text("directory", request.cwd, most=4096) or context.project
    if not project:
        raise BadInput("No working directory was given.", fix="Name the directory of a project.")
    check_directory(context, project)
    agent, role = _who(context, request, project)
    kind = clean_text("kind", request.kind, most=MOST_TITLE)
    spec = Spec(
        agent=agent,
        labels=(kind,) if kind else (),
        model=request.model,
        priority=request.priority,
        cwd=project,
        branch=handle,
        mode=Mode.TERMINAL if request.terminal else Mode.QUEUED,
    )
    title = " ".join(prompt.split())[:MOST_TITLE]
    team = the_team(context, request.team, Permission.SPAWN)
    wanted = AddTask(title, prompt, project, spec, request.after, request.swarm, team=team)
    _must_be_free(context, handle, project, team)
    task = replace(new_task(context, wanted, role=role, depth=request.depth), spawned=True)
    if session:
        tally = replace(task.tally, checkpoint=Checkpoint(session=session))
        task = replace(task, tally=tally)
    return write_task(context, task, Kind.TASK_ADDED, title=task.title)


def _handle(name: str) -> str:
    """Refuse a handle that looks like a task's id: messages to `t-3` go to the task t-3."""
    handle = clean_text("handle", name.strip(), most=MOST_TITLE)
    if is_id(handle):
        raise BadInput(
            f"The handle '{handle}' looks like a task's id.",
            fix="Name it for its work, such as fix-login.",
        )
    return handle


def _who(context: Context, request: SpawnAgent, project: str) -> tuple[str, str]:
    """Its agent, and its role."""
    if request.kind in context.world(project).fleet.agents and not request.agent:
        return request.kind, request.role
    is_role = request.kind in RUN_ROLES or request.kind in KINDS
    kind = request.kind if is_role else ""
    return request.agent, request.role or kind


def _must_be_free(context: Context, handle: str, project: str, team: str) -> None:
    """Refuse a handle that a live agent has already: a name must mean one agent."""
    if not handle:
        return
    query = TaskQuery(project=project, team=team, branches=(handle,))
    taken = (t for t in context.store.tasks(query) if t.state not in ENDED)
    if (other := next(taken, None)) is not None:
        raise Refused(
            f"{other.id} is '{handle[:60]}' already, and has not ended.",
            fix=f"Use another handle, or dismiss {other.id} first.",
            code="taken",
        )


def _session(name: str) -> str:
    """Checked, because it becomes an argument of a command and part of a path."""
    if name and not SESSION.fullmatch(name):
        raise BadInput(
            "The session name is not valid.",
            fix="Use at most 200 letters, digits, '.', '_' and '-'.",
        )
    return name


OPERATIONS = (
    Operation(
        "agent.spawn",
        SpawnAgent,
        Permission.SPAWN,
        spawn,
        "Queue an agent.",
        idempotent=False,
        shown_by="task.show",
    ),
)
