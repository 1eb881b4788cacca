from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.errors import BadConfig, BadInput, NotFound
from fleet.domain.run import Ending, Host, Slots, Usage, Wanted
from fleet.domain.task import Budget, Limits, Spec
from fleet.operations.tasks.change import (
    AddTask,
    CancelTask,
    CloseTask,
    PauseTask,
    ResumeTask,
    RetryTask,
)
from fleet.operations.tasks.dependencies import AddDependency, RemoveDependency
from fleet.operations.tasks.edit import EditTask
from fleet.operations.tasks.list import ListTasks, ReadyTasks
from fleet.ports import Put


def test_a_task_is_added_as_it_was_asked_for(office):
    first = office.add("First")
    spec = Spec(agent="implementer", priority=0, labels=("ui",), cwd="/repo/app", branch="b/x")
    row = office.call(AddTask("  Fix\n the login ", "Do it.", "/repo", spec, after=(first, "1")))
    assert (row.id, row.title, row.status, row.state) == ("t-2", "Fix the login", "waiting", "open")
    assert (row.agent, row.coder, row.model) == ("implementer", "scripted", "heavy-coder")
    assert row.given == ("agent",)
    found = office.show("2")
    assert (found.after, found.prompt, found.author, found.spec) == (
        (first,),
        "Do it.",
        "ada",
        spec,
    )
    assert office.show(first).needed_by == ("t-2",)
    assert office.told() == ["task.added", "task.added"]


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (AddTask(""), "The title is empty"),
        (AddTask(" \n "), "The title is empty"),
        (AddTask("x" * 201), "201 characters"),
        (AddTask("caf\udce9"), "The title is not valid text"),
        (AddTask("x", "a\0b"), "The prompt is not valid text"),
        (AddTask("x", "x" * 1_000_001), "1000001 characters"),
        (AddTask("x", spec=Spec(priority=5)), "Priority 5"),
        (AddTask("x", spec=Spec(priority=-1)), "Priority -1"),
        (AddTask("x", spec=Spec(limits=Limits(-1))), "Attempts -1 is less than 0"),
        (AddTask("x", spec=Spec(agent="implementor")), "There is no agent 'implementor'"),
        (AddTask("x", spec=Spec(coder="claud")), "There is no coder 'claud'"),
        (AddTask("x", spec=Spec(agent="implementer", coder="nope")), "There is no coder 'nope'"),
        (AddTask("x", spec=Spec(coder="implementer")), "There is no coder 'implementer'"),
        (AddTask("x", spec=Spec(coder="command")), "has no command"),
        (AddTask("x", spec=Spec(labels=("ok", " "))), "The label is empty"),
        (AddTask("x", spec=Spec(labels=("l",) * 51)), "51 labels"),
        (AddTask("x", spec=Spec(branch="a..b")), "'a..b' is not a valid branch name"),
        (AddTask("x", spec=Spec(base="--force")), "'--force' is not a valid name of a commit"),
        (AddTask("x", spec=Spec(cwd="/a\0b")), "directory"),
        (AddTask("x", after=("t-9",)), "There is no task 't-9' to wait for"),
        (AddTask("x", after=("",)), "No task was named"),
        (AddTask("x", join="most"), "'most' is not a way to join"),
        (AddTask("x", parent="t-9"), "There is no task 't-9'"),
        (AddTask("x", team="t" * 201), "The team has 201"),
        (ListTasks(statuses=("runing",)), "'runing' is not a state"),
        (ListTasks(limit=0), "Limit 0"),
        (ListTasks(limit=10_001), "Limit 10001"),
        (ListTasks(before="zzz"), "There is no task or branch 'zzz'"),
        (ReadyTasks(limit=-1), "Limit -1"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence_with_a_fix(request_, words, office):
    assert words in office.refused(request_, kind=BadInput).message


@pytest.mark.parametrize(
    "branch",
    [
        *("a b", "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "a\tb", "/a", "a/", "a//b", "-a"),
        *("a.", ".a", "a/.b", "a.lock", "a.lock/b", "a@{1}", "@", "HEAD"),
    ],
)
def test_a_branch_that_git_would_refuse_is_refused_at_once(branch, office):
    office.refused(AddTask("x", spec=Spec(branch=branch)), kind=BadInput)


@pytest.mark.parametrize("branch", ["fix/login", "a.b", "größe", "a@b", "fleet/t-1", "x.locked"])
def test_a_branch_that_git_takes_is_taken(branch, office):
    office.add(spec=Spec(branch=branch))


def test_the_nearest_name_is_offered(office):
    def fix(**spec):
        return office.refused(AddTask("x", spec=Spec(**spec)), kind=NotFound).fix

    assert fix(agent="implementor") == "Did you mean 'implementer'?"
    assert fix(coder="claud") == "Did you mean 'claude'?"
    assert fix(coder="zzzzzz").startswith("Coders: claude, ")
    error = office.refused(ListTasks(statuses=("runing",)), kind=BadInput)
    assert error.fix == "Did you mean 'running'?"


@pytest.mark.parametrize(
    "name", ["t-9", "9", "t-1x", "t-", "", "x", "t-1.x", "t-²", "caf\udce9", "m-1", "9" * 5000]
)
def test_a_name_that_means_no_task_is_said_to(name, office):
    office.add()
    assert len(office.refused(PauseTask(name), kind=BadInput).message) < 100


@pytest.mark.parametrize("name", ["t-1", "1", " t-1 ", "t-1.1", "01"])
def test_a_task_is_meant_by_its_id_its_number_or_its_run(name, office):
    task = office.add()
    office.start(task)
    assert office.call(PauseTask(name)).id == task


def test_what_is_refused_uses_up_no_id(office):
    for wrong in ({"after": ("t-99",)}, {"parent": "t-99"}, {"join": "most"}):
        office.refused(AddTask("Fix the login", **wrong), kind=BadInput)
    assert office.add() == "t-1"


def test_a_list_has_the_newest_first_and_what_is_settled_only_when_asked(office):
    done, failed, live, review = (office.add(t) for t in ("a", "b", "c", "d"))
    office.finish(done)
    office.finish(failed, Ending.FAILED)
    office.put(review, spec=Spec(review=True))
    office.finish(review)

    def ids(**given):
        return [t.id for t in office.call(ListTasks(**given))]

    assert ids() == [review, live, failed]
    assert ids(all=True) == [review, live, failed, done]
    assert ids(statuses=("done", "failed")) == [failed, done]
    assert ids(all=True, limit=2) == [review, live]
    assert ids(all=True, limit=2, before=live) == [failed, done]
    assert ids(project="/nowhere") == []


def test_what_a_list_shows_can_be_asked_for_past_what_it_does_not(office):
    ready = office.add("ready")
    office.call(PauseTask(office.add("paused")))
    first = office.add("first")
    office.add("waiting", after=(first,))
    asking = office.add("asking")
    office.ask(asking)
    running = office.add("running")
    office.claim(running)

    def ids(*statuses, limit=50):
        found = office.call(ListTasks(statuses=statuses, limit=limit))
        return [t.id for t in found]

    assert ids("asking") == [asking]
    assert ids("ready", limit=1) == [first]
    assert ids("ready", limit=2) == [first, ready]
    assert ids("starting", "paused") == [running, "t-2"]
    assert ids("running") == [running]
    assert len(ids("open")) == 5


def test_a_status_says_what_holds_a_task(office):
    def status(task):
        return office.show(task).task.status

    task = office.add()
    assert status(task) == "ready"
    run = office.claim(task)
    assert status(task) == "starting"
    office.end(run, Ending.RATE_LIMITED, "Come back later.")
    assert status(task) == "postponed"
    office.call(PauseTask(task))
    assert status(task) == "paused"
    office.ask(task)
    assert status(task) == "asking"
    parent, child = office.family("Child")
    assert (status(parent), status(child)) == ("children", "ready")


def test_who_does_it_is_decided_when_it_is_added(office):
    task = office.add(spec=Spec(model="big"))
    office.world.settings = office.world.settings._replace(coder="claude")
    assert office.show(task).task.coder == "scripted"
    office.finish(task)
    assert office.show(task).task.coder == "scripted"
    assert office.show(task).task.given == ("model",)


def test_a_project_that_is_broken_is_no_reason_not_to_list_its_tasks(office):
    task = office.add(spec=Spec(agent="implementer"))

    def broken(_project):
        raise BadConfig("fleet.yaml:1: it is wrong.", fix="Right it.")

    whole = office.context
    office.context = lambda actor, store: whole(actor, store)._replace(world=broken)
    (row,) = office.call(ListTasks())
    assert (row.id, row.agent, row.coder) == (task, "implementer", "scripted")
    (wait,) = office.show(task).waits
    assert (wait.why, wait.fix) == ("fleet.yaml:1: it is wrong.", "Right it.")


def test_a_run_is_shown_as_far_as_it_is_and_when_it_has_ended_as_it_was(office):
    task = office.add()
    run = office.start(task)
    office.clock.advance(2)
    office.progress(run, lines=4, peak_context=900, last="Reading.")
    now = office.show(task).task.run
    assert (now.id, now.lines, now.peak_context, now.last) == (run, 4, 900, "Reading.")
    assert now.heard_at - now.started_at == 2_000_000
    assert now.ended_at is None
    office.end(run)
    found = office.show(task)
    assert found.task.run.ended_at is not None
    assert (found.task.run.usage.cost, found.task.run.last) == (250_000, "Done.")
    (row,) = found.runs
    assert (row.ending, row.usage.input, row.usage.output) == ("succeeded", 7, 3)


def test_why_a_ready_task_does_not_start_is_said(office):
    first, second = office.add(), office.add(spec=Spec(agent="implementer"))
    assert office.show(second).waits == ()
    host = Host("box-1", 0, "box", "h", "boot", 0)
    busy = Slots("host box-1", 0, (f"{first}.1",))
    office.store.commit([Put(host), Put(busy)], [])
    (wait,) = office.show(second).waits
    assert (wait.code, wait.why) == ("no_slot", "No free slot: host box-1 is full (1/1).")
    office.store.commit([Put(replace(busy, version=1, holders=()))], [])
    model = Slots("qwen@http://big:11434", 0, (f"{first}.1",))
    office.store.commit([Put(model)], [])
    assert "qwen@http://big:11434 on node big is full" in office.show(second).waits[0].why


def test_cancelling_an_open_task_ends_it(office):
    task = office.add()
    assert office.call(CancelTask(task, "Not needed.")).status == "cancelled"
    assert office.show(task).why == "Not needed."
    assert office.refused(CancelTask(task)).code == "ended"


def test_cancelling_a_running_task_is_a_wish_that_its_host_fulfils(office):
    task = office.add()
    run = office.start(task)
    assert office.call(CancelTask(task)).status == "stopping"
    assert office.store.run(run).wanted is Wanted.CANCEL
    assert office.told()[-1] == "run.stop_wanted"
    office.end(run, Ending.CANCELLED)
    assert office.show(task).task.status == "cancelled"


def test_a_task_that_starts_while_it_is_cancelled_is_cancelled_all_the_same(office):
    task = office.add()
    row = office.call(CancelTask(task), meanwhile=lambda: office.start(task))
    assert row.status == "stopping"
    assert office.store.run(f"{task}.1").wanted is Wanted.CANCEL


def test_a_run_that_ends_while_its_task_is_cancelled_leaves_it_as_it_ended(office):
    task = office.add()
    run = office.start(task)
    with pytest.raises(Exception, match="is already done"):
        office.call(CancelTask(task), meanwhile=lambda: office.end(run))
    assert office.show(task).task.status == "done"


def test_cancelling_a_task_with_children_cancels_those_that_have_not_ended(office):
    parent, done, going, waiting = office.family("a", "b", "c")
    office.finish(done)
    run = office.start(going)
    assert office.call(CancelTask(parent)).state == "open"
    assert [office.show(t).task.status for t in (done, going, waiting)] == [
        *("done", "stopping", "cancelled"),
    ]
    office.end(run, Ending.CANCELLED)
    assert office.show(parent).task.status == "failed"
    assert office.call(CancelTask(parent)).status == "cancelled"
    assert office.refused(CancelTask(parent)).code == "ended"


def test_cancelling_settles_what_failed_with_its_failed_children(office):
    alone = office.add()
    office.finish(alone, Ending.FAILED)
    assert office.call(CancelTask(alone)).status == "cancelled"
    parent, done, failed = office.family("a", "b")
    office.finish(done)
    office.finish(failed, Ending.FAILED)
    assert office.call(CancelTask(parent)).status == "cancelled"
    assert office.show(failed).task.status == "cancelled"
    assert office.call(ListTasks()) == ()


def test_a_parent_without_children_can_be_cancelled(office):
    (parent,) = office.family()
    assert office.call(CancelTask(parent)).status == "cancelled"


def test_only_an_open_parent_takes_children(office):
    plain = office.add()
    office.refused(AddTask("x", parent=plain))
    (parent,) = office.family()
    office.call(CancelTask(parent))
    office.refused(AddTask("x", parent=parent))


def test_two_children_that_are_added_at_once_are_both_its_children(office):
    (parent,) = office.family()
    row = office.call(AddTask("a", parent=parent), meanwhile=lambda: office.add("b", parent=parent))
    assert row.id in office.show(parent).children
    assert len(office.show(parent).children) == 2
    assert office.show(row.id).parent == parent


def test_retry_opens_what_has_ended_and_its_parent(office):
    parent, child = office.family("a")
    office.finish(child, Ending.FAILED)
    assert office.show(parent).task.status == "failed"
    assert office.call(RetryTask(child)).status == "ready"
    assert office.show(parent).task.state == "open"
    assert office.refused(RetryTask(child)).code == "not_ended"
    office.refused(RetryTask(parent))


def test_closing_settles_a_task_by_hand_and_frees_what_waited(office):
    task = office.add()
    waiting = office.add(after=(task,))
    office.call(CloseTask(task, "Did it myself."))
    assert office.show(task).why == "Did it myself."
    assert office.show(waiting).task.status == "ready"
    office.refused(CloseTask(task))
    office.refused(CloseTask(waiting, " "), kind=BadInput)
    office.start(waiting)
    office.refused(CloseTask(waiting))


def test_pause_and_resume_hold_and_free_a_task(office):
    task = office.add()
    assert office.call(PauseTask(task)).status == "paused"
    assert office.call(ReadyTasks()) == ()
    assert office.call(ResumeTask(task)).status == "ready"
    run = office.start(task)
    row = office.call(PauseTask(task))
    assert (row.status, row.paused) == ("running", True)
    office.end(run, Ending.RATE_LIMITED, "Later.")
    row = office.call(ResumeTask(task))
    assert (row.status, row.paused) == ("ready", False)
    office.finish(task)
    for request in (PauseTask(task), ResumeTask(task)):
        assert "is done" in office.refused(request).message
    parent, _ = office.family("a")
    office.refused(PauseTask(parent))


def test_a_change_by_somebody_else_is_kept_when_ours_is_decided_again(office):
    task = office.add()
    office.call(PauseTask(task), meanwhile=lambda: office.put(task, title="Renamed"))
    found = office.store.task(task)
    assert (found.title, found.paused) == ("Renamed", True)
    assert office.told().count("task.paused") == 1


def test_dependencies_can_be_added_and_taken_away(office):
    task, need = office.add(), office.add()
    assert office.call(AddDependency(task, need)).status == "waiting"
    assert office.show(task).waits[0].why == f"It waits for {need}, which is open."
    assert office.call(RemoveDependency(task, need)).status == "ready"
    error = office.refused(RemoveDependency(task, need))
    assert (error.code, error.fix) == ("no_dependency", "It waits for nothing.")


def test_a_dependency_may_ask_for_work_that_has_landed_and_be_taken_away_again(office):
    task, need = office.add(), office.add()
    office.call(AddDependency(task, need))
    office.call(AddDependency(task, f"{need}:landed"))
    assert office.show(task).needs == (f"{need}:landed",)
    office.call(AddDependency(task, need))  # asks for less
    assert office.show(task).needs == (f"{need}:landed",)
    office.call(RemoveDependency(task, f"{need}:landed"))
    office.call(AddDependency(task, need))
    assert office.show(task).needs == (need,)


def test_a_circle_is_refused_with_the_way_out_of_it(office):
    a, b, c = office.add(), office.add(), office.add()
    office.call(AddDependency(b, a))
    office.call(AddDependency(c, b))
    error = office.refused(AddDependency(a, c), kind=BadInput)
    assert f"{a} → {c} → {b} → {a}" in error.message
    assert error.fix == f"`fleet dep rm {c} {b}` breaks the circle."
    itself = office.refused(AddDependency(a, a), kind=BadInput)
    assert itself.message == f"{a} cannot wait for itself."


def test_two_that_are_made_to_wait_for_each_other_at_once_do_not(office):
    a, b = office.add(), office.add()
    with pytest.raises(BadInput, match="wait for each other"):
        office.call(AddDependency(a, b), meanwhile=lambda: office.call(AddDependency(b, a)))
    assert office.show(a).after == ()


def test_only_an_open_task_can_be_made_to_wait_and_not_for_a_cancelled_one(office):
    running, cancelled, task = office.add(), office.add(), office.add()
    office.start(running)
    office.call(CancelTask(cancelled))
    assert "is running" in office.refused(AddDependency(running, task)).message
    assert "is cancelled" in office.refused(AddDependency(task, cancelled)).message
    assert "is cancelled" in office.refused(AddTask("x", after=(cancelled,))).message


def test_a_row_has_what_the_task_waits_for_its_parent_and_its_money(office):
    parent, first, second = office.family("First", "Second")
    budget = Budget(cost=500_000)
    office.call(AddDependency(second, first))
    office.call(EditTask(second, budget=budget))
    row = office.show(second).task
    assert (row.parent, row.waits_for, row.spent, row.budget) == (parent, (first,), 0, 500_000)
    office.finish(first)
    run = office.start(second)
    office.progress(run, usage=Usage(5, usd=0.2, context=3000), window=8000)
    row = office.show(second).task
    assert (row.waits_for, row.spent) == ((), 200_000)
    assert (row.run.window, row.run.usage.context) == (8000, 3000)
    office.end(run, Ending.FAILED)
    office.call(RetryTask(second))
    assert office.show(second).task.spent == 250_000
    assert office.show(first).task.budget == 0
