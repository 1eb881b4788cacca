"""The relay behind real LiteLLM beside LiteLLM alone: the same requests, nodes and process."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import aiohttp

from _bench import finish, verdict
from _relay import UPSTREAM, Place, answers, fault
from fleet.testing.fake_node.node import FakeNode

TOP = Path(__file__).parents[1]
KEY = "sk-bench-of-the-relay"
REQUESTS = int(os.environ.get("REQUESTS", "600"))
SECONDS = "{:.2f} s"


def start(place: Place, relay: str, nodes: list[str], slots: int = 0) -> str:
    """LiteLLM with two names: `ours` is the relay, `plain` is the nodes themselves.

    `slots`: what LiteLLM itself is told that each of the nodes takes at once.
    """
    model = f"ollama_chat/{UPSTREAM}"
    listed = [("ours", relay), *(("plain", node) for node in nodes)]
    config = {
        "model_list": [
            {
                "model_name": name,
                "litellm_params": {"model": model, "api_base": url}
                | ({"max_parallel_requests": slots} if slots and name == "plain" else {}),
            }
            for name, url in listed
        ],
        "litellm_settings": {"drop_params": True},
        "general_settings": {"master_key": KEY},
        "router_settings": {"routing_strategy": "simple-shuffle", "num_retries": 2},
    }
    file = place.folder / f"litellm-{len(nodes)}-{time.time_ns()}.json"
    file.write_text(json.dumps(config))
    python = subprocess.run(
        [TOP / "scripts/litellm"], check=True, capture_output=True, text=True, timeout=900
    ).stdout.strip()
    with FakeNode() as free:
        port = free.port
    argv = [python, "-c", "from litellm import run_server; run_server()"]
    env = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}
    program = subprocess.Popen(
        [*argv, "--config", str(file), "--host", "127.0.0.1", "--port", str(port)],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    place.also(program)
    deadline = time.monotonic() + 180
    while not answers(f"http://127.0.0.1:{port}/health/liveliness"):
        assert time.monotonic() < deadline, "LiteLLM did not come up"
        time.sleep(0.2)
    return f"http://127.0.0.1:{port}"


async def ask(session: aiohttp.ClientSession, url: str, name: str, text: str, output: int) -> bool:
    body = {
        "model": name, "messages": [{"role": "user", "content": text}], "max_tokens": output,
    }  # fmt: skip
    headers = {"authorization": f"Bearer {KEY}"}
    try:
        async with session.post(f"{url}/v1/chat/completions", json=body, headers=headers) as answer:
            said = await answer.json()
            return answer.status == 200 and bool(said["choices"])
    except (aiohttp.ClientError, KeyError, ValueError):
        return False


async def many(url: str, name: str, count: int, at_once: int, output: int = 8) -> int:
    """How many of them failed."""
    gate = asyncio.Semaphore(at_once)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one(n: int) -> bool:
            async with gate:
                return await ask(session, url, name, f"hello {n}", output)

        return sum(not good for good in await asyncio.gather(*(one(n) for n in range(count))))


async def mixed(url: str, name: str, seed: int) -> float:
    """32 calls at once; the time until the last is done."""
    chance = random.Random(seed)
    sizes = [(chance.choice((200, 2000, 8000)), chance.choice((5, 20, 60))) for _ in range(32)]
    began = time.perf_counter()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        calls = [
            ask(session, url, name, f"{n} " + "x" * chars, output)
            for n, (chars, output) in enumerate(sizes)
        ]
        assert all(await asyncio.gather(*calls)), f"{name} lost one"
    return time.perf_counter() - began


def one_dead(place: Place) -> bool:
    nodes = [place.node(decode=2000, slots=8) for _ in range(2)]
    relay, _ = place.relay(*nodes, slots=8)
    url = start(place, relay, nodes)
    fault(nodes[0], refuse=3600)
    plain = asyncio.run(many(url, "plain", REQUESTS, 4))
    ours = asyncio.run(many(url, "ours", REQUESTS, 4))
    word = "ok" if ours == 0 else "OVER THE BAR"
    what = f"2 nodes, one dead, {REQUESTS} requests through LiteLLM"
    print(f"{what}: {ours} errors against {plain} of LiteLLM alone (bar: 0) {word}")
    return ours == 0


def one_slot(place: Place) -> list[bool]:
    """Four at once, each of a second, against the same four one after the other."""
    node = place.node(decode=50, slots=1, output=50)
    relay, _ = place.relay(node)
    url = start(place, relay, [node], slots=1)

    async def calls(name: str, at_once: int) -> tuple[int, float]:
        began = time.perf_counter()
        lost = await many(url, name, 4, at_once, output=50)
        return lost, time.perf_counter() - began

    asyncio.run(calls("ours", 1))
    _, serial = asyncio.run(calls("ours", 1))
    plain, plain_took = asyncio.run(calls("plain", 4))
    ours, took = asyncio.run(calls("ours", 4))
    word = "ok" if ours == 0 else "OVER THE BAR"
    what = "4 calls to a one-slot node through LiteLLM"
    beside = f"{plain} of LiteLLM alone in {plain_took:.2f} s"
    print(f"{what}: {ours} lost against {beside} (bar: 0) {word}")
    against = "4 at once through LiteLLM against serial"
    return [ours == 0, verdict(against, (SECONDS, took), (SECONDS, serial), at_most=1.05)]


def unequal(place: Place) -> bool:
    nodes = [place.node(prefill=4000 * n, decode=100 * n, slots=1) for n in (4, 2, 1)]
    relay, _ = place.relay(*nodes)
    url = start(place, relay, nodes)
    for seed in range(2):  # the relay learns how fast they are
        asyncio.run(mixed(url, "ours", seed))
    ours = min(asyncio.run(mixed(url, "ours", seed)) for seed in (5, 6))
    plain = min(asyncio.run(mixed(url, "plain", seed)) for seed in (5, 6))
    what = "LiteLLM alone against ours: 32 mixed calls, 3 nodes of unequal speed"
    return verdict(what, (SECONDS, plain), (SECONDS, ours), at_least=1.3)


ROWS = {"dead": one_dead, "slot": one_slot, "unequal": unequal}


def main() -> None:
    """`python bench/plain_litellm.py slot` measures that row alone."""
    with tempfile.TemporaryDirectory() as folder, Place(Path(folder)) as place:
        wanted = sys.argv[1:] or ROWS
        got = [ROWS[name](place) for name in wanted]
    finish(*(each for row in got for each in (row if isinstance(row, list) else [row])))


if __name__ == "__main__":
    main()
