"""Large bodies: those for which the relay has no memory wait, unread, for those before them."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from tests.integration.loopback_relay import MODEL, LoopbackRelay
from tests.wait import LIMIT, until

WORDS = "x" * 2_000_000
BODY = json.dumps(
    {"stream": False, "messages": [{"role": "user", "images": [WORDS], "content": "Hi"}]}
).encode()
BEGUN = 1000  # bytes of a body that a client sends at first
COST = 2 * len(BODY)


@pytest.fixture
def loopback():
    made = []

    def make(**manner):
        made.append(LoopbackRelay(1, **manner))
        return made[-1].open(slots=8)

    yield make
    for each in made:
        each.close()


def begun(it, *, body=BODY, length=None) -> socket.socket:
    """A client that has sent the beginning of its body."""
    raw = socket.create_connection(("127.0.0.1", it.port), timeout=LIMIT)
    it._stack.callback(raw.close)
    head = f"POST /m/{MODEL}/api/chat HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    raw.sendall(f"{head}Content-Length: {length or len(body)}\r\n\r\n".encode() + body[:BEGUN])
    return raw


def finished(raw: socket.socket) -> bytes:
    """The rest is sent; the status line of the answer."""
    raw.sendall(BODY[BEGUN:])
    return raw.makefile("rb").readline()


def large(it) -> dict[str, int]:
    return it.status["large_bodies"]


def holds(it, bodies: int, waiting: int) -> None:
    until(
        lambda: large(it) == {"reserved": bodies * COST, "waiting": waiting},
        why=lambda: str(large(it)),
    )


def test_no_more_is_held_than_the_bound_and_all_are_answered(loopback):
    it = loopback()
    it.relay.bodies.most = 3 * COST
    clients = []
    for count in range(1, 6):
        clients.append(begun(it))
        holds(it, min(count, 3), max(0, count - 3))
    assert it.chat().status == 200, "small ones pass"
    for left, client in enumerate(reversed(clients[:3])):
        assert finished(client).startswith(b"HTTP/1.1 200")
        holds(it, min(3, 4 - left), max(0, 1 - left))
    for client in clients[3:]:
        assert finished(client).startswith(b"HTTP/1.1 200")
    holds(it, 0, 0)


def test_one_that_is_larger_than_the_bound_goes_alone(loopback):
    it = loopback()
    it.relay.bodies.most = COST // 2
    first, second = begun(it), begun(it)
    holds(it, 1, 1)
    assert finished(first).startswith(b"HTTP/1.1 200")
    assert finished(second).startswith(b"HTTP/1.1 200")


def test_a_client_that_leaves_gives_the_room_back(loopback):
    it = loopback()
    it.relay.bodies.most = COST
    first = begun(it)
    holds(it, 1, 0)
    second = begun(it)
    holds(it, 1, 1)
    second.close()
    holds(it, 1, 0)
    first.close()
    holds(it, 0, 0)


def test_once_its_answer_has_begun_a_body_is_held_no_longer(loopback):
    it = loopback(stall=1)
    connection = it.connect()
    connection.request("POST", f"/m/{MODEL}/api/chat", BODY.replace(b"false", b"true", 1))
    assert connection.getresponse().read1()
    assert it.nodes[0].busy == 1
    holds(it, 0, 0)


def test_a_body_of_no_announced_length_waits_once_it_is_large(loopback):
    it = loopback()
    first = begun(it)
    holds(it, 1, 0)
    connection, answers = it.connect(), []

    def ask() -> None:
        pieces = (BODY[at : at + 100_000] for at in range(0, len(BODY), 100_000))
        connection.request("POST", f"/m/{MODEL}/api/chat", pieces, encode_chunked=True)
        answers.append(connection.getresponse().status)

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: large(it)["waiting"] == 1)
    assert finished(first).startswith(b"HTTP/1.1 200")
    asking.join(LIMIT)
    assert answers == [200]


def test_a_body_that_is_announced_as_too_large_is_refused_unread(loopback):
    it = loopback()
    raw = begun(it, length=(256 << 20) + 1)
    assert raw.makefile("rb").readline().startswith(b"HTTP/1.1 413")
    holds(it, 0, 0)
