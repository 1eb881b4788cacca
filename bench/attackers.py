"""`fleet serve` under attack: 16 honest clients beside those who mean harm, for ten minutes.

The attackers open sockets and say nothing, read nothing, send frames without end, look for names
that nobody has with a token that may only read, guess tokens, and send large bodies. They run in a
process of their own. `--seconds N` is how long; `--files N` the server's limit on open files.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import re
import statistics
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _bench import finish, verdict
from fleet.app.token_keys import own_token
from fleet.domain.access import Actor, Role
from fleet.server.claude_fleet.routes import uid_of
from server import BIN, ServerScratch, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HONEST = 16
IDLE, SLOW, FLOODS, SCANNERS, GUESSERS, BIG = 1500, 20, 4, 4, 4, 2
PAUSE = 0.05  # seconds between two requests of an honest client
TASKS = 5000
LIMIT = 100.0  # ms
PING = bytes([0x89, 0x80, 1, 2, 3, 4]) * 2000
UPGRADE = (
    "GET /ws HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def head(method: str, path: str, token: str, size: int = 0) -> bytes:
    return (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {size}\r\n\r\n"
    ).encode()


class Line:
    """One connection, kept alive."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.writer: asyncio.StreamWriter | None = None

    async def ask(
        self, method: str, path: str, token: str, body: object = None
    ) -> tuple[int, bytes]:
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        text = b"" if body is None else json.dumps(body).encode()
        self.writer.write(head(method, path, token, len(text)) + text)
        try:
            top = await self.reader.readuntil(b"\r\n\r\n")
            size = int(top.lower().partition(b"content-length:")[2].split()[0])
            data = await self.reader.readexactly(size)
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            raise
        if b"connection: close" in top.lower():
            self.close()
        return int(top.split()[1]), data

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None


async def again(act: Callable[[], Any], end: float) -> None:
    """Whatever happens to an attacker, it comes back."""
    while time.time() < end:
        with suppress(
            OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, IndexError, ValueError
        ):
            await act()
        await asyncio.sleep(0.01)


def attack(port: int, token: str, end: float) -> None:
    asyncio.run(_attack(port, token, end))


async def _attack(port: int, token: str, end: float) -> None:
    async def idle() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.wait_for(reader.read(), 30)
        writer.close()

    async def slow() -> None:
        """It asks for the stream of events and never reads it."""
        _, writer = await asyncio.open_connection("127.0.0.1", port, limit=1)
        writer.write(head("GET", "/events", token))
        await asyncio.sleep(5)
        writer.close()

    async def flood() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(UPGRADE.format(port=port).encode())
        while not writer.is_closing():
            writer.write(PING)
            await writer.drain()

    async def scan() -> None:
        line = Line(port)
        while True:
            name = f"nobody-{random.randrange(10**9)}"
            paths = (
                f"/tasks/{name}",
                "/orchestrate/workers",
                "/spawn-queue/status",
                "/v1/task/list?limit=200",
            )
            await line.ask("GET", random.choice(paths), token)

    async def guess() -> None:
        line = Line(port)
        while True:
            await line.ask("GET", "/v1/task/list", f"a.{random.randrange(10**9)}.b")
            await asyncio.sleep(0.005)

    async def big() -> None:
        await Line(port).ask("POST", "/v1/task/add", token, {"title": "x" * 900_000})

    kinds = (
        (idle, IDLE),
        (slow, SLOW),
        (flood, FLOODS),
        (scan, SCANNERS),
        (guess, GUESSERS),
        (big, BIG),
    )
    await asyncio.gather(*(again(kind, end) for kind, count in kinds for _ in range(count)))


async def honest(
    port: int, token: str, who: int, end: float, took: list[float], made: dict[str, str]
) -> None:
    """It writes and reads in turns; `made`: the titles of what was acknowledged, by id."""
    line, count = Line(port), 0
    while time.time() < end:
        began = time.perf_counter()
        count += 1
        title = f"honest-{who}-{count}"
        body = {"toHandle": "ann", "subject": title, "fromUid": uid_of("local", f"h{who}")}
        try:
            status, data = await line.ask("POST", "/tasks", token, body)
            assert status in {200, 201}, (status, data)
            task = json.loads(data)["id"]
            made[task] = title
            took.append(time.perf_counter() - began)
            began = time.perf_counter()
            assert (await line.ask("GET", f"/tasks/{task}", token))[0] == 200
            took.append(time.perf_counter() - began)
        except (OSError, asyncio.IncompleteReadError):
            FAILED.append(title)  # closed in the middle: nobody promised anything
        await asyncio.sleep(PAUSE)


FAILED: list[str] = []


async def lost(port: int, tokens: list[str], made: dict[str, str]) -> int:
    """How many of what was acknowledged is not there. Each token asks for its share."""

    async def among(token: str, some: list[tuple[str, str]]) -> int:
        line, missing = Line(port), 0
        for task, title in some:
            status, data = await line.ask("GET", f"/tasks/{task}", token)
            missing += status != 200 or json.loads(data)["subject"] != title
            await asyncio.sleep(0.005)  # 200 a second are allowed
        return missing

    rows, count = list(made.items()), len(tokens)
    shares = (among(token, rows[n::count]) for n, token in enumerate(tokens))
    return sum(await asyncio.gather(*shares))


@contextmanager
def limited(scratch: ServerScratch, files: int) -> Iterator[None]:
    """Its server, which may open so many files. It speaks into a file: nobody reads a pipe."""
    log = scratch.home / "server.log"
    argv = ["prlimit", f"--nofile={files}:{files}", str(BIN / "fleet"), "serve", "--port", "0"]
    with log.open("w") as out:
        server = subprocess.Popen(argv, cwd=scratch.repo, env=scratch.env, stdout=out, stderr=out)
    try:
        while not (url := re.findall(r"http://[^ ]+:\d+", log.read_text())):
            time.sleep(0.05)
        scratch.url = url[0]
        yield
        assert server.poll() is None, log.read_text()[-2000:]
        assert "Traceback" not in log.read_text(), log.read_text()[-2000:]
    finally:
        server.terminate()
        server.wait(20)


def figures(took: list[float]) -> tuple[float, float]:
    """The median and the 99th percentile, in milliseconds."""
    return 1000 * statistics.median(took), 1000 * statistics.quantiles(took, n=100)[98]


def measured(scratch: ServerScratch, seconds: float) -> list[bool]:
    port = int(scratch.url.rpartition(":")[2])
    bad = own_token(scratch.home, Actor("eve", Role.MONITOR, "local", ""), seconds=7200)
    good = [
        own_token(scratch.home, Actor(f"h{n}", Role.TEAM_LEAD, "local", ""), seconds=7200)
        for n in range(HONEST)
    ]
    made: dict[str, str] = {}

    async def all_of_them(end: float) -> list[float]:
        took: list[float] = []
        await asyncio.gather(*(honest(port, good[n], n, end, took, made) for n in range(HONEST)))
        return took

    alone = asyncio.run(all_of_them(time.time() + min(30, seconds / 5)))
    end = time.time() + seconds

    attackers = multiprocessing.get_context("spawn").Process(target=attack, args=(port, bad, end))
    attackers.start()
    took = asyncio.run(all_of_them(end))
    attackers.terminate()
    attackers.join()
    missing = asyncio.run(lost(port, good, made))
    (before, was), (p50, p99) = figures(alone), figures(took)
    print(
        f"{len(took):,} answers to {HONEST} honest clients in {seconds:g} s, {len(FAILED)} cut off"
    )
    print(f"p50 {p50:.1f} ms, p99 {p99:.1f} ms; without attackers {before:.1f} and {was:.1f} ms")
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    limit = ("{:.0f} ms (limit)", LIMIT)
    return [
        verdict("p99 beside attackers", ("{:.1f} ms", p99), limit, at_most=1),
        verdict(
            "lost writes",
            ("{:.0f}", float(missing)),
            ("{:.0f} written", float(len(made))),
            at_most=0,
        ),
    ]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=float(os.environ.get("SECONDS", "600")))
    options.add_argument("--files", type=int, default=1024)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        scratch = ServerScratch(Path(name))
        fill(scratch, TASKS)
        with limited(scratch, given.files):
            verdicts = measured(scratch, given.seconds)
    finish(*verdicts)


if __name__ == "__main__":
    main()
