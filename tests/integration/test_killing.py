"""Many agents are ended and cleared away at once: what stops one stops none of the others."""

from __future__ import annotations

from pathlib import Path

import pytest

import fleet.client.local
from fleet.cli.agents.calls import kill
from fleet.operations.tasks.at_work import ListAgents
from fleet.operations.tasks.change import CancelTask
from tests.wait import until


@pytest.fixture
def started(supervised):
    """Agents with these prompts, by their branches, as `fleet list` shows them."""

    def start(*pairs: str):
        done = supervised.type("multi", "--headless", *pairs)
        assert done.returncode == 0, done.stderr
        return {a.branch: a for a in supervised.client.call(ListAgents(str(supervised.repo)))}

    return start


def end(supervised, *agents):
    return {k.branch: k for k in kill(supervised.client, agents, delete_branch=False)}


def test_one_that_somebody_else_cancels_meanwhile_is_cleared_away_like_the_others(
    supervised, started
):
    agents = started("a:sleep 30", "b:sleep 30", "c:sleep 30")
    supervised.client.call(CancelTask(agents["b"].task))
    ended = end(supervised, *agents.values())
    assert {b: (k.status, k.removed, k.error) for b, k in ended.items()} == dict.fromkeys(
        agents, ("cancelled", True, "")
    )


def test_one_that_does_not_end_in_time_is_named_and_stays(supervised, started, monkeypatch):
    agents = started("a:sleep 30", "deaf:ignore-term\nsay deaf\nsleep 9", "c:sleep 30")
    until(lambda: "deaf" in supervised.transcript(agents["deaf"].task))
    monkeypatch.setattr(fleet.client.local, "RUN_END_SECONDS", 1.5)
    ended = end(supervised, *agents.values())
    assert "was asked to stop, but has not ended yet" in ended["deaf"].error
    assert {b: k.removed for b, k in ended.items()} == {"a": True, "deaf": False, "c": True}
    assert {b: Path(a.path).exists() for b, a in agents.items()} == {
        "a": False,
        "deaf": True,
        "c": False,
    }
    supervised.wait(agents["deaf"].task, state="running")  # until its grace is over
    monkeypatch.undo()
    assert end(supervised, agents["deaf"])["deaf"].removed
