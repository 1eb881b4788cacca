"""Thousands of interleavings of the real supervisor with crashes. A failing seed is printed;

    SEED=1234 pytest tests/chaos/test_simulated_supervisors.py -k replay

plays it again.
"""

from __future__ import annotations

import os

import pytest
from simulator import Simulation

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


@pytest.mark.skipif("SEED" not in os.environ, reason="SEED names the seed to replay")
def test_replay():
    seed = int(os.environ["SEED"])
    Simulation(seed, hosts=2 if seed >= 100_000 else 1).run()
