from __future__ import annotations

import pytest

from fleet.domain.access import Actor, Role
from fleet.domain.errors import BadInput, Forbidden, Mismatch, NotFound
from fleet.domain.task import Spec
from fleet.operations.tasks.add_all import AddTasks, PlannedTask
from fleet.operations.tasks.change import AddTask, CancelTask
from fleet.operations.tasks.graph import GraphTasks
from fleet.testing.clock import FakeClock
from fleet.testing.memory_store import MemoryStore


def plan(*tasks, **given):
    return AddTasks(tuple(tasks), **given)


def test_tasks_wait_for_each_other_by_name_and_for_others_by_id(office):
    first = office.add("First")
    rows = office.call(
        plan(
            PlannedTask("Release", "release", join="all"),
            PlannedTask("Page", "page", parent="release", after=("api", first)),
            PlannedTask("Api", "api", parent="release"),
        )
    )
    assert [(row.id, row.title, row.status) for row in rows] == [
        ("t-2", "Release", "children"),
        ("t-3", "Page", "waiting"),
        ("t-4", "Api", "ready"),
    ]
    page = office.show("t-3")
    assert (set(page.after), page.parent) == ({first, "t-4"}, "t-2")
    assert office.show("t-2").children == ("t-3", "t-4")


@pytest.mark.parametrize(
    ("tasks", "words", "kind"),
    [
        ((), "No tasks were given", BadInput),
        ((PlannedTask("A"), PlannedTask(" ")), "The title is empty", BadInput),
        ((PlannedTask("A", "a"), PlannedTask("B", "a")), "Two tasks are named 'a'", Mismatch),
        ((PlannedTask("A"), PlannedTask("B", "t-3")), "'t-3' is not a valid name", BadInput),
        ((PlannedTask("A"), PlannedTask("B", after=("c",))), "no task 'c'", NotFound),
        (
            (PlannedTask("A", "a", after=("b",)), PlannedTask("B", "b", after=("a",))),
            "wait for each other: a → b → a",
            Mismatch,
        ),
        (
            (PlannedTask("A", "a", join="all"), PlannedTask("B", "b", parent="a", after=("a",))),
            "wait for each other",
            Mismatch,
        ),
        ((PlannedTask("A", "a"), PlannedTask("B", parent="a")), "cannot have child", BadInput),
        ((PlannedTask("A"), PlannedTask("B", spec=Spec(priority=9))), "Priority 9", BadInput),
        (tuple(PlannedTask("A") for _ in range(1001)), "1001 tasks", BadInput),
    ],
)
def test_a_plan_that_cannot_be_carried_out_adds_nothing_and_uses_up_no_id(
    office, tasks, words, kind
):
    error = office.refused(plan(*tasks), kind=kind)
    assert words in error.message
    if 1 < len(tasks) <= 1000 and "each other" not in words:
        assert error.about["index"] == 1
    assert office.add("Next") == "t-1"


def test_a_slip_in_a_name_is_told_with_the_name_that_is_there(office):
    tasks = (PlannedTask("A", "endpoint"), PlannedTask("B", after=("endpiont",)))
    assert office.refused(plan(*tasks), kind=NotFound).fix == "Did you mean 'endpoint'?"


def test_the_same_plan_is_refused_a_second_time_unless_it_is_wanted_again(office):
    tasks = (PlannedTask("A", "a"), PlannedTask("B", after=("a",)))
    office.call(plan(*tasks))
    error = office.refused(plan(*tasks))
    assert (error.code, error.message) == (
        "repeated",
        "The same tasks were added before: t-1 to t-2.",
    )
    assert [row.id for row in office.call(plan(*tasks, again=True))] == ["t-3", "t-4"]
    assert "t-3 to t-4" in office.refused(plan(*tasks)).message
    assert office.call(plan(*tasks, PlannedTask("C")))


def test_children_reopen_the_parent_that_they_are_added_to(office):
    parent = office.call(AddTask("All", join="all")).id
    child = office.call(AddTask("One", parent=parent)).id
    office.call(CancelTask(child))
    assert office.show(parent).task.state == "cancelled"
    office.refused(plan(PlannedTask("Two", parent=parent)))
    swarm = office.call(AddTask("Open", join="any")).id
    office.call(plan(*(PlannedTask(f"N{n}", parent=swarm) for n in range(3))))
    assert len(office.show(swarm).children) == 3


def test_every_task_of_a_plan_passes_the_gate_that_a_single_one_passes(office):
    bob = Actor("bob", Role.WORKER, "red", remote=True)
    error = office.refused(plan(PlannedTask("A"), PlannedTask("B", spec=Spec(gate="id"))), bob)
    assert isinstance(error, Forbidden)
    assert (error.code, error.about["index"]) == ("not_from_outside", 1)
    rows = office.call(plan(PlannedTask("A"), PlannedTask("B")), bob)
    assert {(row.status, row.team) for row in rows} == {("held", "red")}
    with pytest.raises(Forbidden):
        office.call(plan(PlannedTask("A", team="blue")), bob)


def test_the_graph_names_parents_and_what_is_not_done_of_what_a_task_waits_for(office):
    office.call(plan(PlannedTask("A", "a"), PlannedTask("B", after=("a",), prompt="Do it.")))
    newest, oldest = office.call(GraphTasks())
    assert (newest.id, newest.after, newest.unmet, newest.prompt) == ("t-2", ("t-1",), ("t-1",), "")
    assert (oldest.id, oldest.unmet) == ("t-1", ())
    (whole,) = office.call(GraphTasks(tasks=("t-2", "t-99"), whole=True))
    assert whole.prompt == "Do it."
    eve = Actor("eve", Role.WORKER, "blue")
    assert office.call(GraphTasks(tasks=("t-2",)), eve) == ()
    assert office.call(GraphTasks(), eve) == ()
    office.refused(GraphTasks(limit=0), kind=BadInput)


class TickingClock(FakeClock):
    def now(self) -> int:
        self.advance(0.001)
        return super().now()


@pytest.mark.parametrize("request_", [AddTask("One"), plan(PlannedTask("One"))])
def test_a_task_that_was_only_added_was_last_changed_when_it_was_added(office, request_):
    office.store = MemoryStore(TickingClock())
    office.call(request_)
    assert office.show("t-1").updated_at == office.show("t-1").task.created_at
