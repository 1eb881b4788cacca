"""Live events to 500 readers, beside plain writes of the same bytes to 500 sockets.

The supervisor runs inside, as it does by default; the tasks are a member's to do, so none starts.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import resource
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

from _bench import finish, verdict
from _relay import cpu, rss
from fleet.app.token_keys import own_token
from fleet.domain.access import Actor, Role

READERS = int(os.environ.get("READERS", "500"))
EVENTS = int(os.environ.get("EVENTS", "600"))  # as fast as they are written
RATE = int(os.environ.get("RATE", "50"))  # a second, for the delays
SECONDS = int(os.environ.get("SECONDS", "6"))
BAR, LATE = 20_000, 100.0  # deliveries a second; milliseconds
FLEET = str(Path(sys.executable).parent / "fleet")
AT = re.compile(rb'"at":"([^"]+)"')
SAMPLE = (
    b'id: 123456\nevent: task.added\ndata: {"number":123456,"type":"task.added","task":"t-12345",'
    b'"run":"","actor":"writer","at":"%b","data":{"title":"One of many"}}\n\n'
)
PROCESS = get_context("fork")


def when(at: bytes) -> float:
    return datetime.fromisoformat(at.decode()).timestamp()


class Place:
    """A server over a home of its own, and tokens for it."""

    def __init__(self, root: Path) -> None:
        env = {**os.environ, "FLEET_HOME": str(root / "home"), "HOME": str(root)}
        env["FLEET_SERVER_STREAMS"] = str(2 * READERS)
        log = root / "serve.log"  # a pipe that nobody reads would stop the supervisor
        self.process = subprocess.Popen(
            [FLEET, "serve", "--port", "0"],
            cwd=root, env=env, stdout=log.open("wb"), stderr=subprocess.STDOUT,
        )  # fmt: skip
        while not (ports := re.findall(r"http://[^ ]+:(\d+)", log.read_text())):
            time.sleep(0.05)
        self.port = int(ports[0])
        self._home = root / "home"

    def token(self, name: str) -> str:
        return own_token(self._home, Actor(name, Role.COORDINATOR), seconds=3600)

    def end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)


class Readers:
    """Sockets that are read by one thread; `delays` are those of each delivery, in seconds."""

    def __init__(self, port: int, hello: bytes) -> None:
        self.delays: list[float] = []
        self.ready = self.broken = 0
        self._over = False
        self._rest: dict[socket.socket, bytes] = {}
        self._selector = selectors.DefaultSelector()
        for _ in range(READERS):
            sock = socket.create_connection(("127.0.0.1", port))
            sock.sendall(hello)
            sock.setblocking(False)
            self._selector.register(sock, selectors.EVENT_READ)
            self._rest[sock] = b""
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        while not self._over:
            for key, _ in self._selector.select(0.1):
                self._take(key.fileobj)

    def _take(self, sock: socket.socket) -> None:
        data = sock.recv(1 << 18)
        now = time.time()
        if not data:
            self._selector.unregister(sock)
            self.broken += 1
            return
        whole, gap, rest = (self._rest[sock] + data).rpartition(b"\n\n")
        self._rest[sock] = rest
        if gap:
            self.ready += whole.count(b"event: ready")
            if b"event: ready" not in whole:
                self.delays += [now - when(at) for at in AT.findall(whole)]

    def wait(self, count: int, within: float = 60.0) -> None:
        end = time.monotonic() + within
        while len(self.delays) < count:
            if time.monotonic() > end or self.broken:
                sys.exit(f"{len(self.delays)} of {count} arrived; {self.broken} connections broke")
            time.sleep(0.005)

    def close(self) -> None:
        self._over = True
        self._thread.join()
        for sock in self._rest:
            sock.close()


def write(port: int, token: str, count: int, rate: float) -> None:
    """Add tasks, each acknowledged before the next; `rate` 0: as fast as that goes."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    body = json.dumps({"title": "One of many", "spec": {"assignee": "a"}})
    headers = {"Authorization": f"Bearer {token}"}
    began = time.monotonic()
    for n in range(count):
        if rate:
            time.sleep(max(0.0, began + n / rate - time.monotonic()))
        connection.request("POST", "/v1/task/add", body, headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 201, answer.status


def writing(place: Place, count: int, rate: float, writers: int) -> list:
    made = [
        PROCESS.Process(
            target=write, args=(place.port, place.token(f"w{n}"), count // writers, rate)
        )
        for n in range(writers)
    ]
    for each in made:
        each.start()
    return made


def ours(place: Place) -> tuple[float, float, float, float]:
    """Deliveries a second at full speed, processor time of one, and delays at a steady rate."""
    for n in range(4):
        write(place.port, place.token(f"w{n}"), 1, 0)  # so that it has been seen
    hello = (
        f"GET /events HTTP/1.1\r\nHost: 127.0.0.1:{place.port}\r\n"
        f"Authorization: Bearer {place.token('reader')}\r\n\r\n"
    )
    readers = Readers(place.port, hello.encode())
    while readers.ready < READERS:
        time.sleep(0.01)
    time.sleep(1)  # what came of their coming
    readers.delays.clear()
    writers = writing(place, RATE * SECONDS, RATE, 1)
    readers.wait(RATE * SECONDS * READERS, 60 + SECONDS)
    steady = sorted(readers.delays)
    for each in writers:
        each.join()
    readers.delays.clear()
    used, began = cpu(place.process.pid), time.perf_counter()
    writers = writing(place, EVENTS, 0, 4)
    readers.wait(EVENTS // 4 * 4 * READERS)
    took = time.perf_counter() - began
    used = cpu(place.process.pid) - used
    for each in writers:
        each.join()
    readers.close()
    count = EVENTS // 4 * 4 * READERS
    return count / took, used / count * 1e6, steady[len(steady) // 2] * 1e3, p99(steady) * 1e3


def p99(delays: list[float]) -> float:
    return delays[int(len(delays) * 0.99)]


def plain(listening: socket.socket, pipe) -> None:
    """The limit: the same bytes, written by a loop that does nothing else."""
    socks = [listening.accept()[0] for _ in range(READERS)]
    for sock in socks:
        sock.recv(100)
    for count, rate in ((RATE * SECONDS, RATE), (EVENTS, 0)):
        pipe.recv()
        pipe.send(written(socks, count, rate))
    pipe.recv()


def written(socks: list[socket.socket], count: int, rate: float) -> float:
    """Microseconds of the processor for each."""
    began = time.monotonic()
    before = resource.getrusage(resource.RUSAGE_SELF)
    for n in range(count):
        if rate:
            time.sleep(max(0.0, began + n / rate - time.monotonic()))
        said = SAMPLE % datetime.now(UTC).isoformat().encode()
        said = b"%x\r\n%b\r\n" % (len(said), said)
        for sock in socks:
            sock.send(said)
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used / count / READERS * 1e6


def limit() -> tuple[float, float, float]:
    """Deliveries a second, processor time of one, and the delay of most at a steady rate."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    here, there = PROCESS.Pipe()
    child = PROCESS.Process(target=plain, args=(listening, there))
    child.start()
    readers = Readers(listening.getsockname()[1], b"hello")
    time.sleep(0.5)
    here.send(None)
    readers.wait(RATE * SECONDS * READERS, 60 + SECONDS)
    late = p99(sorted(readers.delays)) * 1e3
    here.recv()
    readers.delays.clear()
    began = time.perf_counter()
    here.send(None)
    readers.wait(EVENTS * READERS)
    took = time.perf_counter() - began
    used = here.recv()
    here.send(None)
    child.join()
    readers.close()
    return EVENTS * READERS / took, used, late


def main() -> None:
    with tempfile.TemporaryDirectory() as root:
        place = Place(Path(root))
        try:
            fast, cost, middle, late = ours(place)
            memory = rss(place.process.pid)
        finally:
            place.end()
    most, least, soon = limit()
    load = os.getloadavg()[0]
    print(
        f"{READERS} readers, each event a request of its own (load of the machine {load:.1f}, "
        f"server {memory:.0f} MB)"
    )
    per_second, micro = "{:,.0f} deliveries/s", "{:.1f} us"
    what = "  as fast as four writers write"
    print(f"{what}: {fast / most:.2f} of what plain writes reach ({most:,.0f}/s)")
    finish(
        verdict(what, (per_second, fast), (per_second, float(BAR)), at_least=1),
        verdict("  processor time of one", (micro, cost), (f"{micro} of a plain write", least), at_most=8),
        verdict(
            f"  p99 at {RATE * READERS:,} deliveries/s (median {middle:.1f} ms; plain writes p99 {soon:.1f} ms)",
            ("{:.1f} ms", late), ("{:.0f} ms", LATE), at_most=1,
        ),
    )  # fmt: skip


if __name__ == "__main__":
    main()
