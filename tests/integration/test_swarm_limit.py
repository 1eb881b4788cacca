"""A real supervisor starts only so many agents of a swarm, whatever room there is."""

from fleet.operations.tasks.change import AddTask
from fleet.operations.team.swarms import CreateSwarm, ShowSwarm


def put_in(supervised, swarm: str, *script: str) -> str:
    asked = AddTask(script[0], "\n".join(script), str(supervised.repo), parent=swarm)
    return supervised.client.call(asked).id


def test_a_swarm_has_no_more_agents_than_it_may(supervised):
    swarm = supervised.client.call(CreateSwarm("Builders", 2, project=str(supervised.repo))).id
    tasks = [put_in(supervised, swarm, supervised.held(), "text Done") for _ in range(5)]
    supervised.start("--max", "5")
    assert supervised.most_at_once(tasks, at_least=2) == 2
    assert all(not s.holders for s in supervised.store.slots().values())


def test_a_task_that_waits_for_its_swarm_says_so(supervised):
    swarm = supervised.client.call(CreateSwarm("Builders", 1, project=str(supervised.repo))).id
    first, second = (put_in(supervised, swarm, "sleep 60") for _ in range(2))
    supervised.start("--max", "5")
    supervised.running(first)
    assert f"swarm {swarm} is full (1/1)" in supervised.type("show", second).stdout
    ended = supervised.type("swarm-kill", swarm)
    assert ended.returncode == 0, ended.stderr
    assert [supervised.state(t) for t in (first, second)] == ["cancelled"] * 2
    assert supervised.client.call(ShowSwarm(swarm)).agents == 0
