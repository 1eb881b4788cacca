"""What a page watches over its socket: whole rows, and only those of its team."""

from __future__ import annotations

import json
import time

import pytest

from tests.integration.listeners import Inside, Ws
from tests.wait import until


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Inside(tmp_path_factory.mktemp("watching"))
    yield made
    made.end()


@pytest.fixture
def root(server):
    token = server.token("root")
    server.ok(token, "member.seen")
    return token


@pytest.fixture
def watching(server):
    sockets = []

    def make(token: str, **what) -> Ws:
        socket = Ws(server.port)
        sockets.append(socket)
        socket.auth(token)
        socket.send({"type": "watch", **what})
        return socket

    yield make
    for socket in sockets:
        socket.close()


def rows_until(socket: Ws, task: str, status: str) -> dict:
    while True:
        frame = socket.until("rows")[-1]
        for row in frame["rows"]:
            if (row["id"], row["status"]) == (task, status):
                return row


def test_a_task_that_changes_comes_as_the_row_that_a_list_has(server, root, watching):
    socket = watching(root, rows={})
    assert socket.until("watching")
    task = server.add(root, "Paint the fence")
    row = rows_until(socket, task, "ready")
    assert row == server.ok(root, "task.list", tasks=[task])[0]
    server.ok(root, "task.pause", task=task)
    rows_until(socket, task, "paused")


def test_a_task_that_waited_comes_when_what_it_waited_for_is_done(server, root, watching):
    first = server.add(root)
    then = server.ok(root, "task.add", title="Then", after=[first])["id"]
    socket = watching(root, rows={})
    socket.until("watching")
    server.ok(root, "task.close", task=first)
    rows_until(socket, then, "ready")


def test_what_changed_while_the_socket_connected_comes_first(server, root, watching):
    other = server.token("eve", "team-lead", "red")
    task = server.add(root, "Added before anybody watched")
    socket = watching(root, rows={"since": 60})
    assert socket.until("watching")[-1]["changed"] > 0
    rows_until(socket, task, "ready")
    own = server.ok(other, "task.add", title="Own")["id"]
    theirs = watching(other, rows={"since": 60})
    assert theirs.until("watching")[-1]["changed"] == 1
    rows_until(theirs, own, "ready")
    for wrong in (-1, 4000, "x", True):
        error = watching(root, rows={"since": wrong}).until("error")[-1]
        assert error["code"] == "bad_input"


def test_rows_of_another_team_do_not_come(server, root, watching):
    other = server.token("eve", "team-lead", "red")
    socket = watching(other, rows={})
    socket.until("watching")
    hidden = server.add(root, "Hidden")
    own = server.ok(other, "task.add", title="Own")["id"]
    seen = []
    while own not in seen:
        seen += [row["id"] for row in socket.until("rows")[-1]["rows"]]
    assert hidden not in seen


def test_machines_and_landing_come_at_once_and_then_as_they_change(server, root, watching):
    socket = watching(root, nodes="")
    frame = socket.until("nodes")[-1]
    for part, operation in {
        "nodes": "node.list", "hosts": "host.list", "limits": "limit.list", "gateway": "gateway.show",
    }.items():  # fmt: skip
        assert type(frame[part]) is type(server.ok(root, operation))
    socket.send({"type": "watch", "land": ""})
    assert socket.until("land")[-1]["trains"] == []
    socket.send({"type": "unwatch", "nodes": ""})
    assert socket.until("unwatched")
    socket.send({"type": "watch", "nodes": ""})  # again: at once, though nothing changed
    assert socket.until("nodes")[-1]["hosts"] == frame["hosts"]


def test_a_request_that_the_relay_answers_comes_when_it_has_ended(server, root, watching):
    socket = watching(root, traces="")
    socket.until("watching")
    log = server.home / "logs" / "traces.jsonl"
    log.parent.mkdir(exist_ok=True)
    number = 0

    def is_told() -> bool:
        nonlocal number
        number += 1
        line = {
            "at": time.time_ns() // 1000,
            "agent": f"planner-{number}",
            "model": "m",
            "node": "laptop",
            "outcome": "ok",
            "status": 200,
            "total": 0.0,
        }
        with log.open("a") as file:
            file.write(json.dumps(line) + "\n")
        socket.send({"type": "ping"})
        return any(frame["type"] == "traces" for frame in socket.until("pong"))

    until(is_told, "the trace")


def test_what_does_not_concern_one_is_refused(server, root, watching):
    task = server.add(root)
    for what in ({"said": f"{task}.1"}, {"screen": task}, {"other": 1}):
        error = watching(root, **what).until("error")[-1]
        assert error["code"] in {"not_found", "no_run", "bad_input"}, error


def test_a_role_that_may_not_answer_sees_no_screen(server, watching):
    monitor = server.token("mo", "monitor")
    error = watching(monitor, screen="t-1").until("error")[-1]
    assert error["code"] == "forbidden"


def test_nobody_is_kept_when_the_socket_is_gone(server, root, watching):
    socket = watching(root, rows={})
    socket.until("watching")
    socket.send({"type": "unwatch", "rows": {}})
    socket.until("unwatched")
    server.add(root)
    socket.send({"type": "ping"})
    assert not [frame for frame in socket.until("pong") if frame["type"] == "rows"]
