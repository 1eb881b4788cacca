"""Changing what a task asks for, after it was added."""

from __future__ import annotations

import pytest

from fleet.domain.access import Actor, Role
from fleet.domain.errors import BadInput, Forbidden, NotFound, Refused
from fleet.domain.fleet import Agent
from fleet.domain.run import Choice
from fleet.domain.task import Budget, Spec
from fleet.operations.tasks.dependencies import AddDependency
from fleet.operations.tasks.edit import FIELDS, EditTask

LEAD = Actor("lea", Role.TEAM_LEAD, remote=True)
LATE = {
    "agent": "implementer", "coder": "scripted", "model": "large", "base": "main", "gate": "true",
    "time_limit": 9,
}  # fmt: skip


def told(office):
    return [e.data["what"] for e in office.store.log if e.type == "task.edited"]


def test_the_choice_follows_an_edited_agent(office):
    task = office.add(spec=Spec(coder="scripted", model="tiny"))
    row = office.call(EditTask(task, agent="implementer"))
    assert (row.agent, row.coder, row.model) == ("implementer", "scripted", "heavy-coder")
    assert office.store.task(task).choice == Choice("implementer", "scripted", "heavy-coder")
    assert told(office) == ["agent, coder, model"]
    office.refused(EditTask(task, agent="implementr"), kind=NotFound)


def test_another_model_keeps_the_agent_that_was_frozen(office):
    task = office.add()
    office.world.settings = office.world.settings._replace(coder="claude")
    row = office.call(EditTask(task, model="large"))
    assert (row.agent, row.coder, row.model) == ("scripted", "scripted", "large")


def test_a_task_waits_for_those_that_an_edit_names(office):
    one, two, task = office.add("1"), office.add("2"), office.add("3")
    office.call(EditTask(task, after=(one, "2")))
    assert office.store.task(task).after == (one, two)
    assert office.call(EditTask(task, after=(two, two))).status == "waiting"
    assert office.store.task(task).after == (two,)
    assert office.call(EditTask(task, after=())).status == "ready"
    assert told(office) == ["after"] * 3
    office.call(EditTask(task, after=(one, f"{two}:landed")))
    office.call(EditTask(task, after=(f"{one}:landed", two)))
    assert office.show(task).needs == (f"{one}:landed", two)
    assert told(office) == ["after"] * 5


def test_an_edit_makes_no_circle(office):
    one, two = office.add("1"), office.add("2")
    office.call(AddDependency(two, one))
    assert (
        "wait for each other" in office.refused(EditTask(one, after=(two,)), kind=BadInput).message
    )
    office.refused(EditTask(one, after=(one,)), kind=BadInput)
    office.refused(EditTask(one, after=("t-99",)), kind=NotFound)


@pytest.mark.parametrize("name", [*LATE, "after"])
def test_a_live_run_keeps_what_it_started_with(office, name):
    task, other = office.add(), office.add("Other")
    office.start(task)
    error = office.refused(EditTask(task, **{name: LATE.get(name, (other,))}))
    assert (error.code, "fleet cancel" in error.fix) == ("running", True)
    assert name.replace("_", " ") in error.message


def test_the_other_fields_of_a_running_task_can_be_changed(office):
    task = office.add()
    office.start(task)
    given = {"labels": ("ui",), "attempts": 5, "budget": Budget(cost=9), "review": True}
    office.call(EditTask(task, "New", "Words", 0, **given))
    assert told(office) == ["title, prompt, priority, labels, attempts, budget, review"]
    assert {"title", "prompt", "priority", *given, *LATE, "after"} == {*FIELDS}


def test_a_task_with_children_has_only_words(office):
    parent, _ = office.family("Child")
    assert office.refused(EditTask(parent, gate="true")).fix == "Edit its children."
    assert office.call(EditTask(parent, title="All of it")).title == "All of it"


@pytest.mark.parametrize(
    "given",
    [{"gate": "id"}, {"agent": "shell", "gate": "id"}, {"agent": "scripted"}, {"coder": "command"}],
)
def test_an_edit_causes_no_more_than_adding_would(office, given):
    task = office.add(spec=Spec(agent="implementer"))
    office.world.settings = office.world.settings._replace(coder="claude")
    with pytest.raises((Forbidden, Refused)):
        office.call(EditTask(task, **given), LEAD)
    assert told(office) == []


def test_a_leads_edit_makes_the_runs_a_leads(office):
    office.world.fleet.agents["reviewer"] = Agent("reviewer", "claude")
    task = office.add(spec=Spec(agent="implementer"))
    office.call(EditTask(task, agent="reviewer"), LEAD)
    assert office.store.task(task).caused_by == "team-lead"
    office.call(EditTask(task, priority=0, labels=("x",), budget=Budget(cost=1)), LEAD)


@pytest.mark.parametrize(
    "given", [{"labels": ("",)}, {"base": "-x"}, {"gate": "\0"}, {"attempts": -1}]
)
def test_an_edited_spec_is_checked_as_a_new_one_is(office, given):
    office.refused(EditTask(office.add(), **given), kind=BadInput)
