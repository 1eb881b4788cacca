"""Who does a task by hand, what a task says, and tasks as an issue tracker shows them."""

from __future__ import annotations

import pytest

from fleet.domain.access import Role
from fleet.domain.errors import BadInput, Forbidden, NotFound, Refused
from fleet.domain.run import Ending
from fleet.domain.task import Spec
from fleet.operations.compat.issues import ListIssues
from fleet.operations.compat.mark import MarkTask
from fleet.operations.messages.ask_answer_send import Comment
from fleet.operations.tasks.assign import AssignTask
from fleet.operations.tasks.change import CloseTask
from fleet.operations.tasks.dependencies import AddDependency
from fleet.operations.tasks.edit import EditTask
from fleet.operations.tasks.list import ReadyTasks


def ready(office):
    return [row.id for row in office.call(ReadyTasks())]


def test_a_task_that_somebody_has_is_not_ready(office):
    task = office.add()
    row = office.call(AssignTask(task, "bob"))
    assert (row.status, ready(office)) == ("assigned", [])
    assert office.store.task(task).spec.assignee == "bob"
    assert office.call(AssignTask(task)).status == "ready"
    assert ready(office) == [task]
    assert office.told()[-2:] == ["task.assigned", "task.assigned"]


def test_of_two_who_claim_it_the_first_has_it(office):
    task = office.add()
    bob, eve = office.person(Role.WORKER, name="bob"), office.person(Role.WORKER, name="eve")
    assert office.call(AssignTask(task, claim=True), bob).status == "assigned"
    error = office.refused(AssignTask(task, claim=True), eve)
    assert (error.message, error.code) == (f"{task} is already assigned to bob.", "claimed")
    before = office.snapshot()
    assert office.call(AssignTask(task, claim=True), bob).status == "assigned"
    assert office.snapshot() == before


def test_one_who_claims_at_the_same_moment_loses(office):
    task = office.add()
    bob, eve = office.person(Role.WORKER, name="bob"), office.person(Role.WORKER, name="eve")
    with pytest.raises(Refused, match="already assigned to bob"):
        office.call(
            AssignTask(task, claim=True),
            eve,
            meanwhile=lambda: office.call(AssignTask(task, claim=True), bob),
        )


def test_a_worker_takes_for_itself_and_gives_to_nobody_else(office):
    task, worker = office.add(), office.person(Role.WORKER, name="bob")
    with pytest.raises(Forbidden):
        office.call(AssignTask(task, "eve"), worker)
    with pytest.raises(Forbidden):
        office.call(AssignTask(task, "eve", claim=True), worker)
    assert office.call(AssignTask(task, "bob"), worker).status == "assigned"


def test_a_run_has_its_own_task_and_takes_no_other(office):
    task, other = office.add(), office.add("Other")
    agent = office.agent(office.start(task))
    before = office.snapshot()
    assert office.call(AssignTask(task, claim=True), agent).status == "running"
    assert office.snapshot() == before
    office.refused(AssignTask(other, claim=True), agent)


def test_what_runs_or_has_ended_cannot_be_taken(office):
    task = office.add()
    run = office.start(task)
    assert "t-1.1 has it" in office.refused(AssignTask(task, claim=True)).message
    office.refused(AssignTask(task, "bob"))
    office.end(run)
    assert office.refused(AssignTask(task, claim=True)).code == "ended"
    parent, _ = office.family("Child")
    office.refused(AssignTask(parent, "bob"))


def test_an_edit_changes_what_was_said_and_nothing_else(office):
    task = office.add("Old", prompt="Do it.")
    row = office.call(EditTask(task, "New\n title", priority=0))
    assert (row.title, row.priority) == ("New title", 0)
    assert office.store.task(task).prompt == "Do it."
    assert office.call(EditTask(task, prompt="")).title == "New title"
    assert office.store.task(task).prompt == ""
    assert [e.data["what"] for e in office.store.log if e.type == "task.edited"] == [
        "title, priority",
        "prompt",
    ]


def test_an_edit_that_changes_nothing_is_no_event(office):
    task = office.add("Same", prompt="Do it.")
    before = office.snapshot()
    office.call(EditTask(task, "Same", "Do it.", 2))
    office.call(EditTask(task))
    assert office.snapshot() == before


@pytest.mark.parametrize(
    "given", [{"title": " "}, {"title": "x" * 201}, {"prompt": "\0"}, {"priority": 5}]
)
def test_an_edit_is_checked_as_a_new_task_is(office, given):
    office.refused(EditTask(office.add(), **given), kind=BadInput)


def test_an_issue_says_all_that_is_known_of_a_task(office):
    need, task = office.add("First"), office.add("Second", prompt="Do it.", after=())
    office.call(AddDependency(task, need))
    office.call(Comment(task, "Careful."))
    office.ask(task, "Which way?")
    (issue,) = office.call(ListIssues(tasks=(task,)))
    assert (issue.status, issue.bd, issue.question) == ("asking", "blocked", "Which way?")
    assert (issue.after, issue.needed_by, issue.description) == ((need,), (), "Do it.")
    assert [c.text for c in issue.comments] == ["Careful."]
    assert office.call(ListIssues(tasks=(need,)))[0].needed_by == (task,)


def test_an_issue_that_is_closed_says_when_and_why(office):
    task = office.add()
    office.clock.advance(60)
    office.call(CloseTask(task, "Merged."))
    (issue,) = office.call(ListIssues(tasks=(task,)))
    assert (issue.bd, issue.why, issue.closed_at) == ("closed", "Merged.", office.clock.now())
    assert issue.updated_at == office.clock.now() > issue.created_at


def test_issues_are_found_by_bds_status_and_by_whose_they_are(office):
    free, held, failed, done = (office.add(name) for name in ("a", "b", "c", "d"))
    running = office.add("e")
    office.call(AssignTask(held, "bob"))
    office.finish(failed, Ending.FAILED)
    office.finish(done)
    office.start(running)

    def ids(**given):
        return {i.id for i in office.call(ListIssues(**given))}

    assert ids() == {free, held, failed, running}
    assert ids(all=True) == {free, held, failed, running, done}
    assert ids(status="open") == {free}
    assert ids(status="in_progress") == {held, running}
    assert ids(status="blocked") == {failed}
    assert ids(status="closed") == {done}
    assert ids(assignee="bob") == {held}
    assert len(office.call(ListIssues(limit=2))) == 2
    assert len(office.call(ListIssues(limit=0))) == 4
    assert office.call(ListIssues(tasks=(running,)))[0].assignee == "t-5.1"


def test_an_issue_that_is_not_there_and_a_status_that_is_none_are_refused(office):
    office.refused(ListIssues(tasks=("t-9",)), kind=NotFound)
    office.refused(ListIssues(status="hooked"), kind=BadInput)


def test_a_worker_settles_no_task_that_is_somebody_elses(office):
    bob, cat, lea = (
        office.person(role, name=name)
        for role, name in (
            (Role.WORKER, "bob"),
            (Role.WORKER, "cat"),
            (Role.TEAM_LEAD, "lea"),
        )
    )
    task = office.add(actor=lea, spec=Spec(assignee="bob"))
    for request in (CloseTask(task), MarkTask(task, "resolved"), MarkTask(task, "open")):
        assert office.refused(request, cat, Forbidden).code == "not_yours"
    assert office.call(CloseTask(task), bob).state == "done"
    for actor in (lea, cat):  # who leads, and whose idea it was
        mine = office.add(actor=cat, spec=Spec(assignee="bob"))
        assert office.call(CloseTask(mine), actor).state == "done"
    assert office.call(CloseTask(office.add(actor=lea)), cat).state == "done"  # nobody's
