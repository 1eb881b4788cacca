"""Spawn an agent under a handle: a task that goes through the queue and its limits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet.domain.access import Permission
from fleet.domain.causes import KINDS
from fleet.domain.data import dataclass
from fleet.domain.errors import BadInput, Refused
from fleet.domain.event import Kind
from fleet.domain.fleet import RUN_ROLES
from fleet.domain.limits import Name, OneOf, TextLimit
from fleet.domain.run import Checkpoint
from fleet.domain.task import BRANCH, ENDED, Directory, Mode, Option, Priority, Spec
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.causes import check_directory
from fleet.operations.shared.entries import must_be_self, the_team
from fleet.operations.tasks.change import MOST_PROMPT, MOST_TITLE, AddTask, Needs, new_task
from fleet.operations.tasks.commit import write_task
from fleet.operations.tasks.rows import TaskRow
from fleet.ports import TaskQuery

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context

_HANDLE = TextLimit(  # messages to `t-3` go to the task t-3
    200,
    pattern=rf"(?!(t-)?[0-9]+(\.[0-9]+)?$){BRANCH}",
    what="handle",
    example="Name it for its work, such as fix-login.",
)
Handle = Annotated[str, _HANDLE]
SomeHandle = Annotated[str, _HANDLE._replace(some=True)]
SomePrompt = Annotated[
    str, TextLimit(MOST_PROMPT, some=True, what="prompt", example="Say what it is to do.")
]
Session = Annotated[  # it becomes an argument of a command and part of a path
    str,
    TextLimit(
        200,
        pattern=r"((?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._-]*)?",
        what="session name",
        example="Use at most 200 letters, digits, '.', '_' and '-'.",
    ),
]


@dataclass(frozen=True, slots=True)
class SpawnAgent(Request[TaskRow]):
    """`handle` names its branch; empty: the branch is named after the task.

    `session`: the conversation that it continues. `terminal`: people can attach to it. `role`: its
    role in the team, with no more permissions than the caller's. `kind`: a declared agent or a
    role; anything else becomes a label. `depth` counts only if it is larger than the depth that
    follows from the caller.
    """

    handle: Handle
    prompt: SomePrompt
    team: Name = ""
    cwd: Directory = ""
    agent: Option = ""
    model: Option = ""
    swarm: str = ""
    session: Session = ""
    depth: int = 0
    priority: Priority = 2
    after: Needs = ()
    terminal: bool = False
    sender: str = ""
    role: Annotated[str, OneOf(("", *RUN_ROLES, *KINDS), "role of an agent")] = ""
    kind: Name = ""


def spawn(context: Context, request: SpawnAgent) -> TaskRow:
    must_be_self(context, request.sender)
    prompt, session = request.prompt.strip(), request.session
    project = request.cwd or context.project
    if not project:
        raise BadInput("No working directory was given.", fix="Name the directory of a project.")
    check_directory(context, project)
    agent, role = _who(context, request, project)
    spec = Spec(
        agent=agent,
        labels=(request.kind,) if request.kind.strip() else (),
        model=request.model,
        priority=request.priority,
        cwd=project,
        branch=request.handle,
        mode=Mode.TERMINAL if request.terminal else Mode.QUEUED,
    )
    title = " ".join(prompt.split())[:MOST_TITLE]
    team = the_team(context, request.team, Permission.SPAWN)
    order = AddTask(title, prompt, project, spec, request.after, request.swarm, team=team)
    _must_be_free(context, request.handle, project, team)
    task = replace(new_task(context, order, role=role, depth=request.depth), spawned=True)
    if session:
        tally = replace(task.tally, checkpoint=Checkpoint(session=session))
        task = replace(task, tally=tally)
    return write_task(context, task, Kind.TASK_ADDED, title=task.title)


def _who(context: Context, request: SpawnAgent, project: str) -> tuple[str, str]:
    """The agent to spawn, and its role in the team."""
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
            f"{other.id} has the handle '{handle[:60]}', and has not ended.",
            fix=f"Use another handle, or dismiss {other.id} first.",
            code="taken",
        )


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
