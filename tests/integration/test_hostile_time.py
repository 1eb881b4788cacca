"""Those who send slowly, ask too often, come too late or too wide: nobody else notices."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest

from fleet.app import App
from fleet.app.agent_environment import coder_env
from fleet.app.token_keys import own_token
from fleet.domain.access import Actor, Role
from fleet.domain.entry import EntryKind
from fleet.domain.errors import Refused
from fleet.operations.tasks.change import AddTask
from fleet.ports import EntryQuery
from fleet.server.http.guard import Rates
from fleet.server.http.idempotency import DAY, KEYS_PER_CLEANING, once
from fleet.server.run import RunningServer
from fleet.testing.clock import FakeClock
from fleet.testing.memory_store import MemoryStore
from tests.integration.hostile import HOST, Answer, heard
from tests.wait import LIMIT

PATIENCE = 1.0
BODY = b"POST /v1/task/add HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    root = tmp_path_factory.mktemp("slow")
    return App(root, {"FLEET_HOME": str(root / "home"), "HOME": str(root), "PATH": "/usr/bin:/bin"})


@pytest.fixture(scope="module")
def serving(app):
    """In this process, and less patient than usual."""
    made = []
    begun = threading.Event()

    def serve() -> None:  # the store is for the thread that opened it
        made.append(RunningServer(app, host="127.0.0.1", port=0, patience=PATIENCE))
        made[0].run(lambda _: begun.set())

    thread = threading.Thread(target=serve)
    thread.start()
    assert begun.wait(LIMIT)
    yield made[0]
    made[0].stop()
    thread.join(LIMIT)


@pytest.fixture
def line(serving):
    with socket.create_connection(("127.0.0.1", serving.port), timeout=LIMIT) as made:
        yield made


@pytest.fixture(scope="module")
def token(app):
    actor = Actor("ann", Role.TEAM_LEAD, "red")
    return own_token(app.home.path, actor, seconds=600).encode()


def drip(line: socket.socket, byte: bytes) -> bytes:
    """A byte at a time, until somebody has had enough."""
    with contextlib.suppress(OSError):
        while True:
            line.sendall(byte)
            time.sleep(0.05)
    return heard(line)


def is_well(serving) -> bool:
    with socket.create_connection(("127.0.0.1", serving.port), timeout=LIMIT) as other:
        other.sendall(b"GET /health HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
        return heard(other).startswith(b"HTTP/1.1 200 ")


def test_whoever_says_nothing_is_not_waited_for(serving, line):
    said = Answer(heard(line)).must_be_a_problem()
    assert (said["status"], said["code"]) == (408, "too_slow")


def test_headers_that_drip_in_are_not_waited_for(serving, line):
    line.sendall(b"GET /health HTTP/1.1\r\n" + HOST + b"X: ")
    assert Answer(drip(line, b"y")).must_be_a_problem()["code"] == "too_slow"
    assert is_well(serving)


def test_a_body_that_drips_in_is_not_waited_for(serving, line, token):
    line.sendall(BODY + b"Authorization: Bearer " + token + b"\r\nContent-Length: 9000\r\n\r\n")
    assert Answer(drip(line, b" ")).must_be_a_problem()["code"] == "too_slow"


def test_chunks_that_drip_in_are_not_waited_for(serving, line, token):
    line.sendall(
        BODY + b"Authorization: Bearer " + token + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    assert Answer(drip(line, b"1\r\n \r\n")).must_be_a_problem()["code"] == "too_slow"


def test_a_body_that_drips_in_after_its_refusal_is_cut_off(serving, line):
    """Nobody with no token holds a line by it."""
    line.sendall(BODY + b"Content-Length: 9000\r\n\r\n")
    assert Answer(drip(line, b" ")).must_be_a_problem()["code"] == "no_token"


def test_a_second_request_on_a_line_has_its_time_too(serving, line):
    line.sendall(b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n")
    assert line.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
    time.sleep(PATIENCE * 1.5)  # to be idle is no offence
    line.sendall(b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n")
    assert line.recv(1 << 16).startswith(b"HTTP/1.1 200 ")
    assert Answer(drip(line, b"G")).must_be_a_problem()["code"] in {"too_slow", "not_http"}


def test_a_hundred_who_are_slow_delay_nobody(serving):
    with contextlib.ExitStack() as held:
        for _ in range(100):
            slow = socket.create_connection(("127.0.0.1", serving.port), timeout=LIMIT)
            held.enter_context(slow).sendall(b"GET /health HTT")
        assert is_well(serving)


def test_a_fleet_asks_as_often_as_it_likes_and_a_flood_waits(serving):
    now = [0.0]
    rates = Rates(200.0, 2000.0, clock=lambda: now[0])
    for second in range(60):  # twenty agents, each five times a second
        now[0] = float(second)
        assert not any(rates.wait("fleet") for _ in range(100))
    flood = [rates.wait("flood") for _ in range(3000)]
    assert flood.count(0.0) == 2000
    assert 0 < flood[-1] < 1
    assert rates.wait("somebody else") == 0
    now[0] += 1
    assert [rates.wait("flood") for _ in range(300)].count(0.0) == 200


def test_a_flood_is_told_how_long_to_wait(line, token):
    ask = (
        b"GET /v1/task/list?limit=1 HTTP/1.1\r\n"
        + HOST
        + b"Authorization: Bearer "
        + token
        + b"\r\n\r\n"
    )
    for _ in range(100):
        line.sendall(ask * 100)
        answers = b""
        while answers.count(b"HTTP/1.1 ") < 100 or not answers.endswith((b"}", b"]")):
            answers += (more := line.recv(1 << 20))
            assert more
        if b"HTTP/1.1 429 " in answers:
            break
    refused = answers[answers.index(b"HTTP/1.1 429 ") :]
    answer = Answer(refused[: refused.find(b"HTTP/1.1 ", 1) + 1 or None].rstrip(b"H"))
    assert answer.must_be_a_problem()["code"] == "too_many_requests"
    assert int(answer.headers["retry-after"]) >= 1


def test_what_was_replied_is_forgotten_when_its_day_is_over(app):
    clock = FakeClock()
    store = MemoryStore(clock)
    context = app.context._replace(store=store, actor=Actor("ann", Role.TEAM_LEAD, "red"))
    for day in range(3):
        for number in range(KEYS_PER_CLEANING):
            once(context, AddTask("x"), f"{day}-{number}")
        clock.advance(DAY / 1_000_000 + 1)
    kept = store.entries(EntryQuery(EntryKind.ONCE, "red", limit=1000))
    assert len(kept) <= KEYS_PER_CLEANING


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_a_wider_address_without_a_secret_is_refused(app, host):
    with pytest.raises(Refused) as caught:
        RunningServer(app, host=host, port=0)
    assert "JWT_SECRET" in caught.value.fix


def test_an_agent_is_not_told_the_secrets_that_tokens_are_signed_with(app, tmp_path):
    home = {"FLEET_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    given = {**home, "JWT_SECRET": "s" * 32, "JWT_SECRET_PREVIOUS": "p" * 32}
    env = coder_env(App(app.cwd, given), "t-1", "t-1.1")
    assert env["FLEET_RUN_ID"] == "t-1.1"
    assert not {"s" * 32, "p" * 32} & set(env.values())


def test_a_wider_address_with_a_secret_that_can_be_guessed_is_refused(app, monkeypatch):
    monkeypatch.setenv("JWT_SECRET", "secret")
    with pytest.raises(Refused):
        RunningServer(app, host="0.0.0.0", port=0)
