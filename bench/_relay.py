"""Nodes and a relay as processes of their own, and clients that ask them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import aiohttp

from fleet.adapters.relay.plan import relay_config
from fleet.domain.fleet import Fleet, Gateway, Model, Node, Serving
from fleet.testing.fake_node.node import FakeNode

MODEL, UPSTREAM = "coder", "qwen2.5-coder:7b"
ALSO = "also"  # the relay's name for a second model


class Took(NamedTuple):
    good: bool
    first: float
    total: float


class Place:
    """`folder` is scratch; everything that was started ends with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = ExitStack()
        self._count = 0

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        self._stack.close()

    def _start(self, *argv: str) -> subprocess.Popen:
        argv = argv if argv[0].endswith(".py") else ("-m", *argv)
        program = subprocess.Popen([sys.executable, *argv], stderr=subprocess.DEVNULL)
        self.also(program)
        return program

    def also(self, program: subprocess.Popen) -> None:
        """It ends with the place."""
        self._stack.callback(_end, program)

    def forwarder(self, node: str) -> tuple[str, int]:
        """The address of a bare forwarder to that node, and its process."""
        self._count += 1
        ready = self.folder / f"forwarder-{self._count}"
        program = self._start(str(Path(__file__).with_name("_forwarder.py")), node, str(ready))
        until(lambda: ready.exists() and ready.read_text())
        return ready.read_text(), program.pid

    def node(self, *, also: str = "", **manner: float) -> str:
        """Its address. `also`: a second model that it has."""
        self._count += 1
        ready = self.folder / f"node-{self._count}"
        told = [f"--{name}={value}" for name, value in manner.items()]
        told += ["--model", also] if also else []
        self._start(
            "fleet.testing.fake_node.node", "--model", UPSTREAM, "--ready", str(ready), *told
        )
        until(lambda: ready.exists() and ready.read_text())
        return ready.read_text()

    def relay(
        self, *nodes: str, slots: int = 1, kind: str = "ollama", upstream: str = UPSTREAM,
        also: str = "",
    ) -> tuple[str, int]:  # fmt: skip
        """The model's address there, and the relay's process. `also`: a model of the first node."""
        self._count += 1
        servings = tuple(
            Serving(Node(f"n{i}", kind, url), upstream, 8192, 300.0, slots)
            for i, url in enumerate(nodes)
        )
        model = Model(MODEL, MODEL, servings)
        held = {serving.node.name: serving.node for serving in servings}
        with FakeNode() as free:
            port = free.port
        traces = str(self.folder / f"traces-{self._count}.jsonl")
        models = {MODEL: model}
        if also:
            models[ALSO] = Model(ALSO, ALSO, (servings[0]._replace(upstream=also),))
        told = relay_config(Fleet("x", Gateway(), held, models), port=port, traces=traces)
        file = self.folder / f"relay-{self._count}.json"
        file.write_text(json.dumps(told))
        program = self._start("fleet.adapters.relay.process", str(file))
        until(lambda: answers(f"http://127.0.0.1:{port}/relay/health"))
        return f"http://127.0.0.1:{port}/m/{MODEL}", program.pid


def _end(program: subprocess.Popen) -> None:
    """LiteLLM waits for requests that hang."""
    program.terminate()
    try:
        program.wait(20)
    except subprocess.TimeoutExpired:
        program.kill()
        program.wait(20)


def fault(node: str, **manner) -> None:
    data = json.dumps(manner).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{node}/fault", data), timeout=5):
        pass


def seen(node: str) -> list[dict]:
    with urllib.request.urlopen(f"{node}/seen", timeout=20) as answer:
        return [each for each in json.load(answer) if each["path"] == "/api/chat"]


def cpu(pid: int) -> float:
    """Seconds that a process has worked."""
    words = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def rss(pid: int) -> float:
    """Megabytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


async def ask(session: aiohttp.ClientSession, url: str, content: str, output: int) -> Took:
    body = {
        "model": UPSTREAM, "messages": [{"role": "user", "content": content}],
        "options": {"num_predict": output, "num_ctx": 8192},
    }  # fmt: skip
    began, first, last = time.perf_counter(), 0.0, b""
    try:
        async with session.post(f"{url}/api/chat", json=body) as answer:
            async for chunk in answer.content.iter_any():
                first = first or time.perf_counter() - began
                last = chunk
            good = answer.status == 200 and b'"done": true' in last
    except aiohttp.ClientError:
        good = False
    return Took(good, first, time.perf_counter() - began)


async def ask_all(url: str, count: int, *, at_once: int, output: int = 8, words: str = "hello"):
    """Every client asks its next when it has its last."""
    left = iter(range(count))
    found: list[Took] = []

    async def client(session: aiohttp.ClientSession, number: int) -> None:
        await asyncio.sleep(0.013 * number)  # people do not ask in step
        for n in left:
            found.append(await ask(session, url, f"{words} {n}", output))

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(client(session, number) for number in range(at_once)))
    return found


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=1):
            return True
    except OSError:
        return False


def until(found) -> None:
    deadline = time.monotonic() + 30
    while not found():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.02)
