"""Thousands of interleavings of the real supervisor with crashes. A failing seed is printed;

    SEED=1234 pytest tests/chaos/test_simulated_supervisors.py -k replay

plays it again.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fleet.domain.errors import Unavailable
from fleet.domain.fleet import Gateway
from fleet.domain.task import Limits, Spec, Task, TaskState
from fleet.ports import Pulse, Put
from fleet.testing.fakes import FakeMachine, FakeNodes
from tests.chaos.simulator import Simulation

if TYPE_CHECKING:
    from fleet.domain.fleet import Node
    from fleet.domain.run import Run

SEEDS = int(os.environ.get("SEEDS", "600"))
BATCH = 50
STARTS = [
    pytest.param(start, marks=() if start < 2 * BATCH else pytest.mark.slow)
    for start in range(0, SEEDS, BATCH)
]


@pytest.mark.parametrize("start", STARTS)
def test_one_host_loses_nothing_whatever_crashes(start):
    for seed in range(start, start + BATCH):
        Simulation(seed).run()


@pytest.mark.parametrize("start", STARTS)
def test_two_hosts_on_one_store_lose_nothing_whatever_crashes_or_sleeps(start):
    for seed in range(100_000 + start, 100_000 + start + BATCH):
        Simulation(seed, hosts=2).run()


@pytest.mark.parametrize(
    ("seed", "third"),
    [
        pytest.param(seed, third, marks=pytest.mark.slow if seed or third else ())
        for seed in range(5)
        for third in range(3)
    ],
)
def test_a_crash_before_and_after_every_single_port_call_is_survived(seed, third):
    """The quick form crashes at every third of them."""
    calm = Simulation(seed, tasks=3, crash_at=-1)
    calm.run(steps=20)
    moments = calm.crasher.moment
    assert moments > 100
    for moment in range(1 + third, moments + 1, 3):
        Simulation(seed, tasks=3, crash_at=moment).run(steps=20)


def task(name: str, **spec) -> Task:
    return Task(
        name, 0, TaskState.OPEN, "Do it", prompt="do it", project="/project", author="ann",
        created_at=1, spec=Spec(cwd="/project", **spec),
    )  # fmt: skip


class RisingNodes(FakeNodes):
    """They come up between the first look and the second."""

    def pulse(self, node: Node) -> Pulse:
        self.down = {} if self.down else {node.name: "connection refused"}
        return super().pulse(node)


def test_a_node_that_comes_up_while_tasks_are_looked_at_lets_none_overtake_another():
    """Both want its one slot."""
    simulation = Simulation(0, tasks=0, crash_at=-1)
    (host,) = simulation.hosts
    host.nodes = RisingNodes()
    simulation.store.commit([Put(task("t-1", agent="small")), Put(task("t-2", agent="small"))], [])
    while not simulation.store.live_runs():
        simulation._step(host)
    assert [run.task for run in simulation.store.live_runs()] == ["t-1"]


def test_a_task_waits_for_a_model_that_the_relay_has_shut_off_and_costs_no_run():
    simulation = Simulation(0, tasks=0, crash_at=-1)
    (host,) = simulation.hosts
    host.nodes.shut = {"m@http://node/small": "shut off: no memory"}
    simulation.store.commit([Put(task("t-1", agent="small"))], [])
    for _ in range(4):
        simulation._step(host)
    assert simulation.store.runs("t-1") == []
    (row,) = simulation.store.hosts().values()
    assert row.down == ("m@http://node/small shut off: no memory",)
    host.nodes.shut = {}
    while not simulation.store.live_runs():
        simulation._step(host)
    (row,) = simulation.store.hosts().values()
    assert row.down == ()


def test_a_node_may_be_declared_with_the_address_of_the_gateway():
    """Such as a gateway of one's own that answers for every model."""
    simulation = Simulation(0, tasks=0, crash_at=-1)
    (host,) = simulation.hosts
    fleet, gateway = simulation.world.fleet, Gateway(host="node", port=4000)
    (serving,) = fleet.models["one"].servings
    there = serving._replace(node=serving.node._replace(endpoint="http://node:4000"))
    model = fleet.models["one"]._replace(servings=(there,))
    agents = {"small": fleet.agents["small"]._replace(model=model)}
    simulation.world.fleet = fleet._replace(
        gateway=gateway, nodes={"small": there.node}, models={"one": model}, agents=agents
    )
    simulation.store.commit([Put(task("t-1", agent="small"))], [])
    while not simulation.store.live_runs():
        simulation._step(host)
    assert [run.task for run in simulation.store.live_runs()] == ["t-1"]


def test_a_node_that_no_task_waits_for_any_more_is_not_said_to_be_down():
    """Nobody looks at it then, so nobody would see that it is back."""
    simulation = Simulation(0, tasks=0, crash_at=-1)
    (host,) = simulation.hosts
    host.nodes.down = {"small": "connection refused"}
    simulation.store.commit([Put(task("t-1", agent="small"))], [])
    simulation._step(host)
    (row,) = simulation.store.hosts().values()
    assert row.down == ("http://node/small connection refused",)
    waiting = simulation.store.task("t-1")
    simulation.store.commit([Put(replace(waiting, state=TaskState.CANCELLED))], [])
    simulation._step(host)
    (row,) = simulation.store.hosts().values()
    assert row.down == ()


def test_a_store_that_does_not_answer_while_a_run_is_prepared_costs_it_nothing():
    """It has one attempt, as agents in terminals have."""
    simulation = Simulation(0, tasks=0, crash_at=-1)
    (host,) = simulation.hosts
    simulation.store.commit([Put(task("t-1", limits=Limits(attempts=1)))], [])
    real, silent = simulation.store.runs, iter(range(8))

    def runs(task_id: str) -> list[Run]:
        if next(silent, None) is not None:
            raise Unavailable("The store does not answer.")
        return real(task_id)

    simulation.store.runs = runs
    for _ in range(16):
        simulation._step(host)
        host.machine.tick()
    first = simulation.store.run("t-1.1")
    assert first.started_at, first.outcome


@pytest.mark.skipif("SEED" not in os.environ, reason="SEED names the seed to replay")
def test_replay():
    seed = int(os.environ["SEED"])
    Simulation(seed, hosts=2 if seed >= 100_000 else 1).run()


@pytest.mark.parametrize("shared", [False, True])
def test_a_task_whose_place_cannot_be_planned_holds_up_none_of_the_others(shared):
    simulation = Simulation(1, tasks=0, crash_at=-1)
    simulation.shared, simulation.crasher.meanwhile = shared, lambda: None
    (host,) = simulation.hosts
    plan = host.checkout.plan

    def odd(site):
        if site.task.id == "t-1":
            raise ValueError("something that nobody thought of")
        return plan(site)

    host.checkout.plan = odd
    simulation.store.commit([Put(task(f"t-{number}")) for number in (1, 2, 3)], [])
    for _ in range(5):
        simulation._step(host)
    places = {n: simulation.store.runs(f"t-{n}")[0].workspace for n in (1, 2, 3)}
    assert places[1] is None
    assert host.checkout.made == {places[2].path, places[3].path}
    assert "nobody thought of" in host.supervisor.trouble["t-1.1"]


@pytest.mark.parametrize("shared", [False, True])
def test_what_starts_at_once_is_claimed_in_one_call(shared):
    simulation = Simulation(1, tasks=0, crash_at=-1)
    simulation.shared, simulation.crasher.meanwhile = shared, lambda: None
    claim, counts = simulation.store.claim, []
    simulation.store.claim = lambda claims: counts.append(len(claims)) or claim(claims)
    simulation.store.commit([Put(task(f"t-{number}")) for number in (1, 2, 3)], [])
    simulation._step(simulation.hosts[0])
    assert [count for count in counts if count] == [3]
    assert all(simulation.store.runs(f"t-{number}")[0].workspace for number in (1, 2, 3))


def test_a_slot_that_is_free_again_is_taken_in_the_step_that_ended_its_run():
    """Before anybody is told of the end, which may write files."""
    simulation = Simulation(0, tasks=0, crash_at=-1)
    simulation.crasher.meanwhile = lambda: None
    (host,) = simulation.hosts
    host.machine = FakeMachine(simulation.clock, lambda _run, _process: None)
    simulation.store.commit([Put(task(f"t-{n}", agent="small")) for n in (1, 2)], [])
    for _ in range(5):
        simulation._step(host)
        host.machine.tick()
    assert [run.id for run in simulation.store.live_runs()] == ["t-1.1"]
    host.machine.finish("t-1.1", 0)
    for _ in range(5):
        if simulation.store.run("t-1.1").live:
            simulation._step(host)
    assert [run.id for run in simulation.store.live_runs()] == ["t-2.1"]
