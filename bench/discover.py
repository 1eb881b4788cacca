"""Ten nodes of which five hang: `fleet discover`, against asking one after the other.

The peer is what the earlier tool did: each node in its turn, for five seconds at most.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from http.client import HTTPConnection
from pathlib import Path

from _bench import finish, verdict
from fleet.testing.fake_node.node import FakeNode

NODES, HANGING = 10, 5
TIMES = 5
PATIENCE = 5.0  # seconds of the peer for one node
LIMIT = 3.0
FLEET = str(Path(sys.executable).with_name("fleet"))


def write(folder: Path, nodes: list[FakeNode]) -> None:
    declared = "".join(f'  n{i}: {{endpoint: "{node.url}"}}\n' for i, node in enumerate(nodes))
    (folder / "fleet.yaml").write_text(f"project: {{name: bench}}\nnodes:\n{declared}")


def discover(folder: Path) -> float:
    env = os.environ | {"FLEET_HOME": str(folder / "home")}
    begun = time.perf_counter()
    done = subprocess.run(
        [FLEET, "discover", "--config", "fleet.yaml"],
        cwd=folder, env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    took = time.perf_counter() - begun
    assert done.stdout.count("online") == NODES - HANGING, done.stdout
    return took


def one_by_one(nodes: list[FakeNode]) -> float:
    begun = time.perf_counter()
    for node in nodes:
        connection = HTTPConnection("127.0.0.1", node.port, timeout=PATIENCE)
        with suppress(TimeoutError):
            connection.request("GET", "/api/tags")
            connection.getresponse().read()
        connection.close()
    return time.perf_counter() - begun


def main() -> None:
    nodes = [FakeNode(hang=i < HANGING).start() for i in range(NODES)]
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write(folder, nodes)
            ours = statistics.median(discover(folder) for _ in range(TIMES))
        peer = one_by_one(nodes)
    finally:
        for node in nodes:
            node.stop()
    what = f"discover, {NODES} nodes, {HANGING} hang"
    seconds = "{:.2f} s"
    finish(
        verdict(what, (seconds, ours), ("the limit of {:g} s", LIMIT), at_most=1),
        verdict(what, (seconds, ours), (f"one by one {seconds}", peer), at_most=0.2),
    )


if __name__ == "__main__":
    main()
