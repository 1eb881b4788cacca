"""Open a terminal of another machine, through the server and that machine's link."""

from __future__ import annotations

import os
import pty
import queue
import re
import select
import signal
import statistics
import subprocess
import sys
import threading
import time
from contextlib import suppress

import pytest

from tests.e2e.served import Served
from tests.integration.listeners import Ws
from tests.real.several_hosts import RealHost
from tests.wait import LIMIT, until

pytestmark = pytest.mark.real

KEYS = 100
BAR = 0.030  # seconds from a key to its echo, of a machine that does nothing else
QUIET = 0.05  # seconds without a frame
CALM = 1.0  # load a core up to which the bar is judged


@pytest.fixture
def pair(tmp_path, postgres_url):
    """A machine that serves, and another with an agent in a terminal, linked to it."""
    here, there = (RealHost(tmp_path / name, postgres_url) for name in ("here", "there"))
    served = Served(here, "--no-run")
    there("status")  # makes its home
    body = {"host": there.host_id}
    status, made = served.ask("POST", "/v1/host/token", body, token=served.token())
    assert status == 201, made
    (there.home / "server.token").write_text(made["data"]["token"])
    there.env["FLEET_HOST_SERVER"] = served.url
    there.supervise()
    there("create", "seat", "--prompt", "say Hello there")
    yield served, there
    there.type("kill", "seat", "--force")
    there.end(signal.SIGTERM)
    there.kill_keepers()
    served.end()


def sit(served, *, run: str = "t-1") -> tuple[Ws, dict]:
    socket = Ws(served.port, "/ws/terminal")
    token = served.token()
    socket.send({"type": "auth", "token": token, "run": run, "rows": 30, "columns": 100})
    return socket, socket.next()


def seated(served) -> Ws:
    sockets: list[Ws] = []

    def is_seated() -> bool:
        socket, frame = sit(served)
        if frame.get("type") == "seated":
            sockets.append(socket)
        else:
            socket.close()
        return bool(sockets)

    until(is_seated, "the machine to be linked")
    return sockets[0]


def shows(socket: Ws, words: bytes) -> None:
    seen = b""
    until_at = time.monotonic() + LIMIT
    while words not in seen:
        assert time.monotonic() < until_at, seen[-500:]
        data = socket.next()
        seen += data if isinstance(data, bytes) else b""


def test_one_types_at_a_terminal_of_another_machine_and_it_goes_on(pair):
    served, there = pair
    socket = seated(served)
    shows(socket, b"Hello there")
    socket.send(b"say Typed from afar\r", kind=2)
    transcript = there.home / "runs" / "t-1.1" / "transcript"
    until(lambda: "Typed from afar" in transcript.read_text(), "its agent to read it")
    socket.close()
    assert there.data("tasks")[0]["state"] == "running"


def test_a_key_comes_back_from_another_machine_in_time(pair):
    """It prints the time of a key from the browser's side, through server and link, and back."""
    served, _ = pair
    socket = seated(served)
    shows(socket, b"Hello there")
    frames: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=lambda: pump(socket, frames), daemon=True).start()
    times = [echo_seconds(socket, frames, b"QVWYZ"[n % 5 : n % 5 + 1]) for n in range(KEYS)]
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    p50 = statistics.median(times)
    print(f"key to echo p50 {p50 * 1000:.1f} ms, load {load:.1f} a core")
    socket.close()
    assert p50 < (BAR if load < CALM else BAR * 10)


def pump(socket: Ws, frames: queue.SimpleQueue[bytes]) -> None:
    with suppress(OSError, ValueError):  # it was closed
        while isinstance(data := socket.next(), bytes):
            frames.put(data)


def echo_seconds(socket: Ws, frames: queue.SimpleQueue[bytes], key: bytes) -> float:
    """From a key to the first frame that shows it, once what was shown before has come."""
    with suppress(queue.Empty):
        while True:
            frames.get(timeout=QUIET)
    began = time.perf_counter()
    socket.send(key, kind=2)
    while key not in frames.get(timeout=LIMIT):
        pass
    return time.perf_counter() - began


def test_who_may_not_sit_there_is_refused_with_the_words_of_any_terminal(pair):
    served, _ = pair
    socket = Ws(served.port, "/ws/terminal")
    socket.send({"type": "auth", "token": served.token("wo", "worker"), "run": "t-1"})
    assert socket.next()["code"] == "forbidden"
    socket.close()


def test_fleet_attach_leads_there_and_says_what_is_known_without_a_link(pair):
    served, there = pair
    seated(served).close()
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "fleet", "attach", "t-1"],
        stdin=slave, stdout=slave, stderr=slave, cwd=served.scratch.repo, env=served.scratch.env,
        start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    try:
        printed(master, b"Hello there")
        os.write(master, b"\x11")  # Ctrl-Q
        assert process.wait(LIMIT) == 0
    finally:
        process.kill()
        os.close(master)
    there.end(signal.SIGTERM)
    refused = served.scratch.type("attach", "t-1")
    assert refused.returncode in {1, 3}
    until(lambda: says_where(served), "the link to be gone")


def printed(master: int, words: bytes) -> None:
    seen, until_at = b"", time.monotonic() + LIMIT
    while words not in seen:
        assert time.monotonic() < until_at, seen[-2000:]
        if select.select([master], [], [], 1)[0]:
            seen += os.read(master, 65536)


def says_where(served) -> bool:
    socket, frame = sit(served)
    socket.close()
    return bool(re.search(r"t-1\.1 is on \S+", frame.get("message", "")))
