"""A home with a queue, nodes, relay and gateway, and tasks whose agent asks its model and ends."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

TOP = Path(__file__).parents[1]
sys.path.insert(0, str(TOP))  # `tests`

from _relay import UPSTREAM, Place  # noqa: E402  # the path comes first
from fleet.app import App  # noqa: E402
from tests.e2e.scratch import Scratch  # noqa: E402
from tests.free_ports import free_ports  # noqa: E402
from tests.litellm_stand_in import litellm_stand_in  # noqa: E402

REAL = os.environ.get("LITELLM", "")  # the Python of a real LiteLLM; else a stand-in forwards
ASK = """
import json, os, sys, urllib.request
url, key, count, agent = sys.argv[1:5]
for number in range(int(count)):
    words = f"{os.environ['FLEET_RUN_ID']} {number}"
    body = {"model": "coder", "messages": [{"role": "user", "content": words}], "max_tokens": 100}
    headers = {
        "authorization": "Bearer " + open(key).read().strip(), "content-type": "application/json",
        "x-fleet-agent": agent, "x-fleet-run": os.environ["FLEET_RUN_ID"],
    }
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=300) as answer:
        assert json.load(answer)["choices"]
"""
FLEET = """\
project: {{name: loop, gateway: {{port: {port}}}}}
nodes:
  a: {{endpoint: "{a}"}}
  b: {{endpoint: "{b}"}}
models:
  coder: {{servings: {{a: "{upstream}", b: "{upstream}"}}, context: 8192}}
agents:
  worker: {{coder: command, model: coder, command: {worker}}}
  free: {{coder: command, command: {free}}}
"""


class Loop:
    """Two nodes of one slot, a request of two seconds. `worker` is admitted by slots, `free` is not."""

    def __init__(self, folder: Path, place: Place, *, requests: int = 1) -> None:
        self.scratch = Scratch(folder)
        self.scratch.env["FLEET_MAX_CONCURRENT"] = "20"
        python = REAL or litellm_stand_in(folder / "own", "1.106.2")
        self.scratch.env["FLEET_GATEWAY_PYTHON"] = str(python)
        self.nodes = [place.node(decode=50, slots=1, output=100, load=0.5) for _ in range(2)]
        self.port = free_ports()
        script = folder / "ask.py"
        script.write_text(ASK)
        url = f"http://127.0.0.1:{self.port}/v1/chat/completions"
        argv = [sys.executable, str(script), url, str(self.scratch.home / "gateway.key")]
        commands = {n: json.dumps([*argv, str(requests), n]) for n in ("worker", "free")}
        a, b = self.nodes
        text = FLEET.format(port=self.port, a=a, b=b, upstream=UPSTREAM, **commands)
        (self.scratch.repo / "fleet.yaml").write_text(text)
        self.scratch("trust")
        self.scratch("gateway", "start", timeout=200)

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.scratch.type("down", "--agents")

    def add(self, count: int, agent: str) -> list[str]:
        """One attempt each: whatever costs one fails the task."""
        words = ("--agent", agent, "--attempts", "1")
        return [self.scratch.data("add", f"Ask {n}", *words)["id"] for n in range(count)]

    def run(self, *words: str) -> float:
        """Seconds until the queue is empty."""
        began = time.perf_counter()
        self.scratch.type("run", "--once", "--max", "20", *words, timeout=900)
        return time.perf_counter() - began

    def endings(self, tasks: list[str]) -> dict[str, int]:
        """How many runs of these tasks ended how; and under `cost` the attempts that were lost."""
        store = App(self.scratch.repo, self.scratch.env).store
        counts: dict[str, int] = {"cost": sum(store.task(t).tally.failures for t in tasks)}
        counts["done"] = sum(str(store.task(t).state) == "done" for t in tasks)
        for task in tasks:
            for run in store.runs(task):
                ending = str(run.outcome.ending) if run.outcome else str(run.state)
                counts[ending] = counts.get(ending, 0) + 1
        return counts
