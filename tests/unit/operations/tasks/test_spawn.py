"""Agents that are spawned: how deep, under what name, as what."""

from __future__ import annotations

import pytest

from fleet.domain.access import Actor, Role
from fleet.domain.errors import BadInput, Forbidden
from fleet.domain.task import Mode, Spec
from fleet.operations.tasks.assign import AssignTask
from fleet.operations.tasks.at_work import ListAgents
from fleet.operations.tasks.change import AddTask, CancelTask
from fleet.operations.tasks.spawn import SpawnAgent
from fleet.operations.team.swarms import CreateSwarm


def spawned(office, actor=None, handle="", **given) -> str:
    asked = SpawnAgent(handle, "Do it.", cwd="/repo", **given)
    return office.call(asked, *([actor] if actor else [])).id


def agent_of(office, task: str, role: Role = Role.TEAM_LEAD) -> Actor:
    """The run that works on it."""
    run = office.start(task)
    return Actor(run, role, "local", run)


def chain(office, length: int) -> Actor:
    """An agent, spawned by an agent, spawned by … a person."""
    agent = agent_of(office, spawned(office))
    for _ in range(length):
        agent = agent_of(office, spawned(office, agent))
    return agent


def test_agents_have_agents_only_so_deep(office):
    third = chain(office, 3)
    assert office.store.task(third.task).depth == 3
    told = office.refused(SpawnAgent("", "More.", cwd="/repo"), third)
    assert told.code == "too_deep"
    assert "depth 4" in told.message
    rows = office.call(ListAgents())
    assert [row.depth for row in rows] == [3, 2, 1, 0]


def test_a_depth_that_is_said_counts_only_where_it_is_more(office):
    first = agent_of(office, spawned(office))
    assert office.store.task(spawned(office, first, depth=0)).depth == 1
    assert office.store.task(spawned(office, first, depth=3)).depth == 3
    assert office.refused(SpawnAgent("", "x", cwd="/r", depth=4), first).code == "too_deep"
    assert office.refused(SpawnAgent("", "x", cwd="/r", depth=4)).code == "too_deep"
    assert office.store.task(spawned(office, depth=-5)).depth == 0


def test_a_worker_that_only_adds_a_task_is_held_as_well(office):
    third = chain(office, 3)
    worker = Actor(third.name, Role.WORKER, "local", third.run)
    assert office.refused(AddTask("More"), worker).code == "too_deep"


def test_what_an_agent_wants_at_once_waits_for_room_as_well(office):
    agent = agent_of(office, spawned(office))
    at_once = [
        office.add("Now", who, spec=Spec(mode="now"))
        for who in (agent, Actor("ada", Role.COORDINATOR))
    ]
    assert [office.store.task(task).spawned for task in at_once] == [True, False]


def test_what_a_person_is_to_do_may_come_from_any_depth_but_gets_no_run(office):
    third = chain(office, 3)
    given = office.add("Look at it", third, spec=Spec(assignee="ann"))
    assert office.refused(AssignTask(given), third).code == "too_deep"
    assert office.call(AssignTask(given)).status == "ready"


def test_an_agent_cannot_go_deeper_by_a_swarm_of_its_own(office):
    third = chain(office, 3)
    swarm = office.call(CreateSwarm("Deep"), third).id
    asked = SpawnAgent("", "x", cwd="/r", swarm=swarm)
    assert office.refused(asked, third).code == "too_deep"
    assert office.store.task(office.call(asked).id).depth == 0  # a person asks


def test_how_deep_is_a_setting(office):
    office.world.settings = office.world.settings._replace(max_depth=0)
    agent = agent_of(office, spawned(office))
    assert office.refused(SpawnAgent("", "x", cwd="/r"), agent).code == "too_deep"


def test_of_two_agents_at_work_only_one_has_a_name(office):
    first = spawned(office, handle="fix/login")
    told = office.refused(SpawnAgent("fix/login", "Again.", cwd="/repo"))
    assert told.code == "taken"
    assert first in told.message
    office.call(SpawnAgent("fix/login", "Elsewhere.", cwd="/other"))
    office.call(CancelTask(first))
    assert spawned(office, handle="fix/login") != first


@pytest.mark.parametrize("handle", ["t-1", "1", "t-1.2", "fix login", "-x"])
def test_a_handle_is_a_branch_that_is_not_taken_for_a_task(office, handle):
    spawned(office)
    office.refused(SpawnAgent(handle, "x", cwd="/r"), kind=BadInput)


def test_a_refused_agent_uses_up_no_number(office):
    office.refused(SpawnAgent("a", "x", cwd="/r", session="../x"), kind=BadInput)
    office.refused(SpawnAgent("a", "x", cwd="/r", role="king"), kind=BadInput)
    assert spawned(office) == "t-1"


@pytest.mark.parametrize(
    ("given", "agent", "role"),
    [
        ({}, "", ""),
        ({"role": "merger"}, "", "merger"),
        ({"kind": "lead"}, "", "team-lead"),
        ({"kind": "worker"}, "", "worker"),
        ({"kind": "scout"}, "", ""),
        ({"kind": "implementer"}, "implementer", ""),
        ({"kind": "implementer", "role": "lead"}, "implementer", "team-lead"),
    ],
)
def test_a_kind_is_an_agent_a_role_or_a_label(office, given, agent, role):
    task = office.store.task(spawned(office, **given))
    assert (task.spec.agent, task.role) == (agent, role)
    assert task.spec.labels == ((given["kind"],) if "kind" in given else ())


def test_an_agent_may_do_no_more_than_who_asks_for_it(office):
    office.world.settings = office.world.settings._replace(max_depth=9)
    lead = office.person(Role.TEAM_LEAD, name="lea")
    assert office.store.task(spawned(office, lead, role="team-lead")).role == "team-lead"
    office.refused(SpawnAgent("", "x", cwd="/r", role="coordinator"), kind=BadInput)
    worker = office.person(Role.WORKER, name="bob")
    office.refused(SpawnAgent("", "x", cwd="/r", role="worker"), worker, Forbidden)


def test_what_is_asked_for_in_a_terminal_starts_on_the_host_where_it_is_asked_for(office):
    """On a store of one host nothing needs to be said about it."""
    wish = AddTask("Look", "look", spec=Spec(mode=Mode.TERMINAL))
    office.agents.host = "box-1"
    office.agents.shared = True
    assert office.store.task(office.call(wish).id).spec.limits.needs == ("box-1",)
    assert office.store.task(office.call(AddTask("Queued")).id).spec.limits.needs == ()
    office.agents.shared = False
    assert office.store.task(office.call(wish).id).spec.limits.needs == ()
