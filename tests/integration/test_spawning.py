"""Agents that are spawned, by a real supervisor: their room, their names, their roles, their depth."""

from __future__ import annotations

import pytest

from fleet.app.run_identity import actor_of
from fleet.domain.access import Role
from fleet.operations.tasks.change import CancelTask
from fleet.operations.tasks.show import ShowTask
from fleet.operations.tasks.spawn import SpawnAgent
from tests.wait import until


def spawn(supervised, handle: str, *script: str, **given) -> str:
    return supervised.client.call(
        SpawnAgent(handle, "\n".join(script), cwd=str(supervised.repo), **given)
    ).id


@pytest.mark.parametrize("terminal", [False, True], ids=["headless", "in a terminal"])
def test_an_agent_that_is_spawned_waits_for_room(supervised, terminal):
    first, second = (spawn(supervised, n, "sleep 60", terminal=terminal) for n in ("one", "two"))
    supervised.start("--max", "1")
    supervised.running(first)
    waits = until(lambda: supervised.client.call(ShowTask(second)).waits)
    assert "is full (1/1)" in waits[0].why
    assert not supervised.store.runs(second)
    supervised.client.call(CancelTask(first))
    supervised.running(second)
    supervised.client.call(CancelTask(second))
    supervised.wait(first, second, state="cancelled")


def test_tasks_that_want_one_branch_at_once_get_one_each_and_lose_no_attempt(supervised):
    tasks = [supervised.add("say Hello.", branch="same", attempts=1) for _ in range(8)]
    supervised.start("--max", "8")
    supervised.wait(*tasks)
    assert [supervised.task(t).tally.failures for t in tasks] == [0] * 8
    made = {supervised.run(t).workspace.branch for t in tasks}
    assert len(made) == 8
    assert "same" in made


def test_a_spawned_agent_is_what_it_was_spawned_as(supervised):
    lead = spawn(supervised, "lead", "say Hello.", role="team-lead")
    hand = spawn(supervised, "hand", "say Hello.")
    supervised.start()
    supervised.wait(lead, hand)
    assert actor_of(supervised.client.app, f"{lead}.1").role is Role.TEAM_LEAD
    assert actor_of(supervised.client.app, f"{hand}.1").role is Role.WORKER


def test_an_agent_of_an_agent_is_deeper_than_it(supervised):
    task = supervised.add("run fleet add Deeper --prompt say", "say Bye.")
    supervised.start()
    supervised.wait(task)
    made = supervised.task("t-2")
    assert (made.author, made.depth) == (f"{task}.1", 1)
