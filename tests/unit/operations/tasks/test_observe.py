"""Looking at agents, and answering what they ask leave for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.access import Actor, Role
from fleet.domain.errors import BadInput, Forbidden
from fleet.operations.tasks.observe import LookAtAgents, PermitRun
from fleet.operations.tasks.transcript import AttachRun
from fleet.ports import Put

LEAD = Actor("lea", Role.TEAM_LEAD, remote=True)
ROOT = Actor("ada", Role.COORDINATOR, remote=True)


def test_only_live_runs_are_looked_at(office):
    task, other = office.add(), office.add("Other")
    run = office.start(task)
    (seen,) = office.call(LookAtAgents())
    assert (seen.task, seen.run, seen.doing) == (task, run, "permission")
    assert office.call(LookAtAgents((other,))) == ()
    office.end(run)
    assert office.call(LookAtAgents()) == ()


def test_who_may_allow_and_who_may_refuse(office):
    task = office.add()
    run = office.start(task)
    agent = replace(office.agent(run), role=Role.TEAM_LEAD)
    for actor, allow in ((LEAD, True), (agent, True), (agent, False)):
        with pytest.raises(Forbidden):
            office.call(PermitRun(task, allow), actor)
    assert office.agents.answers == []
    assert office.call(PermitRun(task, allow=False), LEAD).allowed is False
    assert office.call(PermitRun(task, allow=True), ROOT).asks == "Bash: rm -rf build"
    assert office.agents.answers == [(run, False), (run, True)]
    facts = [e.data for e in office.store.log if e.type == "run.permitted"]
    assert [f["answer"] for f in facts] == ["denied", "allowed"]


def test_who_may_allow_may_allow_from_now_on(office):
    task = office.add()
    run = office.start(task)
    with pytest.raises(Forbidden):
        office.call(PermitRun(task, allow=True, always=True), LEAD)
    with pytest.raises(BadInput):
        office.call(PermitRun(task, allow=False, always=True), ROOT)
    assert office.agents.answers == []
    assert office.call(PermitRun(task, allow=True, always=True), ROOT).always is True
    assert office.agents.answers == [(run, "always")]
    assert [e.data["answer"] for e in office.store.log if e.type == "run.permitted"] == ["always"]


def test_only_who_may_allow_may_type_at_a_terminal(office):
    """Who sits there answers every dialog of the program."""
    task = office.add()
    run = office.start(task)
    agent = replace(office.agent(run), role=Role.COORDINATOR)
    for actor, code in ((LEAD, "forbidden"), (agent, "for_people")):
        assert office.refused(AttachRun(task), actor).code == code
    assert office.call(AttachRun(task), ROOT).run == run


def test_what_does_not_run_here_is_not_answered(office):
    task = office.add()
    run = office.start(task)
    office.store.commit([Put(replace(office.store.run(run), host="other-1"))], [])
    assert office.refused(PermitRun(task, allow=True)).code == "elsewhere"
    office.end(run)
    assert "is not running" in office.refused(PermitRun(task, allow=True)).message
