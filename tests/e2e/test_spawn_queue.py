"""The queue of agents under many who ask at once: nothing lost, nothing twice, never too many."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from fleet.app import App
from tests.e2e.scratch import Scratch
from tests.e2e.served import Served

MOST = 3
WORDS = ("low", "normal", "high", "critical")


@pytest.fixture(scope="module")
def scratch(tmp_path_factory):
    return Scratch(tmp_path_factory.mktemp("queue"))


@pytest.fixture(scope="module")
def queued(scratch):
    """Twenty who ask at once, each of them twice: what each got, by its number."""
    served = Served(scratch, "--no-run")
    token = served.token()
    swarm = served.ask("POST", "/swarms", {"name": "Builders", "maxAgents": MOST}, token=token)[1]
    first = served.ask("POST", "/spawn-queue", {"task": "say first"}, token=token)[1]["id"]

    def ask(number: int):
        key = {"Idempotency-Key": f"spawn-{number}"}
        if number % 5 == 0:
            path = "/orchestrate/spawn"
            asked = {"handle": f"agent-{number}", "initialPrompt": f"say {number}"}
        else:
            path, asked = "/spawn-queue", {"task": f"say {number}", "priority": WORDS[number % 4]}
            asked |= {"dependsOn": [first]} if number % 4 == 3 else {}
        said = served.ask("POST", path, asked | {"swarmId": swarm["id"]}, token=token, headers=key)
        assert said[0] == 200, said[1]
        return number, said[1]["id"]

    with ThreadPoolExecutor(20) as many:
        found = list(many.map(ask, [*range(20), *range(20)]))
    served.end()
    return first, found


@pytest.fixture(scope="module")
def story(scratch, queued):
    """What happened, in order, once there is a supervisor with room for more than the swarm may."""
    scratch("run", "--once", "--max", str(2 * MOST))
    store = App(scratch.repo, scratch.env).store
    seen = [(e.type, e.task) for e in store.events(limit=10_000)]
    store.close()
    return seen


def test_who_asks_twice_with_one_key_gets_one_agent(queued):
    _, found = queued
    assert len(set(found)) == 20
    assert len({task for _, task in found}) == 20


def test_every_agent_runs_once_and_never_more_than_the_swarm_may(queued, story):
    tasks = {task for _, task in queued[1]}
    live, most = set(), 0
    for kind, task in story:
        if task in tasks and kind == "run.claimed":
            live.add(task)
        if kind == "run.ended":
            live.discard(task)
        most = max(most, len(live))
    assert most == MOST
    started = [task for kind, task in story if kind == "run.claimed"]
    assert sorted(started) == sorted({*tasks, queued[0]})


def test_the_most_urgent_start_first_and_none_before_what_it_waits_for(queued, story):
    first, found = queued
    urgency = {t: 2 if n % 5 == 0 else (3, 2, 1, 0)[n % 4] for n, t in found}
    waits = {task for n, task in found if n % 5 and n % 4 == 3}
    done = story.index(("task.settled", first))
    started = [(at, task) for at, (kind, task) in enumerate(story) if kind == "run.claimed"]
    assert all(at > done for at, task in started if task in waits)
    others = [urgency[task] for _, task in started if task in urgency and task not in waits]
    assert others == sorted(others)
