"""A real supervisor starts only so many agents of a swarm, whatever room there is."""

import time

from fleet.operations.tasks.change import AddTask
from fleet.operations.team.swarms import CreateSwarm, ShowSwarm


def put_in(yard, swarm: str, *script: str) -> str:
    asked = AddTask(script[0], "\n".join(script), str(yard.repo), parent=swarm)
    return yard.client.call(asked).id


def test_a_swarm_has_no_more_agents_than_it_may(yard):
    swarm = yard.client.call(CreateSwarm("Builders", 2, project=str(yard.repo))).id
    tasks = [put_in(yard, swarm, "sleep 0.4", "text Done") for _ in range(5)]
    yard.start("--max", "5")
    most, begun = 0, time.monotonic()
    while any(yard.state(task) != "done" for task in tasks):
        assert time.monotonic() - begun < 60, yard.said()
        most = max(most, len(yard.store.live_runs()))
        time.sleep(0.02)
    assert most == 2
    assert all(not s.holders for s in yard.store.slots().values())


def test_a_task_that_waits_for_its_swarm_says_so(yard):
    swarm = yard.client.call(CreateSwarm("Builders", 1, project=str(yard.repo))).id
    first, second = (put_in(yard, swarm, "sleep 60") for _ in range(2))
    yard.start("--max", "5")
    yard.running(first)
    assert f"swarm {swarm} is full (1/1)" in yard.type("show", second).stdout
    ended = yard.type("swarm-kill", swarm)
    assert ended.returncode == 0, ended.stderr
    assert [yard.state(t) for t in (first, second)] == ["cancelled"] * 2
    assert yard.client.call(ShowSwarm(swarm)).agents == 0
