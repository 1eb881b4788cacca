"""A server that is killed while it writes: what it said is so, and readers go on without a gap."""

from __future__ import annotations

import http.client
import signal
import threading
import time
from contextlib import closing, suppress

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.integration.listeners import Sse, Ws
from tests.wait import LIMIT, until

KILLS = 2
BROKEN = (OSError, http.client.HTTPException, ValueError, IndexError, AssertionError, TypeError)


@pytest.fixture
def served(tmp_path):
    made = Served(Scratch(tmp_path), "--no-run")
    yield made
    made.close()


class Load:
    """Writers that go on over every crash; `known` are the tasks that were acknowledged."""

    def __init__(self, served: Served, token: str) -> None:
        self.served, self.token = served, token
        self.known: list[str] = []
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self._write) for _ in range(4)]
        for thread in self.threads:
            thread.start()

    def _write(self) -> None:
        while not self.over.is_set():
            with suppress(*BROKEN):
                status, said = self.served.ask(
                    "POST", "/v1/task/add", {"title": "Kept"}, token=self.token
                )
                assert status == 201
                self.known.append(said["data"]["id"])

    def end(self) -> None:
        self.over.set()
        for thread in self.threads:
            thread.join(LIMIT)


class Follower:
    """Reads from the number it saw last, again and again; `seen` is all that it was sent."""

    def __init__(self, served: Served, token: str, begin) -> None:
        self.served, self.token, self.begin = served, token, begin
        self.seen: list[int] = []
        self.resumed = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._follow)
        self.thread.start()

    def _follow(self) -> None:
        while not self.over.is_set():
            with suppress(*BROKEN):
                after = self.seen[-1] if self.seen else 0
                reader, numbers = self.begin(self.served.port, self.token, after)
                self.resumed += bool(self.seen)
                with closing(reader):
                    for number in numbers:
                        self.seen.append(number)
            time.sleep(0.02)

    def end(self) -> None:
        self.over.set()


def by_stream(port: int, token: str, after: int):
    stream = Sse(port, token, after)
    said = iter(stream.next, None)
    return stream, (number for name, number, _ in said if name not in {"ready", "ended"})


def by_socket(port: int, token: str, after: int):
    socket = Ws(port)
    try:
        socket.auth(token, after=after, topics=["team"])
    except BROKEN:
        socket.close()
        raise
    return socket, (said["number"] for said in iter(socket.next, None) if "event" in said)


def test_a_kill_under_load_loses_nothing_and_readers_go_on_from_their_number(served):
    token = served.token()
    load = Load(served, token)
    followers = [Follower(served, token, begin) for begin in (by_stream, by_socket)]
    for _ in range(KILLS):
        enough = len(load.known) + 100
        until(lambda enough=enough: len(load.known) > enough, "writes")
        served.end(signal.SIGKILL)
        served.start()
    enough = len(load.known) + 50
    until(lambda: len(load.known) > enough, "writes after the last kill")
    load.end()
    with closing(Sse(served.port, token)) as newest:
        last = int(newest.next()[1])
    for follower in followers:
        until(lambda f=follower: f.seen and f.seen[-1] >= last, "a reader to catch up")
        follower.end()
    assert served.end() == 0  # whoever reads is let go
    for follower in followers:
        follower.thread.join(LIMIT)
        assert follower.seen == list(range(1, len(follower.seen) + 1))
        assert follower.resumed >= KILLS
    served.start()
    stream = Sse(served.port, token, 0)
    told = {data["task"] for data in stream.events(last) if data["type"] == "task.added"}
    stream.close()
    assert set(load.known) <= told
    for task in load.known[:: len(load.known) // 20]:
        assert served.ask("GET", f"/v1/task/show?task={task}", token=token)[0] == 200
