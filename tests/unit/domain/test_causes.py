from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.access import Actor, Role
from fleet.domain.causes import (
    HERE,
    CauseRules,
    Declared,
    Effects,
    cause_of,
    decide,
    is_held,
    let_run,
    may_speak,
    permissions_of,
    reworded,
)
from fleet.domain.errors import Forbidden, NotFound
from fleet.domain.fleet import Agent, Fleet
from fleet.domain.task import Join, Limits, Spec, Task, TaskState

TASK = Task("t-1", 1, TaskState.OPEN, "x", "", "", "ada", 0)
BOB = Actor("bob", Role.WORKER, "red", remote=True)
ANN = Actor("ann", Role.TEAM_LEAD, "red", remote=True)


def rules(**given):
    declared = Declared(**({"fleet": Fleet(), "default": "claude"} | given))
    return CauseRules(lambda: 3, lambda _: False, lambda: declared)


def test_a_role_counts_only_with_a_token_and_an_agent_counts_as_who_it_works_for():
    assert cause_of(replace(BOB, remote=False)) == HERE
    assert cause_of(BOB) == "worker"
    run = Actor("t-1.1", Role.WORKER, run="t-1.1")
    assert cause_of(run, TASK) == HERE
    assert cause_of(replace(run, remote=True), TASK) == HERE
    assert cause_of(run, replace(TASK, caused_by="coordinator")) == "worker"


def test_what_a_project_declares_is_read_after_its_directory_was_checked():
    """Its files could belong to somebody else."""

    def read():
        raise AssertionError("a file was read")

    effects = Effects(Spec(), directories=("/etc",))
    with pytest.raises(NotFound):
        decide(ANN, effects, CauseRules(lambda: 3, lambda _: False, read))


def test_a_program_is_for_all_only_where_it_is_the_default_of_who_runs_the_server():
    fleet = Fleet(agents={"script": Agent("script", "scripted")})
    for spec, default in ((Spec(agent="script"), "claude"), (Spec(), "scripted")):
        with pytest.raises(Forbidden, match="executes its prompt as a program"):
            decide(ANN, Effects(spec), rules(fleet=fleet, default=default))
        assert decide(ANN, Effects(spec), rules(fleet=fleet, default=default, program=True)).by
    assert may_speak("coordinator", "scripted", program=False)
    assert not may_speak("worker", "scripted", program=False)


def test_the_role_of_a_workers_run_does_not_follow_later_declarations():
    assert decide(BOB, Effects(Spec()), rules()).role == "worker"
    assert decide(ANN, Effects(Spec()), rules()).role == ""


def test_a_task_is_held_unless_somebody_does_it_by_hand_or_it_has_children():
    held = replace(TASK, caused_by="worker")
    assert is_held(held)
    assert not is_held(replace(held, join=Join.ALL))
    assert not is_held(replace(held, spec=Spec(assignee="bob")))
    assert not is_held(TASK)


@pytest.mark.parametrize(
    ("was", "by", "now"),
    [
        ("worker", "team-lead", "team-lead"),
        ("worker", HERE, HERE),
        ("team-lead", "worker", "worker"),
        (HERE, "team-lead", HERE),
        ("team-lead", "coordinator", "team-lead"),
    ],
)
def test_who_lets_a_task_run_answers_for_it(was, by, now):
    assert let_run(replace(TASK, caused_by=was), by).caused_by == now


@pytest.mark.parametrize(
    ("was", "by", "now"),
    [
        (HERE, "team-lead", "team-lead"),
        ("worker", "team-lead", "worker"),
        ("team-lead", HERE, "team-lead"),
    ],
)
def test_changed_words_count_as_those_of_the_lower_role(was, by, now):
    assert reworded(replace(TASK, caused_by=was), by).caused_by == now


@pytest.mark.parametrize("wanted", ["read", "edit", "full"])
def test_nobody_outside_gives_an_agent_more_permissions_than_it_is_declared_with(wanted):
    fleet = Fleet(agents={"coder": Agent("coder", "claude", permissions="edit")})
    effects = Effects(Spec(agent="coder", limits=Limits(permissions=wanted)))
    for actor in (BOB, ANN):
        if wanted == "full":
            with pytest.raises(Forbidden, match="may not give 'coder' the permissions 'full'"):
                decide(actor, effects, rules(fleet=fleet))
        else:
            decide(actor, effects, rules(fleet=fleet))
    assert decide(replace(BOB, remote=False), effects, rules(fleet=fleet)).by == HERE


def test_words_of_somebody_outside_do_not_run_with_permissions_that_a_person_here_gave():
    agent = Agent("coder", "claude", permissions="edit")
    task = replace(TASK, spec=Spec(limits=Limits(permissions="full")))
    assert permissions_of(task, agent) == "full"
    assert permissions_of(reworded(task, "worker"), agent) == "edit"
    assert permissions_of(TASK, agent) == "edit"
    lower = replace(TASK, spec=Spec(limits=Limits(permissions="read")), caused_by="worker")
    assert permissions_of(lower, agent) == "read"
