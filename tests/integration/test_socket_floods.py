"""WebSockets that send as fast as they can: they are cut off, or wait, and nobody else does."""

from __future__ import annotations

import statistics
import threading
import time
from contextlib import closing, suppress

import pytest

from fleet.server.live.socket_wire import BURST, FIRST_BYTES
from tests.integration.listeners import Ws
from tests.integration.test_server import Served

PING = bytes([0x89, 0x80, 1, 2, 3, 4])
TEXT = bytes([0x81, 0x82, 0, 0, 0, 0]) + b"{}"
MANY = 5000  # frames in one piece
HOSTILE = 4


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    made = Served(tmp_path_factory.mktemp("floods"))
    yield made
    made.end()


def flood(port: int, token: str, frame: bytes, over: threading.Event) -> None:
    """As somebody who comes back whenever it is cut off."""
    while not over.is_set():
        with suppress(OSError), closing(Ws(port)) as ws:
            if token:
                ws.auth(token)
            ws.sock.settimeout(1.0)
            while not over.is_set():
                ws.sock.sendall(frame * MANY)


@pytest.mark.parametrize("known", [False, True], ids=["strangers", "known"])
@pytest.mark.parametrize("frame", [PING, TEXT], ids=["pings", "text"])
def test_hostile_sockets_keep_nobody_waiting(served, frame, known):
    over, token = threading.Event(), served.token("eve") if known else ""
    threads = [
        threading.Thread(target=flood, args=(served.port, token, frame, over))
        for _ in range(HOSTILE)
    ]
    for thread in threads:
        thread.start()
    try:
        took = []
        for _ in range(20):
            began = time.monotonic()
            assert served.ask("GET", "/health")[0] == 200
            took.append(time.monotonic() - began)
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert statistics.median(took) < 1, sorted(took)  # it was 2 to 8 seconds on an idle machine


@pytest.mark.parametrize("said", [PING * MANY, b"x" * (FIRST_BYTES + 1)], ids=["frames", "bytes"])
def test_a_socket_that_said_not_who_it_is_is_cut_off_after_a_few_frames(served, said):
    with closing(Ws(served.port)) as ws, pytest.raises(OSError, match=r"reset|pipe"):
        ws.sock.sendall(said * 1000)


def test_a_socket_with_a_wrong_token_is_told_why_and_closed_at_once(served):
    ws = Ws(served.port)
    began = time.monotonic()
    ws.send({"type": "auth", "token": "wrong"})
    assert ws.next()["code"] == "bad_token"
    assert ws.next() is None
    assert ws.closed == 1008
    assert ws.sock.recv(1) == b""  # without an answer of ours to its closing frame
    assert time.monotonic() - began < 8, "it waited for the closing handshake"
    ws.close()


def test_a_known_socket_that_sends_too_fast_waits_and_loses_nothing(served):
    ws = Ws(served.port)
    ws.auth(served.token("ann", "--role", "coordinator"))
    count = int(BURST) + 20
    began = time.monotonic()
    for _ in range(count):
        ws.send({"type": "ping"})
    for _ in range(count):
        ws.until("pong")
    assert time.monotonic() - began > 0.3, "nothing slowed it down"
    ws.close()
