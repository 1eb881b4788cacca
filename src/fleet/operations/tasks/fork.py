"""Fork an agent: the same conversation, continued by a second agent on a branch of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.errors import Refused
from fleet.domain.event import Kind
from fleet.domain.run import Checkpoint
from fleet.domain.task import Mode
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.names import the_run
from fleet.operations.tasks.change import MOST_TITLE, AddTask, Prompt, new_task
from fleet.operations.tasks.commit import write_task
from fleet.operations.tasks.rows import TaskRow  # noqa: TC001  # a server reads the types of a reply
from fleet.operations.tasks.spawn import SomeHandle
from fleet.ports import Subject

if TYPE_CHECKING:
    from fleet.domain.run import Run
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context


@dataclass(frozen=True, slots=True)
class ForkRow:
    """`base`: the commit that the new branch starts from; `uncommitted`: it holds such work."""

    task: TaskRow
    source: str
    base: str
    uncommitted: bool


@dataclass(frozen=True, slots=True)
class ForkAgent(Request[ForkRow]):
    """`task`: the agent whose conversation is copied; it goes on as it is.

    `prompt`: what the copy is told first; empty: it waits for a person.
    """

    task: str
    branch: SomeHandle
    prompt: Prompt = ""


def fork(context: Context, request: ForkAgent) -> ForkRow:
    prompt = request.prompt
    run = the_run(context, request.task, Permission.SPAWN)
    source = context.store.task(run.task)
    session = _session(context, source, run)
    title = (
        " ".join(prompt.split())[:MOST_TITLE] or f"Fork of {source.id}: {source.title}"[:MOST_TITLE]
    )
    spec = replace(
        source.spec, agent=run.choice.agent, coder=run.choice.coder, model=run.choice.model,
        branch=request.branch, mode=Mode.TERMINAL, assignee="",
    )  # fmt: skip
    order = AddTask(title, prompt, source.project, spec, team=source.team)
    task = new_task(context, order)  # first, since it checks everything that can be refused
    base, uncommitted = context.trees().work(source)
    tally = replace(task.tally, checkpoint=Checkpoint(session=session, fork=True))
    task = replace(task, spec=replace(task.spec, base=base), tally=tally)
    row = write_task(context, task, Kind.TASK_ADDED, title=task.title)
    return ForkRow(row, source.id, base, uncommitted)


def _session(context: Context, source: Task, run: Run) -> str:
    """The coder's session of the run. Raise `Refused` when there is none that can be forked here."""
    agents, coder = context.agents(), run.choice.coder
    if run.host != agents.host:
        raise Refused(
            f"{source.id} runs on the host {run.host}, where its conversation is.",
            fix="Fork it on that machine.",
            code="elsewhere",
        )
    if not agents.forks(coder, source.project):
        branch = (run.workspace.branch if run.workspace else "") or "HEAD"
        raise Refused(
            f"Fleet cannot continue a copy of a conversation of {coder}.",
            fix=f"Start a new agent from its branch: fleet create BRANCH --base {branch}",
            code="cannot_fork",
        )
    terminal = source.spec.mode == Mode.TERMINAL
    subject = Subject(run.id, coder, source.project, terminal, here=True, live=run.live)
    progress = context.store.progress([run.id]).get(run.id)
    kept = source.tally.checkpoint
    session = agents.session(subject) or (progress.session if progress else "")
    session = session or (kept.session if kept and not kept.fork else "")
    if not session:
        raise Refused(
            f"{source.id} has had no turn yet, so there is no conversation to fork.",
            fix=f"`fleet explain {source.id}` shows what it does.",
            code="no_session",
        )
    return session


OPERATIONS = (
    Operation(
        "agent.fork", ForkAgent, Permission.SPAWN, fork,
        "Continue an agent's conversation with a second agent.", idempotent=False, outside=True,
    ),
)  # fmt: skip
