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
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import aiohttp

from _bench import finish, verdict
from _relay import ALSO, MODEL, UPSTREAM, Place, answers, fault
from fleet.testing.fake_node.node import FakeNode

if TYPE_CHECKING:
    from collections.abc import Callable

TOP = Path(__file__).parents[1]
sys.path.insert(0, str(TOP))  # `tests.real.llama_server`
KEY = "sk-bench-of-the-relay"
OLLAMA = f"ollama_chat/{UPSTREAM}"
BAD = "llama3.3:70b"
ROUNDS = int(os.environ.get("ROUNDS", "2"))
NOISE = 0.05  # of two runs of the same thing on a quiet machine
MOST_NOISE = 0.3  # more than this is no noise, however much LiteLLM's own runs differ
REQUESTS = int(os.environ.get("REQUESTS", "200"))
SECONDS = "{:.2f} s"


def start(
    place: Place, relay: str, nodes: list[str], slots: int = 0, model: str = OLLAMA, also: str = ""
) -> str:
    """LiteLLM with two names: `ours` is the relay, `plain` is the nodes themselves.

    `slots`: what LiteLLM itself is told that each of the nodes takes at once. `also`: a second
    model of the first node, `ours-also` and `plain-also`.
    """
    listed = [("ours", relay, model), *(("plain", node, model) for node in nodes)]
    if also:
        relayed = relay.removesuffix(MODEL) + ALSO
        listed += [("ours-also", relayed, also), ("plain-also", nodes[0], also)]
    more = {"api_key": "none"} if model != OLLAMA else {}
    config = {
        "model_list": [
            {
                "model_name": name,
                "litellm_params": {"model": named, "api_base": url, **more}
                | ({"max_parallel_requests": slots} if slots and name == "plain" else {}),
            }
            for name, url, named in listed
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


PATIENCE = aiohttp.ClientTimeout(total=30)  # of a client; what comes later is lost


async def ask(session: aiohttp.ClientSession, url: str, name: str, text: str, output: int) -> bool:
    body = {
        "model": name, "messages": [{"role": "user", "content": text}], "max_tokens": output,
    }  # fmt: skip
    headers = {"authorization": f"Bearer {KEY}"}
    try:
        post = session.post(
            f"{url}/v1/chat/completions", json=body, headers=headers, timeout=PATIENCE
        )
        async with post as answer:
            said = await answer.json()
            return answer.status == 200 and bool(said["choices"])
    except (aiohttp.ClientError, TimeoutError, KeyError, ValueError):
        return False


async def many(url: str, name: str, count: int, at_once: int, output: int = 8) -> int:
    """How many of them failed."""
    gate = asyncio.Semaphore(at_once)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one(n: int) -> bool:
            async with gate:
                return await ask(session, url, name, f"hello {n}", output)

        return sum(not good for good in await asyncio.gather(*(one(n) for n in range(count))))


def mixed(seed: int, count: int = 32):
    """Calls of several sizes, all at once."""

    async def load(url: str, name: str) -> tuple[int, float]:
        chance = random.Random(seed)
        sizes = [
            (chance.choice((200, 2000, 8000)), chance.choice((5, 20, 60))) for _ in range(count)
        ]
        began = time.perf_counter()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
            calls = [
                ask(session, url, name, f"{n} " + "x" * chars, output)
                for n, (chars, output) in enumerate(sizes)
            ]
            lost = sum(not good for good in await asyncio.gather(*calls))
        return lost, (time.perf_counter() - began) / max(1, count - lost)

    return load


def unequal(place: Place) -> bool:
    nodes = [place.node(prefill=4000 * n, decode=100 * n, slots=1) for n in (4, 2, 1)]
    relay, _ = place.relay(*nodes)
    url = start(place, relay, nodes)
    for seed in range(2):  # the relay learns how fast they are
        asyncio.run(mixed(seed)(url, "ours"))
    return both("32 mixed calls, 3 nodes of speeds 4:2:1", url, mixed(5))


def one_slot(place: Place) -> list[bool]:
    """Also against the same four one after the other: a queue costs nothing."""
    node = place.node(decode=50, slots=1, output=50)
    relay, _ = place.relay(node)
    url = start(place, relay, [node], slots=1)
    asyncio.run(many(url, "ours", 1, 1, 50))
    serial = asyncio.run(of_many(4, 1)(url, "ours"))[1]
    good = both("4 calls to a one-slot node, of which LiteLLM knows", url, of_many(4, 4))
    at_once = asyncio.run(of_many(4, 4)(url, "ours"))[1]
    what = "4 at once through LiteLLM against serial, each"
    return [good, verdict(what, (SECONDS, at_once), (SECONDS, serial), at_most=1.05)]


async def end_of_stream(session: aiohttp.ClientSession, url: str, name: str, output: int) -> str:
    """`whole`, or `told` when the client was told that it is not, else `silent`."""
    body = {
        "model": name, "messages": [{"role": "user", "content": "hello"}], "max_tokens": output,
        "stream": True,
    }  # fmt: skip
    pieces = 0
    try:
        post = session.post(
            f"{url}/v1/chat/completions",
            json=body,
            headers={"authorization": f"Bearer {KEY}"},
            timeout=PATIENCE,
        )
        async with post as answer:
            if answer.status != 200:
                return "told"
            async for line in answer.content:
                if b'"error"' in line:
                    return "told"
                pieces += b'"content":"' in line.replace(b" ", b"")
    except (aiohttp.ClientError, TimeoutError):
        return "told"
    return "whole" if pieces >= output else "silent"


def streams(count: int, at_once: int, output: int = 20):
    """Lost is a reply that ends early and looks whole; the seconds are for each that is whole."""

    async def load(url: str, name: str) -> tuple[int, float]:
        gate = asyncio.Semaphore(at_once)
        began = time.perf_counter()
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def one() -> str:
                async with gate:
                    return await end_of_stream(session, url, name, output)

            ends = await asyncio.gather(*(one() for _ in range(count)))
        return ends.count("silent"), (time.perf_counter() - began) / max(1, ends.count("whole"))

    return load


def beside(what: str, ours: list[Load], plain: list[Load]) -> bool:
    """Requests lost, and seconds for each that was answered: the best of the rounds.

    Behind is who loses any, for a second try saves each, or is slower by more than LiteLLM's own
    rounds differ.
    """
    lost, its_lost = (sum(each.lost for each in loads) for loads in (ours, plain))
    mine, its = (min(each.seconds for each in loads) for loads in (ours, plain))
    spread = max(each.seconds for each in plain) / its - 1 if its else 0.0
    noise = min(max(NOISE, spread), MOST_NOISE)
    ratio = mine / its if its else 1.0
    good = lost == 0 and ratio <= 1 + noise
    word = "BEHIND" if not good else "ahead" if ratio < 1 - noise or lost < its_lost else "equal"
    print(
        f"| {what} | {lost} lost, {mine:.3f} s | {its_lost} lost, {its:.3f} s "
        f"| {ratio:.2f} x (noise {noise:.0%}) | {word} |",
        flush=True,
    )
    return good


def both(what: str, url: str, load, wear=lambda: None) -> bool:
    """`load` is asked of one name, in turns; `wear` breaks what is to break."""
    results: dict[str, list[Load]] = {"plain": [], "ours": []}
    for _ in range(ROUNDS):
        for name, loads in results.items():
            wear()
            loads.append(Load(*asyncio.run(load(url, name))))
    return beside(what, results["ours"], results["plain"])


class Load(NamedTuple):
    """`seconds`: for each request that was answered."""

    lost: int
    seconds: float


def of_many(count: int, at_once: int, output: int = 50):
    async def load(url: str, name: str) -> tuple[int, float]:
        began = time.perf_counter()
        lost = await many(url, name, count, at_once, output)
        return lost, (time.perf_counter() - began) / max(1, count - lost)

    return load


def slots(place: Place) -> bool:
    nodes = [place.node(decode=100, slots=4, output=50) for _ in range(2)]
    relay, _ = place.relay(*nodes, slots=4)
    return both("4 callers, 2 nodes of 4 slots", start(place, relay, nodes), of_many(16, 4))


def talks(count: int, *, turns: int = 6, size: int = 300):
    """The mean time to a whole short reply, in conversations that share a system prompt.

    `size`: sentences of that prompt; a reply of the agent's has two thirds as many words.
    """

    async def talk(session: aiohttp.ClientSession, url: str, name: str, who: int) -> list[float]:
        messages = [{"role": "system", "content": "You are a careful engineer. " * size}]
        messages.append({"role": "user", "content": f"{name} {who} begins"})
        times = []
        for turn in range(turns):
            began = time.perf_counter()
            body = {"model": name, "messages": messages, "max_tokens": 5}
            headers = {"authorization": f"Bearer {KEY}"}
            post = session.post(f"{url}/v1/chat/completions", json=body, headers=headers)
            async with post as answer:
                times.append(time.perf_counter() - began if answer.status == 200 else -1.0)
            messages += [
                {"role": "assistant", "content": f"{who} {turn} " * (size * 2 // 3)},
                {"role": "user", "content": f"{who} goes on {turn}"},
            ]
            await asyncio.sleep(1.0)
        return times

    async def load(url: str, name: str) -> tuple[int, float]:
        async with aiohttp.ClientSession() as session:
            talking = []
            for who in range(count):
                talking.append(asyncio.create_task(talk(session, url, name, who)))
                await asyncio.sleep(1.7 / count)
            times = [each for one in await asyncio.gather(*talking) for each in one]
        good = [each for each in times if each >= 0]
        return len(times) - len(good), sum(good) / len(good)

    return load


def talking(count: int) -> Callable[[Place], bool]:
    def row(place: Place) -> bool:
        nodes = [place.node(prefill=3000, decode=100, slots=1, output=5) for _ in range(2)]
        relay, _ = place.relay(*nodes)
        what = f"{count} conversations on 2 nodes, mean time to a reply"
        return both(what, start(place, relay, nodes), talks(count))

    return row


def llama(what: str, load, *, slots: int, kill: bool = False) -> Callable[[Place], bool]:
    """On real llama.cpp, two nodes of so many slots; few calls and short replies, on one core each.

    `kill`: the first node is gone before the calls.
    """

    def row(place: Place) -> bool:
        from tests.real.llama_server import NAME, LlamaServer

        with ExitStack() as stack:
            servers = [LlamaServer(slots=slots, context=8192 * slots) for _ in range(2)]
            nodes = [stack.enter_context(server).url for server in servers]
            relay, _ = place.relay(*nodes, slots=slots, kind="llamacpp", upstream=NAME)
            urls = [f"{node}/v1" for node in nodes]
            url = start(place, f"{relay}/v1", urls, model=f"hosted_vllm/{NAME}")
            asyncio.run(many(url, "ours", 2, 2))
            asyncio.run(many(url, "plain", 2, 2))
            if kill:
                servers[0].__exit__()
            return both(what, url, load)

    return row


def bad(place: Place) -> bool:
    """A node has a model that it cannot load and a good one, which another node has, too."""
    nodes = [
        place.node(decode=100, slots=2, output=20, also=BAD),
        place.node(decode=100, slots=2, output=20),
    ]
    relay, _ = place.relay(*nodes, slots=2, also=BAD)
    url = start(place, relay, nodes, also=f"ollama_chat/{BAD}")
    fault(nodes[0], broken={BAD: "model requires more system memory"})

    async def load(url: str, name: str) -> tuple[int, float]:
        asking = asyncio.create_task(many(url, f"{name}-also", 6, 1, 20))
        result = await of_many(20, 2, 20)(url, name)
        await asking
        return result

    return both("the good model beside a bad one on one node", url, load)


def worn(what: str, load=None, **fault_) -> Callable[[Place], bool]:
    """20 calls, two at once, or another load, on two nodes of which one gets this fault."""

    def row(place: Place) -> bool:
        nodes = [place.node(decode=100, slots=2, output=20) for _ in range(2)]
        relay, _ = place.relay(*nodes, slots=2)
        url = start(place, relay, nodes)
        asyncio.run(many(url, "ours", 4, 2))
        asyncio.run(many(url, "plain", 4, 2))
        fault(nodes[0], **fault_)
        time.sleep(0.5)
        return both(what, url, load or of_many(20, 2, 20))

    return row


def one_dead(place: Place) -> bool:
    nodes = [place.node(decode=2000, slots=8) for _ in range(2)]
    relay, _ = place.relay(*nodes, slots=8)
    url = start(place, relay, nodes)
    fault(nodes[0], refuse=3600)
    what = f"{REQUESTS} calls, one of 2 nodes is dead"
    return both(what, url, of_many(REQUESTS, 4, 8))


def restarted(place: Place) -> bool:
    """A node dies under load, and is back after two seconds without its model."""
    nodes = [place.node(decode=50, slots=1, output=50, load=2.0) for _ in range(2)]
    relay, _ = place.relay(*nodes)
    url = start(place, relay, nodes)
    asyncio.run(many(url, "ours", 4, 2, 50))
    what = "a node restarts under 24 calls"
    return both(what, url, of_many(24, 3), lambda: fault(nodes[0], refuse=2.0))


def hundred(place: Place) -> bool:
    nodes = [place.node(decode=200, slots=1, output=20) for _ in range(2)]
    relay, _ = place.relay(*nodes)
    return both("100 at once", start(place, relay, nodes), of_many(100, 100, 20))


ROWS = {
    "dead": one_dead,
    "slot": one_slot,
    "unequal": unequal,
    "slots": slots,
    "two": talking(2),
    "four": talking(4),
    "bad": bad,
    "only": worn("a model that one of two nodes cannot load", broken={UPSTREAM: "no memory"}),
    "stuck": worn("a stuck runner", silent=[UPSTREAM]),
    "nothing": worn("200 with nothing", body="{}", only="/api/chat"),
    "error": worn("200 with an error in it", body='{"error": "no memory"}', only="/api/chat"),
    "html": worn("200 with a page", body="<html>Sign in</html>", only="/api/chat"),
    "cut": worn("streams that break off, and nobody says so", streams(20, 2), die=5),
    "short": worn("streams without their end, and nobody says so", streams(20, 2), short=5),
    "restart": restarted,
    "hundred": hundred,
    "llama-slots": llama(
        "real llama.cpp: 2 callers, 2 nodes of 2 slots", of_many(8, 2, 16), slots=2
    ),
    "llama-two": llama(
        "real llama.cpp: 2 conversations, mean time to a reply",
        talks(2, turns=4, size=40),
        slots=1,
    ),
    "llama-dead": llama(
        "real llama.cpp: one of 2 nodes is killed", of_many(8, 2, 16), slots=1, kill=True
    ),
}


def main() -> None:
    """`python bench/plain_litellm.py slot` measures that row alone."""
    with tempfile.TemporaryDirectory() as folder, Place(Path(folder)) as place:
        wanted = sys.argv[1:] or ROWS
        print("| row | ours | LiteLLM alone | ours / alone | |\n|---|---|---|---|---|")
        got = [ROWS[name](place) for name in wanted]
    finish(*(each for row in got for each in (row if isinstance(row, list) else [row])))


if __name__ == "__main__":
    main()
