"""Agents that are asked for by a handle: tasks that go through the queue and its limits."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fleet.domain.access import Permission
from fleet.domain.errors import BadInput, Refused
from fleet.domain.run import Checkpoint
from fleet.domain.task import Mode, Spec
from fleet.operations.catalogue import Operation, Request
from fleet.operations.entries import must_be_self, the_team
from fleet.operations.naming import clean_text, some_text
from fleet.operations.rows import TaskRow
from fleet.operations.tasks import MOST_TITLE, AddTask, new_task
from fleet.operations.writing import write_task

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context

SESSION = re.compile(r"(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9._-]{0,199}")
MOST_DEPTH = 3  # an agent that spawns agents that spawn agents: no further


@dataclass(frozen=True, slots=True)
class SpawnAgent(Request[TaskRow]):
    """`handle` names its branch. It starts when there is room, in a worktree of its own.

    `session`: the conversation that it goes on with. `terminal`: people can attach to it.
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


def spawn(context: Context, request: SpawnAgent) -> TaskRow:
    must_be_self(context, request.sender)
    if not 0 <= request.depth <= MOST_DEPTH:
        raise Refused(
            f"Depth {request.depth} is beyond {MOST_DEPTH}.",
            fix="Let an agent nearer to the people do it.",
        )
    prompt = some_text("prompt", request.prompt, most=1_000_000, example="Say what it is to do.")
    handle = some_text("handle", request.handle, most=MOST_TITLE, example="Name it.")
    project = clean_text("directory", request.cwd, most=4096) or context.project
    if not project:
        raise BadInput("Where is it to work?", fix="Name the directory of a project.")
    spec = Spec(
        agent=request.agent,
        model=request.model,
        priority=request.priority,
        cwd=project,
        branch=handle,
        mode=Mode.TERMINAL if request.terminal else Mode.QUEUED,
    )
    title = " ".join(prompt.split())[:MOST_TITLE]
    team = the_team(context, request.team, Permission.SPAWN)
    asked = AddTask(title, prompt, project, spec, request.after, request.swarm, team=team)
    task = new_task(context, asked)
    if session := _session(request.session):
        tally = replace(task.tally, checkpoint=Checkpoint(session=session))
        task = replace(task, tally=tally)
    return write_task(context, task, "task.added", title=task.title)


def _session(name: str) -> str:
    """It becomes a word of a command line, and part of a path."""
    if name and not SESSION.fullmatch(name):
        raise BadInput(
            "The session's name is not one.", fix="Letters, digits, '.', '_' and '-'; 200 at most."
        )
    return name


OPERATIONS = (
    Operation(
        "agent.spawn", SpawnAgent, Permission.SPAWN, spawn, "Queue an agent.", idempotent=False
    ),
)
