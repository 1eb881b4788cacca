"""Agents that are spawned, by a real supervisor: their room, their names, their roles, their depth."""

from __future__ import annotations

import pytest

from contract.launching import until
from fleet.app.run_identity import actor_of
from fleet.domain.access import Role
from fleet.operations.tasks.change import CancelTask
from fleet.operations.tasks.show import ShowTask
from fleet.operations.tasks.spawn import SpawnAgent


def spawn(yard, handle: str, *script: str, **given) -> str:
    return yard.client.call(SpawnAgent(handle, "\n".join(script), cwd=str(yard.repo), **given)).id


@pytest.mark.parametrize("terminal", [False, True], ids=["headless", "in a terminal"])
def test_an_agent_that_is_spawned_waits_for_room(yard, terminal):
    first, second = (spawn(yard, n, "sleep 60", terminal=terminal) for n in ("one", "two"))
    yard.start("--max", "1")
    yard.running(first)
    waits = until(lambda: yard.client.call(ShowTask(second)).waits)
    assert "is full (1/1)" in waits[0].why
    assert not yard.store.runs(second)
    yard.client.call(CancelTask(first))
    yard.running(second)
    yard.client.call(CancelTask(second))
    yard.wait(first, second, state="cancelled")


def test_tasks_that_want_one_branch_at_once_get_one_each_and_lose_no_attempt(yard):
    tasks = [yard.add("say Hello.", branch="same", attempts=1) for _ in range(8)]
    yard.start("--max", "8")
    yard.wait(*tasks)
    assert [yard.task(t).tally.failures for t in tasks] == [0] * 8
    made = {yard.run(t).workspace.branch for t in tasks}
    assert len(made) == 8
    assert "same" in made


def test_a_spawned_agent_is_what_it_was_spawned_as(yard):
    lead = spawn(yard, "lead", "say Hello.", role="team-lead")
    hand = spawn(yard, "hand", "say Hello.")
    yard.start()
    yard.wait(lead, hand)
    assert actor_of(yard.client.app, f"{lead}.1").role is Role.TEAM_LEAD
    assert actor_of(yard.client.app, f"{hand}.1").role is Role.WORKER


def test_an_agent_of_an_agent_is_deeper_than_it(yard):
    task = yard.add("run fleet add Deeper --prompt say", "say Bye.")
    yard.start()
    yard.wait(task)
    made = yard.task("t-2")
    assert (made.author, made.depth) == (f"{task}.1", 1)
