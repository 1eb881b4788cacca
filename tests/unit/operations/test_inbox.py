"""The inbox: what of the store, of screens and of git needs a person, and for whom."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.access import Actor, Role
from fleet.domain.activity import SeenRun
from fleet.domain.errors import BadInput, NotFound
from fleet.domain.run import Checkpoint, Ending, Host, Workspace
from fleet.domain.task import Spec, Tally
from fleet.operations.catalogue import perform
from fleet.operations.inbox import ListInbox, SeeItems, SnoozeItem
from fleet.ports import Ahead, Put

BO = Actor("bo", Role.COORDINATOR)

WEB = Actor("eve", Role.WORKER, remote=True)


def kinds(office, actor=None, **given) -> list[str]:
    request = ListInbox(**given)
    items = office.call(request, actor) if actor else office.call(request)
    return [f"{item.kind} {item.task}".strip() for item in items]


def done_on_a_branch(office, title="Notes", commit="1f2e3d") -> str:
    task = office.add(title)
    run = office.start(task)
    workspace = Workspace(f"/w/{task}", f"/w/{task}", f"fleet/{task}", "main")
    office.store.commit([Put(replace(office.store.run(run), workspace=workspace))], [])
    office.end(run, checkpoint=Checkpoint(commit))
    return task


def test_a_task_that_changed_nothing_brings_nothing_though_its_branch_is_ahead(office):
    task = done_on_a_branch(office, "Review", commit="")
    assert kinds(office) == []
    assert kinds(office, kinds=("finished",)) == [f"finished {task}"]


def test_questions_failures_reviews_and_work_that_is_not_landed_in_that_order(office):
    landed = done_on_a_branch(office)
    review = office.add("Look at it", spec=Spec(review=True))
    office.finish(review)
    failed = office.add("Break")
    office.finish(failed, Ending.FAILED)
    asking = office.add("Choose")
    office.ask(asking)
    assert kinds(office) == [
        f"question {asking}", f"failed {failed}", f"review {review}", f"not-landed {landed}",
    ]  # fmt: skip


def test_what_was_settled_needs_nobody(office):
    failed = office.add("Break")
    office.finish(failed, Ending.FAILED)
    office.trees.ahead = lambda _project, _branches: []
    done_on_a_branch(office)
    assert kinds(office) == [f"failed {failed}"]
    office.trees.ahead = lambda _, branches: [Ahead(branch, "main") for branch in branches]
    office.put(done_on_a_branch(office), tally=Tally(landed="1f2e3d"))  # on another branch
    assert [kind for kind in kinds(office) if kind.startswith("not-landed")] == ["not-landed t-2"]
    office.trees.ahead = lambda _project, _branches: []
    office.put(failed, state="cancelled")
    assert kinds(office) == []


def test_work_that_is_landing_needs_nobody(office):
    task = done_on_a_branch(office)
    assert kinds(office) == [f"not-landed {task}"]
    office.put(task, tally=Tally(landing="l-1"))
    assert kinds(office) == []


def test_an_item_says_how_many_open_tasks_wait_for_it(office):
    first = office.add("First")
    office.ask(first)
    office.add("Second", after=(first,))
    over = office.add("Third", after=(first,))
    office.put(over, state="cancelled")
    (item,) = office.call(ListInbox())
    assert item.behind == 1


def test_a_conflict_that_git_foretells_is_an_item_of_its_own(office):
    task = done_on_a_branch(office)
    office.trees.ahead = lambda _, branches: [Ahead(branches[0], "main", ("a.py",))]
    (item,) = office.call(ListInbox())
    assert (item.kind, item.task) == ("conflict", task)


def test_a_task_that_a_worker_asked_for_is_held_until_it_is_let_run(office):
    task = office.add("More work", actor=WEB)
    (item,) = office.call(ListInbox())
    assert (item.kind, item.actions[0].command) == ("held", f"fleet resume {task}")


def test_a_dialog_is_seen_only_of_agents_in_terminals(office):
    terminal, queued = office.add("Talk", spec=Spec(mode="terminal")), office.add("Work")
    runs = [office.start(terminal), office.start(queued)]
    asked = []

    def look(pairs):
        asked.extend(run.id for _, run in pairs)
        return {run.id: SeenRun("permission", "Run make?") for _, run in pairs}

    office.agents.seen = look
    (item,) = office.call(ListInbox())
    assert (item.kind, item.task, item.words) == ("permission", terminal, "Run make?")
    assert asked == runs[:1]


def test_a_node_that_is_down_says_how_many_tasks_only_it_could_serve(office):
    down = ("http://big:11434 connection refused",)
    office.store.commit([Put(Host("box", 0, "box", "h", "", office.clock.now() + 99, down))], [])
    office.add("Think", spec=Spec(agent="implementer"))
    office.add("Script", spec=Spec(coder="scripted"))
    (item,) = office.call(ListInbox())
    assert item.words == "big (http://big:11434): connection refused"
    assert (item.kind, item.behind) == ("node", 1)
    assert kinds(office, office.person(Role.TEAM_LEAD)) == []


def test_a_host_is_silent_only_beside_one_that_is_awake(office):
    office.start(office.add("Work"))  # on box-1
    now = office.clock.now()
    office.store.commit([Put(Host("box-1", 0, "box", "h", "", now - 5))], [])
    assert kinds(office) == []
    office.store.commit([Put(Host("box-2", 0, "other", "h", "", now + 90_000_000))], [])
    assert kinds(office) == ["host"]


def test_settings_that_nobody_trusts_are_named_once_for_each_project(office):
    office.world.withheld = frozenset({"workspace.setup"})
    office.add("One", project="/shop")
    office.add("Two", project="/shop")
    (item,) = office.call(ListInbox(project="/shop"))
    assert (item.kind, item.project) == ("untrusted", "/shop")
    assert item.words.endswith("workspace.setup")


def test_one_may_ask_for_a_project_and_for_some_kinds(office):
    asking = office.add("Choose", project="/shop")
    office.ask(asking)
    failed = office.add("Break", project="/other")
    office.finish(failed, Ending.FAILED)
    assert kinds(office, project="/shop") == [f"question {asking}"]
    assert kinds(office, kinds=("failed", "review")) == [f"failed {failed}"]
    error = office.refused(ListInbox(kinds=("quesiton",)), kind=BadInput)
    assert "question" in error.fix


def test_pages_go_on_after_an_item_and_one_that_is_gone_is_said(office):
    tasks = [office.add(f"Choose {n}") for n in range(3)]
    for task in tasks:
        office.ask(task)
    first = office.call(ListInbox(limit=2))
    rest = office.call(ListInbox(limit=2, before=first[-1].id))
    assert [item.task for item in (*first, *rest)] == tasks
    office.refused(ListInbox(before="question:t-9:m-9"), kind=NotFound)


@pytest.mark.parametrize("role", [Role.TEAM_LEAD, Role.WORKER, Role.MONITOR])
def test_another_teams_needs_are_nobody_elses(office, role):
    office.ask(office.add("Choose", team="blue"))
    assert kinds(office, office.person(role, "red")) == []
    assert len(kinds(office, office.person(role, "blue"))) == 1


def test_what_a_person_has_seen_is_not_listed_to_that_person_again(office):
    failed = office.add("Break")
    office.finish(failed, Ending.FAILED)
    (item,) = office.call(ListInbox())
    office.call(SeeItems((item.id,)))
    assert office.call(ListInbox()) == ()
    assert [each.id for each in office.call(ListInbox(snoozed=True))] == [item.id]
    assert [each.id for each in office.call(ListInbox(), BO)] == [item.id]


def test_a_snoozed_item_comes_back_after_its_time(office):
    failed = office.add("Break")
    office.finish(failed, Ending.FAILED)
    (item,) = office.call(ListInbox())
    office.call(SnoozeItem(item.id, 60))
    assert office.call(ListInbox()) == ()
    office.clock.advance(61)
    assert [each.id for each in office.call(ListInbox())] == [item.id]


def test_finished_tasks_are_listed_when_asked_for_until_they_are_seen(office):
    done = office.add("Paint")
    office.finish(done)
    assert kinds(office) == []
    (item,) = office.call(ListInbox(kinds=("finished",)))
    assert item.task == done
    office.call(SeeItems((item.id,)))
    assert office.call(ListInbox(kinds=("finished",))) == ()


def test_long_items_are_put_away_and_take_little_room(office):
    """Each change writes all marks of a person, and whoever may read may put away."""
    items = tuple(f"failed:{n}:{'x' * 5900}" for n in range(1000))
    for n in range(0, 1000, 200):
        office.call(SeeItems(items[n : n + 200]))
    entry = office.store.entry("marks", "local", "ada")
    assert len(entry.body["items"]) == 1000
    assert len(str(entry.body)) < 100_000
    failed = office.add()
    office.finish(failed, Ending.FAILED)
    (item,) = office.call(ListInbox(kinds=("failed",)))
    office.call(SnoozeItem(item.id))
    assert kinds(office, kinds=("failed",)) == []


def test_settings_are_read_only_in_directories_that_the_caller_may_name(office):
    asked = []

    def world(project):
        asked.append(project)
        return office.world

    context = office.context(WEB)._replace(
        world=world, offers=lambda _context, directory: directory == "/in"
    )
    for directory in ("/in", "/etc"):
        perform(context, ListInbox(project=directory, kinds=("untrusted",)))
    assert asked == ["/in"]
