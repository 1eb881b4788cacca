"""More connections than there are files: strangers are shown out, whoever has a token is answered."""

from __future__ import annotations

import http.client
import json
import resource
import select
import socket
from contextlib import ExitStack, suppress

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.integration.listeners import Inside
from tests.wait import LIMIT, until

HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
FILES = 1024  # the usual limit of a service
STRANGERS = 1100


@pytest.fixture
def many_files():
    """For ourselves."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 4 * FILES:
        pytest.skip("this process may not open enough files itself")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def served(tmp_path, many_files):
    """Neither of its limits is higher, so it cannot raise one."""
    made = Served(Scratch(tmp_path), under=("prlimit", f"--nofile={FILES}:{FILES}"))
    yield made
    made.close()


def stranger(port: int, said: bytes = b"") -> socket.socket:
    line = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
    line.sendall(said)
    return line


def shown_out(line: socket.socket) -> bytes:
    """What it was told before the connection was closed; it must have been."""
    told = b""
    try:
        while more := line.recv(1 << 16):
            told += more
    except ConnectionResetError:
        pass
    return told


@pytest.mark.parametrize("said", [HEALTH, b"", b"GET / HTTP/1.1\r\n"], ids=["idle", "mute", "slow"])
def test_a_flood_of_strangers_ends_nothing_and_keeps_nobody_with_a_token_out(served, said):
    token = served.token()
    with ExitStack() as stack:
        strangers = [stack.enter_context(stranger(served.port, said)) for _ in range(STRANGERS)]
        script = {"title": "In the flood", "prompt": "say Done.", "spec": {"coder": "scripted"}}
        status, task = served.ask("POST", "/v1/task/add", script, token=token)
        assert status == 201, task
        show = f"/v1/task/show?task={task['data']['id']}"

        def is_done() -> bool:
            return served.ask("GET", show, token=token)[1]["data"]["task"]["state"] == "done"

        until(is_done, served.said)  # the supervisor inside is well, too
        assert served.process.poll() is None, served.said()
        told = shown_out(strangers[0])
    if not said:
        assert told.startswith(b"HTTP/1.1 503 ")
        body = json.loads(told.partition(b"\r\n\r\n")[2])
        assert (body["code"], body["fix"]) == ("too_many_connections", "Try again later.")
    assert "Traceback" not in served.said(), served.said()


def test_a_connection_that_showed_a_token_outlives_those_that_did_not(served):
    token = served.token()
    kept = http.client.HTTPConnection("127.0.0.1", served.port, timeout=LIMIT)
    headers = {"Authorization": f"Bearer {token}"}
    kept.request("GET", "/v1/task/list", headers=headers)
    assert kept.getresponse().read()
    line = kept.sock
    with ExitStack() as stack:
        for _ in range(STRANGERS):
            stack.enter_context(stranger(served.port, HEALTH))
        kept.request("GET", "/v1/task/list", headers=headers)
        assert kept.getresponse().status == 200
        assert kept.sock is line
    kept.close()


def test_the_server_may_open_as_many_files_as_the_system_allows_it(tmp_path, many_files):
    made = Served(Scratch(tmp_path), under=("prlimit", "--nofile=256:4096"))
    assert resource.prlimit(made.process.pid, resource.RLIMIT_NOFILE) == (4096, 4096)
    made.close()


@pytest.mark.parametrize("supervises", [False, True])
def test_a_server_without_files_says_so_and_goes_on_when_there_are_some(served, supervises):
    """Also when the supervisor inside has not begun yet."""
    token = served.token()
    if supervises:
        until(lambda: "Supervising" in served.said(), served.said)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    kept = http.client.HTTPConnection("127.0.0.1", served.port, timeout=LIMIT)
    kept.request("GET", "/v1/task/list", headers=headers)
    assert kept.getresponse().read()
    resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE, (8, FILES))
    script = {"title": "No files", "prompt": "say Done.", "spec": {"coder": "scripted"}}
    kept.request("POST", "/v1/task/add", json.dumps(script), headers=headers)
    task = json.loads(kept.getresponse().read())["data"]["id"]
    strangers = [stranger(served.port, HEALTH) for _ in range(3)]
    until(lambda: "open files" in served.said(), served.said)
    resource.prlimit(served.process.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
    until(lambda: served.ask("GET", "/health")[0] == 200, served.said, errors=(OSError,))

    def state() -> str:
        show = f"/v1/task/show?task={task}"
        return served.ask("GET", show, token=token)[1]["data"]["task"]["state"]

    until(lambda: state() == "done", lambda: f"{state()}: {served.said()}")
    assert served.process.poll() is None
    assert "Traceback" not in served.said(), served.said()
    for line in strangers:
        line.close()
    kept.close()


PAGE = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
FEW_FILES = 200


def one_that_does_not_read(port: int) -> socket.socket:
    """It asks for more than the kernel holds for it."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    line.settimeout(LIMIT)
    line.connect(("127.0.0.1", port))
    line.sendall(PAGE * 30)
    return line


def test_strangers_who_do_not_read_their_answers_keep_nobody_out(tmp_path, many_files):
    served = Served(Scratch(tmp_path), under=("prlimit", f"--nofile={FEW_FILES}:{FEW_FILES}"))
    try:
        with ExitStack() as lines:
            for _ in range(FEW_FILES // 2 + 20):
                with suppress(OSError):  # one before it has left for it
                    lines.enter_context(one_that_does_not_read(served.port))
            assert served.ask("GET", "/v1/task/list", token=served.token())[0] == 200
            last = lines.enter_context(stranger(served.port, HEALTH))
            assert b" 200 OK" in last.recv(100)
    finally:
        served.close()


def test_who_takes_nothing_of_an_answer_is_cut_off_and_who_takes_it_slowly_is_not(tmp_path):
    (tmp_path / "home").mkdir(mode=0o700)
    server = Inside(tmp_path, patience=0.5)
    try:
        mute, slow = one_that_does_not_read(server.port), one_that_does_not_read(server.port)
        until(lambda: len(server.connections()) == 2)
        taken = 0

        def only_the_slow_one_is_left() -> bool:
            nonlocal taken
            taken += len(slow.recv(1 << 16))
            return len(server.connections()) == 1

        until(only_the_slow_one_is_left)
        while not taken or slow in select.select([slow], [], [], 0.2)[0]:
            taken += len(got := slow.recv(1 << 16))
            assert got
        assert taken > 10 * (1 << 20)  # all of it
        mute.close()
        slow.close()
    finally:
        server.end()
