"""Whose worktree it is, and what is told of it."""

from __future__ import annotations

import pytest

from fleet.domain.access import Role
from fleet.domain.errors import BadInput, Forbidden, Refused
from fleet.domain.task import Spec
from fleet.operations.landing.landing import LandTasks
from fleet.operations.worktrees import (
    CommitWorktree,
    MergeWorktree,
    ProposeWorktree,
    PushWorktree,
    ShowWorktree,
)
from tests.unit.operations.samples import sample


def test_a_run_commits_in_its_own_worktree_without_naming_it_and_in_no_other(office):
    mine, other = office.add("Mine"), office.add("Other")
    run = office.agent(office.start(mine))
    assert office.call(CommitWorktree("Work"), run).task == mine
    assert office.told()[-1] == "worktree.committed"
    error = office.refused(CommitWorktree("Work", other), run, Forbidden)
    assert error.code == "not_yours"
    assert office.call(ShowWorktree(), run).task == mine
    assert office.call(ShowWorktree(other), run).task == other


def test_a_worker_commits_for_a_task_that_was_given_to_it(office):
    given = office.add("Given", spec=Spec(assignee="eve"))
    eve = office.person(Role.WORKER)
    assert office.call(CommitWorktree("Work", given), eve).task == given
    assert office.refused(CommitWorktree("Work", office.add()), eve, Forbidden)


@pytest.mark.parametrize("role", [Role.MERGER, Role.TEAM_LEAD, Role.COORDINATOR])
def test_who_brings_work_home_commits_pushes_and_merges_anybodys(office, role):
    task, who = office.add(), office.person(role)
    assert office.call(CommitWorktree("Work", task), who).commit
    assert not office.call(PushWorktree(task), who).nothing
    assert office.call(PushWorktree(task), who).nothing
    assert "not done" in office.refused(MergeWorktree(task), who, Refused).message
    assert office.call(MergeWorktree(task, force="It is urgent."), who).onto == "main"
    assert office.call(ProposeWorktree("Title", task=task), who).url
    told = [what for what in office.told() if what.startswith("worktree")]
    assert told == [f"worktree.{what}" for what in ("committed", "pushed", "merged", "proposed")]


def test_a_run_that_is_over_touches_nothing(office):
    task = office.add()
    run = office.start(task)
    office.end(run)
    with pytest.raises(Forbidden) as caught:
        office.call(CommitWorktree("Work"), office.agent(run))
    assert caught.value.code == "stale_run"
    assert not office.trees.done


@pytest.mark.parametrize("message", ["", " \n", "a\0b", "x" * 10_001])
def test_a_message_is_some_text(office, message):
    task = office.add()
    office.refused(CommitWorktree(message, task), kind=BadInput)
    assert not office.trees.done


def test_what_git_refuses_is_told_as_it_is_and_nothing_is_written_down(office):
    task = office.add()
    office.call(CommitWorktree("Work", task))
    office.refused(CommitWorktree("Work", task), kind=Refused)


@pytest.mark.parametrize("role", [Role.MERGER, Role.TEAM_LEAD])
def test_an_agent_lands_nothing_untested_whatever_its_role(office, role):
    own = office.agent(office.start(office.add("Land what is done")), role)
    done = sample("land.add", office, "local").tasks[0]
    for request in (LandTasks((done,), force="Urgent."), MergeWorktree(done, force="Urgent.")):
        assert office.refused(request, own, kind=Forbidden).code == "for_people"
        assert office.call(request, office.person(role))
