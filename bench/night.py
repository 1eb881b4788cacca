"""A night: relay, gateway and nodes are killed at random while 30 tasks work.

`python bench/night.py 10`: for ten minutes, which is also the default. All tasks must end well, and
none may lose its only attempt to what was killed.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from _bench import finish
from _closed_loop import Loop
from _relay import Place, fault

TASKS = 30
PAUSE = (4.0, 12.0)  # seconds between two blows
AWAY = (2.0, 15.0)  # seconds that a node is gone
AFTER = 900.0  # seconds that the rest may take when nobody kills any more


def strike(loop: Loop, chance: random.Random) -> str:
    """Kill one of them; its name."""
    victim = chance.choice(("relay", "gateway", "a", "b"))
    if victim in "ab":
        with suppress(OSError):  # it is away already
            fault(loop.nodes["ab".index(victim)], refuse=chance.uniform(*AWAY))
        return victim
    services = loop.scratch.data("gateway", "status")["services"]
    pid = next(each["pid"] for each in services if each["name"] == victim)
    with suppress(ProcessLookupError, TypeError):  # it is dead already
        os.kill(pid, signal.SIGKILL)
    return victim


def main() -> None:
    minutes = float(sys.argv[1]) if sys.argv[1:] else 10.0
    seed = int(os.environ.get("SEED", time.time_ns() % 10_000))
    chance, blows = random.Random(seed), {}
    requests = max(1, round(minutes * 1.5))  # of two seconds: about half of what two nodes could do
    with (
        tempfile.TemporaryDirectory() as folder,
        Place(Path(folder)) as place,
        Loop(Path(folder), place, requests=requests) as loop,
    ):
        tasks = loop.add(TASKS, "worker")
        began = time.monotonic()
        loop.scratch("up", timeout=300)
        while time.monotonic() < began + minutes * 60:
            victim = strike(loop, chance)
            blows[victim] = blows.get(victim, 0) + 1
            time.sleep(chance.uniform(*PAUSE))
        while (ends := loop.endings(tasks))["done"] < TASKS:
            if time.monotonic() > began + minutes * 60 + AFTER:
                break
            time.sleep(1)
        good = ends["done"] == TASKS and ends["cost"] == 0
        took = time.monotonic() - began
        print(f"seed {seed}, {minutes:g} minutes, killed {blows}; all over after {took:.0f} s")
        print(f"{TASKS} tasks of {requests} requests: {ends} {'ok' if good else 'LOST'}")
    finish(good)


if __name__ == "__main__":
    main()
