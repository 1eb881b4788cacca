"""Many agents are ended and cleared away at once: what stops one stops none of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

import fleet.client
from contract.launching import until
from fleet.cli.agents.calls import kill
from fleet.operations.tasks.at_work import ListAgents
from fleet.operations.tasks.change import CancelTask


@pytest.fixture
def started(yard):
    """Agents with these prompts, by their branches, as `fleet list` shows them."""

    def start(*pairs: str):
        done = yard.type("multi", "--headless", *pairs)
        assert done.returncode == 0, done.stderr
        return {a.branch: a for a in yard.client.call(ListAgents(str(yard.repo)))}

    return start


def end(yard, *agents):
    return {k.branch: k for k in kill(yard.client, agents, delete_branch=False)}


def test_one_that_somebody_else_cancels_meanwhile_is_cleared_away_like_the_others(yard, started):
    agents = started("a:sleep 30", "b:sleep 30", "c:sleep 30")
    yard.client.call(CancelTask(agents["b"].task))
    ended = end(yard, *agents.values())
    assert {b: (k.status, k.removed, k.error) for b, k in ended.items()} == dict.fromkeys(
        agents, ("cancelled", True, "")
    )


def test_one_that_does_not_end_in_time_is_named_and_stays(yard, started, monkeypatch):
    agents = started("a:sleep 30", "deaf:ignore-term\nsay deaf\nsleep 9", "c:sleep 30")
    until(lambda: "deaf" in yard.transcript(agents["deaf"].task))
    monkeypatch.setattr(fleet.client, "PATIENCE", 1.5)
    ended = end(yard, *agents.values())
    assert "has been told to end, but has not yet" in ended["deaf"].error
    assert {b: k.removed for b, k in ended.items()} == {"a": True, "deaf": False, "c": True}
    assert {b: Path(a.path).exists() for b, a in agents.items()} == {
        "a": False,
        "deaf": True,
        "c": False,
    }
    yard.wait(agents["deaf"].task, state="running")  # until its grace is over
    monkeypatch.undo()
    assert end(yard, agents["deaf"])["deaf"].removed
