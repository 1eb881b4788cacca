"""Git in the worktree of a task: status, commit, push, merge and pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.access import Permission, Role
from fleet.domain.data import dataclass
from fleet.domain.errors import Forbidden
from fleet.domain.event import Kind
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.names import clean_text, some_text, the_task
from fleet.ports import CommitRow, MergeRow, PushRow, WorktreeRow

if TYPE_CHECKING:
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context

MOST_MESSAGE, MOST_TITLE, MOST_BODY, MOST_NAME = 10_000, 200, 10_000, 250


@dataclass(frozen=True, slots=True)
class ShowWorktree(Request[WorktreeRow]):
    """`task`: an id, a run or a branch; empty: the caller's own task."""

    task: str = ""


@dataclass(frozen=True, slots=True)
class CommitWorktree(Request[CommitRow]):
    """On the worktree's branch. A worker can do so only in its own worktree."""

    message: str
    task: str = ""


@dataclass(frozen=True, slots=True)
class PushWorktree(Request[PushRow]):
    """Pushes without force: nothing on the remote is overwritten."""

    task: str = ""


@dataclass(frozen=True, slots=True)
class MergeWorktree(Request[MergeRow]):
    """`onto`: a branch; empty: the one that its project has checked out."""

    task: str = ""
    onto: str = ""


@dataclass(frozen=True, slots=True)
class ProposeWorktree(Request[PushRow]):
    """Pushes, then opens a pull request onto `base`; empty: the forge's default branch."""

    title: str
    body: str = ""
    base: str = ""
    task: str = ""


def status(context: Context, request: ShowWorktree) -> WorktreeRow:
    return context.trees().status(the_task(context, request.task, Permission.READ))


def commit(context: Context, request: CommitWorktree) -> CommitRow:
    message = some_text(
        "message", request.message, most=MOST_MESSAGE, example="Say what was changed."
    )
    task = the_task(context, request.task, Permission.COMMIT)
    _must_be_own(context, task)
    done = context.trees().commit(task, message)
    context.commit([], context.event(Kind.WORKTREE_COMMITTED, task.id, commit=done.commit))
    return done


def _must_be_own(context: Context, task: Task) -> None:
    actor = context.actor
    mine = task.id == actor.task or (task.spec.assignee == actor.name and not actor.run)
    if actor.role is Role.WORKER and not mine:
        raise Forbidden(
            f"{task.id} is not assigned to {actor.name}, who may not use its worktree.",
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
    onto = clean_text("branch", request.onto.strip(), most=MOST_NAME)
    task = the_task(context, request.task, Permission.MERGE)
    done = context.trees().merge(task, onto)
    if not done.nothing:
        about = {"branch": done.branch, "onto": done.onto, "commit": done.commit}
        context.commit([], context.event(Kind.WORKTREE_MERGED, task.id, **about))
    return done


def propose(context: Context, request: ProposeWorktree) -> PushRow:
    title = some_text("title", request.title, most=MOST_TITLE, example="Say what it is about.")
    body = clean_text("body", request.body, most=MOST_BODY)
    base = clean_text("branch", request.base.strip(), most=MOST_NAME)
    task = the_task(context, request.task, Permission.PUSH)
    done = context.trees().propose(task, title, body, base)
    context.commit([], context.event(Kind.WORKTREE_PROPOSED, task.id, url=done.url))
    return done


_P = Permission
OPERATIONS = (
    Operation(
        "worktree.status", ShowWorktree, _P.READ, status, "Show a worktree.", outside=True
    ),
    Operation(
        "worktree.commit", CommitWorktree, _P.COMMIT, commit, "Commit all changes in a worktree.",
        outside=True,
    ),
    Operation(
        "worktree.push", PushWorktree, _P.PUSH, push, "Push a worktree's branch.", outside=True
    ),
    Operation(
        "worktree.merge", MergeWorktree, _P.MERGE, merge, "Merge a worktree's branch.",
        outside=True,
    ),
    Operation(
        "worktree.pr", ProposeWorktree, _P.PUSH, propose, "Open a pull request.", outside=True
    ),
)  # fmt: skip
