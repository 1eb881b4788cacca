"""What is old may go, but never what something that goes on needs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.limits.retention import TaskTies, keeps
from fleet.domain.run import Checkpoint, Choice, Run, RunState, Workspace
from fleet.domain.task import Tally, Task, TaskState

OLD = Task(
    "t-1", 1, TaskState.DONE, "A", "a", "/a", "me", created_at=5, tally=Tally(runs=1, ended_at=10)
)
SPACE = Workspace("/w", "/w", branch="fleet/t-1", base="b" * 40)
RUN = Run("t-1.1", 1, "t-1", RunState.ENDED, Choice("a", "b"), "h", "x", 5, workspace=SPACE)
WORK = replace(OLD, tally=replace(OLD.tally, checkpoint=Checkpoint("c" * 40)))


@pytest.mark.parametrize(
    ("task", "around", "why"),
    [
        (OLD, TaskTies(), ""),
        (OLD, TaskTies(newest_run=RUN), ""),
        (replace(OLD, state=TaskState.OPEN), TaskTies(), "not ended"),
        (replace(OLD, state=TaskState.REVIEW), TaskTies(), "not ended"),
        (replace(OLD, tally=Tally(ended_at=21)), TaskTies(), "too recently"),
        (replace(OLD, tally=Tally()), TaskTies(), "too recently"),
        (OLD, TaskTies(parent=replace(OLD, id="t-9", state=TaskState.OPEN)), "t-9"),
        (OLD, TaskTies(parent=replace(OLD, id="t-9")), ""),
        (OLD, TaskTies(newest_run=replace(RUN, state=RunState.RUNNING)), "at work"),
        (OLD, TaskTies(has_dependents=True), "refer to it"),
        (OLD, TaskTies(has_children=True), "refer to it"),
        (OLD, TaskTies(has_question=True), "question"),
        (OLD, TaskTies(is_landing=True), "not landed"),
        (WORK, TaskTies(newest_run=RUN), "not landed"),
        (replace(WORK, tally=replace(WORK.tally, landed="d" * 40)), TaskTies(newest_run=RUN), ""),
        (replace(WORK, tally=replace(WORK.tally, beaten="t-2")), TaskTies(newest_run=RUN), ""),
        (replace(WORK, state=TaskState.FAILED), TaskTies(newest_run=RUN), ""),
    ],
)
def test_a_task_stays_while_something_needs_it(task, around, why):
    reason = keeps(task, around, before=20)
    assert why in reason
    assert bool(reason) == bool(why)
