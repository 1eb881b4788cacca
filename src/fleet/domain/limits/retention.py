"""Which old tasks may be deleted: those that no unfinished work needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple
from fleet.domain.run import has_work
from fleet.domain.task import ENDED, TaskState

if TYPE_CHECKING:
    from fleet.domain.run import Run
    from fleet.domain.task import Task


class TaskTies(NamedTuple):
    """How a task is connected to other tasks and records."""

    parent: Task | None = None
    newest_run: Run | None = None
    has_dependents: bool = False  # in any state: one that is reopened needs this task again
    has_children: bool = False
    has_question: bool = False  # an unanswered one
    is_landing: bool = False


def keeps(task: Task, around: TaskTies, *, before: int) -> str:
    """Why the task must be kept; empty if it ended before that time and nothing needs it."""
    if task.state not in ENDED:
        return "it has not ended"
    if not 0 < task.tally.ended_at <= before:
        return "it ended too recently"
    if around.parent is not None and around.parent.state not in ENDED:
        return f"{around.parent.id}, which it is a part of, has not ended"
    if around.newest_run is not None and around.newest_run.live:
        return "a run of it is at work"
    if around.has_dependents or around.has_children:
        return "other tasks refer to it"
    if around.has_question:
        return "its question is open"
    if around.is_landing or _is_unlanded(task, around):
        return "its work has not landed"
    return ""


def _is_unlanded(task: Task, around: TaskTies) -> bool:
    """Whether its commits are only on its own branch, and no other task's work was picked instead."""
    if task.state is not TaskState.DONE or task.tally.landed or task.tally.beaten:
        return False
    run = around.newest_run
    return run is not None and has_work(task.tally.checkpoint, run)
