"""Requests a second of `fleet serve`, by wrk, with tokens and a store that waits for its disk.

The supervisor runs inside, as it does by default; writing is measured beside `--no-run`, too.

The peer is a bare application on the same HTTP server, asked in the same run: what is between
them is ours.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from _bench import finish, verdict
from _store import a_task
from _store import fill as put
from fleet.app import open_store
from fleet.app.token_keys import own_token
from fleet.domain.access import Actor, Role
from fleet.domain.task import Spec
from fleet.server.claude_fleet.routes import uid_of

if TYPE_CHECKING:
    from collections.abc import Iterator

BIN = Path(sys.executable).parent
TOKENS = 64  # as many as a large fleet has: each may ask 200 times a second
SECONDS = int(os.environ.get("SECONDS", "3"))
ROUNDS = 4  # the best counts: other machines share these processors
FEW, MANY = 100, int(os.environ.get("MANY", "100000"))
MCP = 500  # calls a second
BARS = {"POST": 3000, "a task": 4000, "health": 5000, "a page of 50": 1000, "a team's tasks": 700}
MEMORY = 110.0
PROMPT = "Fix the login form so that it keeps the name after a wrong password. " * 3
BARE = """
async def app(scope, receive, send):
    if scope["type"] == "http":
        await receive()
        head = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": b'{"status": "ok"}'})
"""
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
LUA = """
local tokens = {%s}
local n = 0
request = function()
  n = n %% #tokens + 1
  wrk.headers["Authorization"] = "Bearer " .. tokens[n]
  wrk.headers["Content-Type"] = "application/json"
  return wrk.format("%s", "%s", wrk.headers, [==[%s]==])
end
"""


class ServerScratch:
    """A home, `fleet` in it, and its server."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = os.environ | {"FLEET_HOME": str(home), "FLEET_USER": "bench"}
        self.env.pop("FLEET_URL", None)
        self.repo = home / "repo"
        self.repo.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", self.repo], check=True)
        lead = Actor("a", Role.TEAM_LEAD, "local", "")
        self.tokens = [own_token(home, lead, seconds=3600) for _ in range(TOKENS)]
        self.url = ""

    @contextmanager
    def serving(self, *words: str) -> Iterator[subprocess.Popen[bytes]]:
        log = self.home / "serve.log"  # a pipe that nobody reads would stop the supervisor
        server = subprocess.Popen(
            [str(BIN / "fleet"), "serve", "--port", "0", *words],
            cwd=self.repo, env=self.env, stdout=log.open("wb"), stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            while not (urls := re.findall(r"http://[^ ]+:\d+", log.read_text())):
                time.sleep(0.05)
            self.url = urls[0]
            self.pid = server.pid
            yield server
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(20)

    def ask(self, method: str, path: str, body: object = None) -> dict:
        asked = urllib.request.Request(
            self.url + path,
            data=json.dumps(body).encode() if body is not None else None,
            headers={
                "Authorization": f"Bearer {self.tokens[0]}",
                "Content-Type": "application/json",
                "Accept": "application/json, text/event-stream",
            },
            method=method,
        )
        with urllib.request.urlopen(asked, timeout=20) as answer:
            return json.load(answer)

    def wrk(self, method: str, path: str, body: str = "", *, rounds: int = ROUNDS) -> float:
        script = self.home / "ask.lua"
        tokens = ",".join(f'"{token}"' for token in self.tokens)
        script.write_text(LUA % (tokens, method, path, body))
        rate, each, p99 = max(self.round(script) for _ in range(rounds))
        what = f"{method} {path.partition('?')[0]}"
        print(f"  {what}: {each * 1e6:.0f} us of the server's CPU each, p99 {p99:.0f} ms")
        return rate

    def round(self, script: Path) -> tuple[float, float, float]:
        """Requests a second, seconds of CPU for each, and the 99th percentile of their time."""
        before = self.seconds()
        rate, p99 = wrk(self.url, script)
        return rate, (self.seconds() - before) / (rate * SECONDS), p99

    def seconds(self) -> float:
        """Of CPU that the server has used."""
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9


def wrk(url: str, script: Path | None = None) -> tuple[float, float]:
    """Requests a second and p99 in milliseconds; an answer that is an error ends the benchmark."""
    more = ["-s", str(script)] if script else []
    argv = ["wrk", "-t1", "-c16", f"-d{SECONDS}s", "--latency", *more, url]
    report = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert "Non-2xx" not in report, report
    number, unit = re.findall(r" 99% +([\d.]+)(us|ms|s)", report)[0]
    p99 = float(number) * {"us": 0.001, "ms": 1, "s": 1000}[unit]
    return float(re.findall(r"Requests/sec: +([\d.]+)", report)[0]), p99


def bare(folder: Path) -> tuple[float, float]:
    """An application that does nothing, on the same HTTP server."""
    (folder / "bare.py").write_text(BARE)
    argv = [str(BIN / "uvicorn"), "bare:app", "--port", "29847", "--no-access-log"]
    server = subprocess.Popen([*argv, "--log-level", "error"], cwd=folder)
    try:
        for _ in range(100):
            try:
                urllib.request.urlopen("http://127.0.0.1:29847/").read()
                break
            except OSError:
                time.sleep(0.1)
        return wrk("http://127.0.0.1:29847/")
    finally:
        server.terminate()
        server.wait()


def fill(scratch: ServerScratch, count: int) -> None:
    """Tasks that nobody runs, straight into the store."""
    with closing(open_store(f"sqlite:///{scratch.home}/fleet.db")) as store:
        tasks = [
            replace(a_task(number), id=store.new_id("t"), team="local", spec=Spec())
            for number in range(count)
        ]
        put(store, tasks)


def memory(server: subprocess.Popen[bytes]) -> float:
    text = Path(f"/proc/{server.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", text)[0]) / 1024


def supervised(folder: Path) -> Iterator[bool]:
    """Writing with the supervisor inside, which is the default, beside writing without it."""
    with_it, without = (ServerScratch(folder / name) for name in ("with", "without"))
    with with_it.serving(), without.serving("--no-run"):
        for (path, body), (_, other) in zip(bodies(with_it), bodies(without), strict=True):
            rates: tuple[list[float], list[float]] = ([], [])
            for _ in range(ROUNDS):
                rates[0].append(with_it.wrk("POST", path, json.dumps(body), rounds=1))
                rates[1].append(without.wrk("POST", path, json.dumps(other), rounds=1))
            yield verdict(
                f"POST {path} with the supervisor inside", ("{:,.0f}/s", max(rates[0])),
                ("{:,.0f}/s without", max(rates[1])), at_least=1 / 1.3,
            )  # fmt: skip


def bodies(scratch: ServerScratch) -> Iterator[tuple[str, dict[str, object]]]:
    task = {"fromUid": uid_of("local", "a"), "toHandle": "a", "teamName": "local",
            "subject": "Fix the login", "description": PROMPT}  # fmt: skip
    swarm = scratch.ask("POST", "/swarms", {"name": "bench", "maxAgents": 5})["id"]
    post = {"swarmId": swarm, "senderHandle": "a", "messageType": "status",
            "payload": {"text": PROMPT}}  # fmt: skip
    for path, body in (("/tasks", task), ("/blackboard", post)):
        scratch.ask("POST", path, body)
        yield path, body


def written(scratch: ServerScratch) -> Iterator[bool]:
    for path, body in bodies(scratch):
        yield at_least(f"POST {path}", scratch.wrk("POST", path, json.dumps(body)), BARS["POST"])


def read(scratch: ServerScratch, count: int) -> dict[str, float]:
    one = scratch.ask("GET", "/v1/task/list?limit=1")["data"][0]["id"]
    page = "/v1/task/list?limit=50"
    found = {
        "a task": scratch.wrk("GET", f"/tasks/{one}"),
        "health": scratch.wrk("GET", "/health"),
        "a page of 50": scratch.wrk("GET", page),
        "a team's tasks": scratch.wrk("GET", "/teams/local/tasks?limit=50"),
    }
    print(f"at {count:,} tasks:", {what: round(rate) for what, rate in found.items()})
    return found


def tools(scratch: ServerScratch) -> Iterator[bool]:
    """Each is a whole MCP request, as an agent sends it."""
    call = HELLO | {"method": "tools/call", "params": {"name": "team_tasks", "arguments": {}}}
    for what, body in (("tools/list", HELLO), ("a call of a tool", call)):
        yield at_least(f"MCP {what}", scratch.wrk("POST", "/mcp", json.dumps(body)), MCP)


def at_least(what: str, rate: float, bar: float) -> bool:
    return verdict(what, ("{:,.0f}/s", rate), ("{:,.0f}/s (bar)", bar), at_least=1)


def measured(scratch: ServerScratch) -> Iterator[bool]:
    rate, p99 = bare(scratch.home)
    print(f"an empty application on the same HTTP server: {rate:,.0f}/s, p99 {p99:.0f} ms")
    fill(scratch, FEW)
    with scratch.serving():
        few = read(scratch, FEW)
        yield from (at_least(f"GET {what}", rate, BARS[what]) for what, rate in few.items())
        yield from tools(scratch)
        yield from written(scratch)
    yield from supervised(scratch.home)
    fill(scratch, MANY)
    with scratch.serving():
        many = read(scratch, MANY)
    rates = ("{:,.0f}/s", "{:,.0f}/s at " + f"{FEW} tasks")
    for what, rate in many.items():
        name = f"GET {what} at {MANY:,} tasks"
        yield verdict(name, (rates[0], rate), (rates[1], few[what]), at_least=1 / 1.5)
    other = ServerScratch(scratch.home / "other")
    with other.serving() as server:
        other.ask("POST", "/mcp", HELLO)
        used = memory(server)
    yield verdict("memory", ("{:.0f} MB", used), ("{:.0f} MB (bar)", MEMORY), at_most=1)


def main() -> None:
    if not shutil.which("wrk"):
        print("wrk is missing: apt-get install wrk")
        sys.exit(2)
    with tempfile.TemporaryDirectory() as name:
        scratch = ServerScratch(Path(name))
        finish(*list(measured(scratch)))


if __name__ == "__main__":
    main()
