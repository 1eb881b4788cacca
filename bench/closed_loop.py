"""Tasks, supervisor, relay and nodes together: what admission costs, and what a dying node costs."""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path

from _bench import finish, verdict
from _closed_loop import Loop
from _relay import Place, fault

TASKS = 20
REQUEST = 2.0  # seconds
SECONDS = "{:.1f} s"


def none_lost(what: str, loop: Loop, tasks: list[str]) -> bool:
    ends = loop.endings(tasks)
    good = ends["done"] == len(tasks) and ends["cost"] == 0
    print(f"{what}: {ends} {'ok' if good else 'LOST'}", flush=True)
    return good


def admission(loop: Loop) -> list[bool]:
    """In turns; a task that is admitted waits in the queue, one that is not as a process."""
    loop.scratch("warmup")
    took: dict[str, float] = {}
    verdicts = []
    for agent in ("free", "worker", "free", "worker"):
        tasks = loop.add(TASKS, agent)
        seconds = loop.run()
        verdicts.append(none_lost(f"{TASKS} tasks of {agent}, {seconds:.1f} s", loop, tasks))
        took[agent] = min(seconds, took.get(agent, seconds))
    print(f"  ideal: {TASKS * REQUEST / 2:.0f} s")
    ours, peer = (SECONDS, took["worker"]), (SECONDS, took["free"])
    return [*verdicts, verdict("admitted against unlimited", ours, peer, at_most=1.05)]


def dying(loop: Loop) -> list[bool]:
    """One node dies after a quarter of the work, and is back ten seconds later."""
    loop.scratch("warmup")
    loop.add(TASKS, "worker")
    alone = loop.run()
    away = 10.0
    tasks = loop.add(TASKS, "worker")
    killing = threading.Timer(6.0, fault, (loop.nodes[0],), {"refuse": away})
    killing.start()
    took = loop.run()
    killing.join()
    good = none_lost(f"{TASKS} tasks, a node dies for {away:g} s", loop, tasks)
    ideal = alone + away / 2  # the other node works on alone for so long
    return [good, verdict("against the ideal", (SECONDS, took), (SECONDS, ideal), at_most=1.2)]


ROWS = {"admission": admission, "dying": dying}


def main() -> None:
    """`python bench/closed_loop.py dying` measures that row alone."""
    verdicts = []
    for name in sys.argv[1:] or ROWS:
        with (
            tempfile.TemporaryDirectory() as folder,
            Place(Path(folder)) as place,
            Loop(Path(folder), place) as loop,
        ):
            verdicts += ROWS[name](loop)
    finish(*verdicts)


if __name__ == "__main__":
    main()
