"""Git in the worktree of a task: status, diff, commit, push, merge and pull request."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet.domain.access import Permission, Role
from fleet.domain.causes import check_may_force
from fleet.domain.data import dataclass
from fleet.domain.errors import Forbidden, NotFound, Refused
from fleet.domain.event import Kind
from fleet.domain.landing.landing import check_ready, landed
from fleet.domain.limits import TextLimit
from fleet.domain.task import Mode, TaskState
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.causes import own_task
from fleet.operations.shared.names import the_task
from fleet.ports import CommitRow, DiffRow, MergeRow, PushRow, Put, WorktreeRow

if TYPE_CHECKING:
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context
    from fleet.ports import Change

MOST_DIFF = 400_000
CommitMessage = Annotated[
    str, TextLimit(10_000, some=True, what="message", example="Say what was changed.")
]
PullTitle = Annotated[str, TextLimit(200, some=True, what="title", example="Say what it is about.")]
PullBody = Annotated[str, TextLimit(10_000, what="body")]
GitName = Annotated[str, TextLimit(250, what="branch")]
Reason = Annotated[str, TextLimit(1000, what="reason")]


@dataclass(frozen=True, slots=True)
class ShowWorktree(Request[WorktreeRow]):
    """`task`: an id, a run or a branch; empty: the caller's own task."""

    task: str = ""


@dataclass(frozen=True, slots=True)
class DiffWorktree(Request[DiffRow]):
    """What the task has changed since it started, committed or not; at most 400,000 characters.

    `stat`: only how much changed in each file.
    """

    task: str = ""
    stat: bool = False


@dataclass(frozen=True, slots=True)
class CommitWorktree(Request[CommitRow]):
    """On the worktree's branch. A worker can do so only in its own worktree."""

    message: CommitMessage
    task: str = ""


@dataclass(frozen=True, slots=True)
class PushWorktree(Request[PushRow]):
    """Pushes without force: nothing on the remote is overwritten."""

    task: str = ""


@dataclass(frozen=True, slots=True)
class MergeWorktree(Request[MergeRow]):
    """`onto`: a branch; empty: the one that the task started from.

    `force` is the reason for merging work that is not done or that no gate has passed.
    """

    task: str = ""
    onto: GitName = ""
    force: Reason = ""


@dataclass(frozen=True, slots=True)
class ProposeWorktree(Request[PushRow]):
    """Pushes, then opens a pull request onto `base`; empty: the branch that the task started from.

    Nothing is tested: `pull.open` does that.
    """

    title: PullTitle
    body: PullBody = ""
    base: GitName = ""
    task: str = ""


def status(context: Context, request: ShowWorktree) -> WorktreeRow:
    return context.trees().status(the_task(context, request.task, Permission.READ))


def diff(context: Context, request: DiffWorktree) -> DiffRow:
    task = the_task(context, request.task, Permission.READ)
    text = context.trees().diff(task, stat=request.stat)
    return DiffRow(task.id, text[:MOST_DIFF], cut=len(text) > MOST_DIFF)


def commit(context: Context, request: CommitWorktree) -> CommitRow:
    task = the_task(context, request.task, Permission.COMMIT)
    _must_be_own(context, task)
    done = context.trees().commit(task, request.message.strip())
    event = context.event(Kind.WORKTREE_COMMITTED, task.id, commit=done.commit)
    context.commit(_settled(context, task.id, done.commit), event)
    return done


def _settled(context: Context, task_id: str, commit: str) -> list[Change]:
    """A task that is over has this commit from now on: tasks that depend on it start from it."""
    task = context.store.task(task_id)
    checkpoint = task.tally.checkpoint
    if task.state is TaskState.RUNNING or checkpoint is None:
        return []
    tally = replace(task.tally, checkpoint=replace(checkpoint, commit=commit, uncommitted=0))
    if task.state is TaskState.REVIEW and checkpoint.uncommitted:
        tally = replace(tally, why="")  # it said that they were not committed
    return [Put(replace(task, tally=tally))]


def _must_be_own(context: Context, task: Task) -> None:
    actor = context.actor
    mine = task.id == actor.task or (task.spec.assignee == actor.name and not actor.run)
    if actor.role is Role.WORKER and not mine:
        raise Forbidden(
            f"{task.id} is not assigned to {actor.name}, so its worktree is not theirs to use.",
            fix="Ask a team-lead, or the member who works on it.",
            code="not_yours",
        )


def push(context: Context, request: PushWorktree) -> PushRow:
    task = the_task(context, request.task, Permission.PUSH)
    done = context.trees().push(task)
    if not done.nothing:
        context.commit([], context.event(Kind.WORKTREE_PUSHED, task.id, branch=done.branch))
    return done


def merge(context: Context, request: MergeWorktree) -> MergeRow:
    force = request.force.strip()
    check_may_force(context.actor, own_task(context), force)
    task = the_task(context, request.task, Permission.MERGE)
    by_hand = task.spec.mode == Mode.TERMINAL or task.spec.assignee  # a person sees how far it is
    if not force and (not by_hand or task.state is TaskState.FAILED):
        check_ready(task)
    try:
        done = context.trees().merge(task, request.onto.strip(), tested=not force)
    except NotFound as error:
        if not task.tally.landed:
            raise
        landed = f"{task.id} has landed already ({task.tally.landed[:12]})."
        undo = f"To take it out again: fleet land undo {task.id}"
        raise Refused(landed, fix=undo, code="landed") from error
    if not done.nothing:
        data = {"branch": done.branch, "onto": done.onto, "commit": done.commit}
        event = context.event(Kind.WORKTREE_MERGED, task.id, **data, force=force)
        context.commit(_is_landed(context, task.id, done.commit), event)
    return done


def _is_landed(context: Context, task_id: str, commit: str) -> list[Change]:
    task = context.store.task(task_id)
    if task.state is not TaskState.DONE or task.tally.landing:
        return []
    return [Put(landed(task, commit, now=context.store.now()))]


def propose(context: Context, request: ProposeWorktree) -> PushRow:
    title, base = request.title.strip(), request.base.strip()
    task = the_task(context, request.task, Permission.PUSH)
    done = context.trees().propose(task, title, request.body, base)
    context.commit([], context.event(Kind.WORKTREE_PROPOSED, task.id, url=done.url))
    return done


_P = Permission
OPERATIONS = (
    Operation("worktree.status", ShowWorktree, _P.READ, status, "Show a worktree.", outside=True),
    Operation("worktree.diff", DiffWorktree, _P.READ, diff, "Show what a task has changed.",
              outside=True),
    Operation("worktree.commit", CommitWorktree, _P.COMMIT, commit,
              "Commit all changes in a worktree.", outside=True),
    Operation("worktree.push", PushWorktree, _P.PUSH, push, "Push a worktree's branch.",
              outside=True),
    Operation("worktree.merge", MergeWorktree, _P.MERGE, merge, "Merge a worktree's branch.",
              outside=True),
    Operation("worktree.pr", ProposeWorktree, _P.PUSH, propose, "Open a pull request.",
              outside=True),
)  # fmt: skip
