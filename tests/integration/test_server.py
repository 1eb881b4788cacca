from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wait import LIMIT

FLEET = str(Path(sys.executable).parent / "fleet")


class Served:
    """A server in a process of its own, over a home of its own."""

    def __init__(self, root: Path) -> None:
        home = root.parent / f"{root.name}-me"  # of the place in which it is, nothing is offered
        self.env = {**os.environ, "FLEET_HOME": str(root / "home"), "HOME": str(home)}
        self.cwd = root
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            [FLEET, "serve", "--port", "0", "--no-run"],
            cwd=self.cwd,
            env=self.env,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        said = self.process.stderr.readline()
        self.port = int(re.search(r":(\d+)\.", said)[1])

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait(LIMIT)
        self.process.stderr.close()

    def token(self, *words: str) -> str:
        done = subprocess.run(
            [FLEET, "token", "create", *words],
            cwd=self.cwd,
            env=self.env,
            capture_output=True,
            text=True,
            check=True,
        )
        return re.search(r"^export FLEET_TOKEN=(\S+)$", done.stdout, re.MULTILINE)[1]

    def ask(self, method: str, path: str, body=None, *, token: str = "", headers=None):
        """The status and the document."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LIMIT)
        said = {"Authorization": f"Bearer {token}"} if token else {}
        text = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        connection.request(method, path, text, said | (headers or {}))
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, json.loads(data) if data else None


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    made = Served(tmp_path_factory.mktemp("served"))
    yield made
    made.end()


@pytest.fixture(scope="module")
def lead(served):
    return served.token("ann", "--role", "coordinator")


def test_what_is_new_has_not_been_changed_since(served, lead):
    said = served.ask("POST", "/v1/memory/store", {"key": "port", "value": "5433"}, token=lead)[1]
    assert said["data"]["at"] == said["data"]["changed_at"]


def test_an_operation_is_asked_for_over_http(served, lead):
    status, said = served.ask("POST", "/v1/task/add", {"title": "Over HTTP"}, token=lead)
    assert (status, said["kind"], said["data"]["title"]) == (201, "task.add", "Over HTTP")
    task = said["data"]["id"]
    status, said = served.ask("GET", f"/v1/task/show?task={task}", token=lead)
    assert (status, said["data"]["task"]["id"]) == (200, task)


def test_what_is_wrong_is_said_with_a_code_and_a_fix(served, lead):
    status, said = served.ask("GET", "/v1/task/show?task=t-999999", token=lead)
    assert (status, said["code"], said["status"]) == (404, "not_found", 404)
    status, said = served.ask("POST", "/v1/task/add", {"titel": "x"}, token=lead)
    assert (status, said["code"]) == (422, "bad_input")
    assert "no field 'titel'" in said["detail"]
    assert "title" in said["fix"]
    status, said = served.ask("POST", "/v1/task/add", {"title": 3}, token=lead)
    assert status == 422
    status, said = served.ask("POST", "/v1/task/add", b"{", token=lead)
    assert (status, said["code"]) == (422, "not_json")
    status, said = served.ask("GET", "/nowhere", token=lead)
    assert (status, said["code"]) == (404, "no_such_path")


@pytest.mark.parametrize("token", ["", "x", "a.b.c"])
def test_nobody_gets_in_without_a_token_of_ours(served, token):
    status, said = served.ask("GET", "/v1/task/list", token=token)
    assert status == 401
    assert "fleet token create" in said["fix"]


def test_a_monitor_reads_and_changes_nothing(served):
    token = served.token("mon", "--role", "monitor")
    assert served.ask("GET", "/v1/task/list", token=token)[0] == 200
    status, said = served.ask("POST", "/v1/task/add", {"title": "x"}, token=token)
    assert (status, said["code"]) == (403, "forbidden")


def test_a_team_sees_only_its_own(served, lead):
    red, blue = (served.token("a", "--role", "team-lead", "--team", t) for t in ("red", "blue"))
    task = served.ask("POST", "/v1/task/add", {"title": "Ours"}, token=red)[1]["data"]["id"]
    assert served.ask("GET", f"/v1/task/show?task={task}", token=red)[0] == 200
    assert served.ask("GET", f"/v1/task/show?task={task}", token=blue)[0] == 404
    rows = served.ask("GET", "/v1/task/list", token=blue)[1]["data"]
    assert task not in [row["id"] for row in rows]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Content-Length": str(10 << 20)}, 413),
    ],
)
def test_what_is_not_for_us_or_too_large_is_refused_at_once(served, lead, headers, status):
    assert served.ask("GET", "/v1/task/list", token=lead, headers=headers)[0] == status


def test_every_operation_is_described(served):
    from fleet.operations.catalogue import operations

    status, said = served.ask("GET", "/openapi.json")
    assert (status, said["openapi"]) == (200, "3.1.0")
    for operation in operations():
        assert f"/v1/{operation.name.replace('.', '/')}" in said["paths"]


def events(served, token, after="", most=3):
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=LIMIT)
    headers = {"Authorization": f"Bearer {token}"} | ({"Last-Event-ID": after} if after else {})
    connection.request("GET", "/events", headers=headers)
    answer = connection.getresponse()
    found = []
    while len(found) < most:
        line = answer.readline().decode().strip()
        if line.startswith("data: {") and line != "data: {}":
            found.append(json.loads(line.removeprefix("data: ")))
    connection.close()
    return found


def test_events_follow_the_number_that_was_seen_last(served, lead):
    for n in range(3):
        served.ask("POST", "/v1/task/add", {"title": f"Event {n}"}, token=lead)
    first = events(served, lead, "0", most=2)
    then = events(served, lead, str(first[-1]["number"]), most=1)
    assert [e["number"] for e in (*first, *then)] == [1, 2, 3]


def test_a_team_hears_nothing_of_what_another_keeps(served, lead):
    red, blue = (served.token("b", "--role", "worker", "--team", t) for t in ("red", "blue"))
    after = str(events(served, lead, "0", most=1)[0]["number"])
    for token in (red, blue):
        said = served.ask("POST", "/v1/memory/store", {"key": "k", "value": "v"}, token=token)
        assert said[0] == 200, said
    assert events(served, blue, after, most=1)[0]["data"]["team"] == "blue"
