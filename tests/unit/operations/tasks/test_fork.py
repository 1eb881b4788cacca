"""A second agent that continues a copy of a conversation."""

from __future__ import annotations

from dataclasses import replace

from fleet.domain.run import Checkpoint
from fleet.domain.task import Spec
from fleet.operations.tasks.fork import ForkAgent
from fleet.ports import Put
from fleet.supervisor.attempt.prompt import session_of


def test_the_new_task_has_the_agent_the_commit_and_the_conversation(office):
    source = office.add(spec=Spec(mode="terminal", gate="true"))
    run = office.start(source)
    before = office.store.task(source)
    row = office.call(ForkAgent(source, "other", "Go on."))
    task = office.store.task(row.task.id)
    assert (row.source, row.base, row.uncommitted) == (source, f"c-{source}", True)
    assert (task.spec.branch, task.spec.base, task.spec.mode) == ("other", row.base, "terminal")
    assert (task.spec.gate, task.spec.coder, task.prompt) == ("true", "scripted", "Go on.")
    assert task.tally.checkpoint == Checkpoint(session=f"session of {run}", fork=True)
    assert office.store.task(source) == before


def test_only_its_first_run_copies_the_conversation(office):
    source = office.add()
    office.start(source)
    task = office.call(ForkAgent(source, "other")).task.id
    run = office.store.run(office.start(task))
    assert session_of(office.store.task(task), None, run) == f"session of {source}.1"
    plain = replace(office.store.task(task), tally=office.store.task(source).tally)
    assert session_of(plain, None, run) == ""


def test_what_cannot_be_forked_is_refused_with_the_reason(office):
    source = office.add()
    office.refused(ForkAgent(source, "other"))
    run = office.store.run(office.start(source))
    office.agents.session = lambda _: ""
    assert office.refused(ForkAgent(source, "other")).code == "no_session"
    office.agents.forks = lambda _coder, _project: False
    assert office.refused(ForkAgent(source, "other")).code == "cannot_fork"
    office.store.commit([Put(replace(run, host="box-2"))], [])
    assert office.refused(ForkAgent(source, "other")).code == "elsewhere"
