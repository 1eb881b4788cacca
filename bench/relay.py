"""What the relay saves and what it costs, on stand-in nodes of fixed speed."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp

from _bench import finish, verdict
from _relay import Place, Took, ask, ask_all, cpu, fault, rss, seen

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUESTS = int(os.environ.get("REQUESTS", "600"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
MS = "{:.2f} ms"
COUNT = "{:.0f} errors"


def errors(found: list[Took]) -> int:
    return sum(not each.good for each in found)


def zero(what: str, count: int, peer: int = 0, name: str = "") -> bool:
    """None at all is the bar; the peer's count is beside it."""
    good = count == 0
    beside = f" against {peer} of {name}" if name else ""
    print(f"{what}: {count} errors{beside} (bar: 0) {'ok' if good else 'OVER THE BAR'}")
    return good


async def spread(urls: list[str], count: int, at_once: int) -> list[Took]:
    """The peer until LiteLLM is beside us: each request to a random node, no second try."""
    chance = random.Random(7)
    gate = asyncio.Semaphore(at_once)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one(n: int) -> Took:
            async with gate:
                return await ask(session, chance.choice(urls), f"hello {n}", 8)

        return await asyncio.gather(*(one(n) for n in range(count)))


def one_dead(place: Place) -> bool:
    nodes = [place.node(decode=2000, slots=8) for _ in range(2)]
    relay, _ = place.relay(*nodes, slots=8)
    fault(nodes[0], refuse=3600)
    peer = asyncio.run(spread(nodes, REQUESTS, 8))
    ours = asyncio.run(ask_all(relay, REQUESTS, at_once=8))
    what = f"2 nodes, one dead, {REQUESTS} requests"
    return zero(what, errors(ours), errors(peer), "random choice")


def dies(place: Place) -> list[bool]:
    """It is away for three seconds; only a reply that had begun may break."""
    nodes = [place.node(lag=0.05, decode=400, slots=4) for _ in range(2)]
    relay, _ = place.relay(*nodes, slots=4)
    state: dict[str, float] = {}

    async def kill() -> None:
        await asyncio.sleep(2)
        await asyncio.to_thread(fault, nodes[0], refuse=3.0)
        state["away"] = time.time()

    async def both() -> list[Took]:
        killing = asyncio.create_task(kill())
        found: list[Took] = []
        while time.time() < state.get("away", time.time()) + 15:
            found += await ask_all(relay, 64, at_once=8)
        await killing
        return found

    found = asyncio.run(both())
    could = sum(not each.good and not each.first for each in found)
    begun = errors(found) - could
    back = [s["at"] for s in seen(nodes[0]) if s["at"] > state["away"] + 2.9]
    late = min(back) - state["away"] - 3.0 if back else 99.0
    print(f"  {len(found)} requests; {begun} replies had begun when it died, and were reported")
    return [
        zero("a node dies under load: what a retry could save", could, begun, "replies under way"),
        verdict("traffic back after", ("{:.1f} s", late), ("{:.1f} s", 10.0), at_most=1),
    ]


def one_slot(place: Place) -> bool:
    node = place.node(decode=50, slots=1, output=50)
    relay, _ = place.relay(node)
    asyncio.run(ask_all(relay, 1, at_once=1, output=50))
    begun = time.perf_counter()
    asyncio.run(ask_all(node, 4, at_once=1, output=50))
    serial = time.perf_counter() - begun
    begun = time.perf_counter()
    found = asyncio.run(ask_all(relay, 4, at_once=4, output=50))
    took = time.perf_counter() - begun
    figure = "{:.2f} s"
    good = zero("4 calls to a one-slot node", errors(found))  # LiteLLM's: see plain_litellm.py
    return (
        verdict("4 at once against serial", (figure, took), (figure, serial), at_most=1.05) and good
    )


async def mixed(urls: list[str], seed: int) -> float:
    """32 calls at once, to one address or to random ones; the time until the last is done."""
    chance = random.Random(seed)
    sizes = [(chance.choice((200, 2000, 8000)), chance.choice((5, 20, 60))) for _ in range(32)]
    homes = [chance.choice(urls) for _ in sizes]
    begun = time.perf_counter()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        calls = [
            ask(session, home, f"{n} " + "x" * chars, output)
            for n, (home, (chars, output)) in enumerate(zip(homes, sizes, strict=True))
        ]
        found = await asyncio.gather(*calls)
    assert not errors(found)
    return time.perf_counter() - begun


def unequal(place: Place) -> bool:
    """The peer is a random choice, which is what a simple shuffle does."""
    speeds = ((8000, 200), (4000, 100), (2000, 50))
    nodes = [place.node(prefill=p, decode=d, slots=1, output=60) for p, d in speeds]
    relay, _ = place.relay(*nodes)
    ours, peer = [], []
    for seed in range(3):
        peer.append(asyncio.run(mixed(nodes, seed)))
        ours.append(asyncio.run(mixed([relay], seed)))
    figure = "{:.2f} s"
    what = "32 mixed calls on 3 nodes of speeds 4:2:1, random shuffle against ours"
    mean = statistics.mean
    return verdict(what, (figure, mean(peer)), (figure, mean(ours)), at_least=1.3)


def percentiles(found: list[Took]) -> tuple[float, float]:
    times = sorted(each.total for each in found)
    return times[len(times) // 2] * 1000, times[int(len(times) * 0.95)] * 1000


@contextmanager
def other_load(*, wanted: bool) -> Iterator[None]:
    """A process that never rests, for each processor, as beside agents that build and test."""
    busy = "while True: sum(range(10_000))"
    count = os.cpu_count() or 1 if wanted else 0
    programs = [subprocess.Popen([sys.executable, "-c", busy]) for _ in range(count)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()


def more_than(ways: dict[str, str], count: int, at_once: int) -> dict[str, list[float]]:
    """By way, the p50 of each round; in turns, so that all meet the same noise."""
    rounds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(ROUNDS + 1):
        for name, url in ways.items():
            results = asyncio.run(ask_all(url, count, at_once=at_once, output=16))
            assert not errors(results), name
            if turn:
                rounds[name].append(percentiles(results)[0])
    return rounds


def added(place: Place) -> list[bool]:
    """Against a bare forwarder in the same run: what a proxy costs anyway is not the relay's."""
    node = place.node(decode=100, slots=32, output=16, drag=0)
    relay, pid = place.relay(node, slots=32)
    forwarder, its_pid = place.forwarder(node)
    ways = {"node": node, "forwarder": forwarder, "relay": relay}
    pids = {"forwarder": its_pid, "relay": pid}
    verdicts = []
    for loaded, (at_once, count) in itertools.product((False, True), ((1, 20), (16, 128))):
        before = {name: cpu(each) for name, each in pids.items()}
        with other_load(wanted=loaded):
            rounds = more_than(ways, count, at_once)
        asked = count * (ROUNDS + 1)
        work = {name: (cpu(each) - before[name]) / asked * 1000 for name, each in pids.items()}
        p50 = {name: statistics.median(each) for name, each in rounds.items()}
        what = f"added to a stream at c={at_once}{' beside other load' * loaded}, p50"
        bare = p50["forwarder"] - p50["node"]
        print(f"  {what}: the node {p50['node']:.1f} ms; a bare forwarder adds {bare:.2f} ms")
        pairs = zip(rounds["relay"], rounds["forwarder"], strict=True)
        ours = statistics.median(mine - its for mine, its in pairs)
        verdicts.append(verdict(f"{what}, over a bare forwarder", (MS, ours), (MS, 2.0), at_most=1))
        print(
            f"  CPU for a stream of 16 pieces: relay {work['relay']:.2f} ms, forwarder {work['forwarder']:.2f} ms"
        )
    megabytes = "{:.1f} MB"
    return [*verdicts, verdict("RSS", (megabytes, rss(pid)), (megabytes, 60.0), at_most=1)]


ROWS = {"dead": one_dead, "dies": dies, "slot": one_slot, "unequal": unequal, "added": added}


def main() -> None:
    """`python bench/relay.py added` measures that row alone."""
    verdicts = []
    for name in sys.argv[1:] or ROWS:
        with tempfile.TemporaryDirectory() as folder, Place(Path(folder)) as place:
            got = ROWS[name](place)
            verdicts += got if isinstance(got, list) else [got]
    finish(*verdicts)


if __name__ == "__main__":
    main()
