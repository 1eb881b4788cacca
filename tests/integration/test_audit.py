"""The audit trail: what a real server writes down, and who may read it."""

from __future__ import annotations

import json
import signal
import stat
import subprocess

import pytest

from tests.integration.hostile import over_the_wire
from tests.integration.listeners import Ws
from tests.integration.team import Team
from tests.integration.test_server import FLEET
from tests.wait import LIMIT, until


@pytest.fixture
def team(tmp_path):
    made = Team(tmp_path)
    yield made
    if made.served.process.poll() is None:
        made.served.end()


def records(team, *words: str) -> list[dict]:
    """As `fleet audit` prints them on the server's machine, oldest first."""
    done = subprocess.run(
        [FLEET, "audit", "--json", *words],
        cwd=team.served.cwd, env=team.served.env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(done.stdout)["data"][::-1]


def test_a_write_is_recorded_with_who_from_where_and_what(team):
    task = team.ok("bob", "POST", "/v1/task/add", {"title": "Do not print me"})["data"]["id"]
    (record,) = [r for r in records(team) if r["operation"] == "task.add"]
    assert (record["actor"], record["role"], record["team"]) == ("bob", "worker", "red")
    assert (record["address"], record["target"], record["outcome"]) == (
        "127.0.0.1",
        task,
        "allowed",
    )
    assert record["token"]
    files = list((team.served.cwd / "home" / "audit").iterdir())
    assert [stat.S_IMODE(path.stat().st_mode) for path in files] == [0o600]
    assert "Do not print me" not in files[0].read_text()
    lines = [json.loads(line) for line in files[0].read_text().splitlines()]
    assert lines[-1]["at"].endswith("Z")


def test_refusals_are_recorded_and_reads_are_not(team):
    assert team.ask("bob", "POST", "/v1/token/create", {"name": "x"})[0] == 403
    assert team.served.ask("GET", "/v1/task/list", token="x.y.z")[0] == 401
    assert team.served.ask("POST", "/auth", {"handle": "eve", "secret": "guess"})[0] == 401
    wrong = {"Host": "elsewhere.example"}
    assert team.served.ask("GET", "/health", headers=wrong)[0] == 421
    wrong = {"Origin": "https://elsewhere.example"}
    assert team.served.ask("GET", "/health", headers=wrong)[0] == 403
    team.ok("bob", "GET", "/v1/task/list")
    seen = [(record["actor"], record["code"]) for record in records(team, "--refused")]
    assert seen == [
        ("bob", "forbidden"),
        ("", "bad_token"),
        ("", "bad_secret"),
        ("", "wrong_host"),
        ("", "wrong_origin"),
    ]
    assert not [r for r in records(team) if r["operation"] == "task.list"]


def test_a_refused_socket_is_recorded(team):
    socket = Ws(team.served.port)
    socket.send({"type": "auth", "token": "x.y.z"})
    assert socket.next()["type"] == "error"
    socket.close()
    (record,) = records(team, "--refused")
    assert (record["code"], record["target"]) == ("bad_token", "WebSocket /ws")


def test_what_a_tool_does_is_recorded_with_its_address(team):
    call = {"name": "team_broadcast", "arguments": {"text": "Hello"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    reply = team.ok("bob", "POST", "/mcp", body, headers=accept)
    assert reply["result"]["isError"]
    (record,) = records(team, "--refused")
    assert (record["actor"], record["target"]) == ("bob", "tool team_broadcast")


def test_the_same_refusal_is_written_once_a_minute_and_counted(team):
    for _ in range(300):
        assert team.served.ask("GET", "/v1/task/list", token="x.y.z")[0] == 401
    mails = until(lambda: team.ok("root", "GET", "/v1/mail/list")["data"])
    assert [mail["subject"] for mail in mails] == ["Alert"]
    assert "100 requests were refused within a minute" in mails[0]["text"]
    team.served.end()
    first, rest = records(team, "--refused")
    assert (first["code"], first["count"]) == ("bad_token", 1)
    assert (rest["code"], rest["count"]) == ("bad_token", 299)


def test_acknowledged_writes_are_in_the_trail_after_kill_9(team):
    ids = [team.ok("bob", "POST", "/v1/task/add", {"title": "x"})["data"]["id"] for _ in range(50)]
    team.served.end(signal.SIGKILL)
    assert [r["target"] for r in records(team) if r["operation"] == "task.add"] == ids
    team.served.start()
    team.ok("bob", "POST", "/v1/task/add", {"title": "x"})
    numbers = [int(record["id"].removeprefix("a-")) for record in records(team)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_lead_reads_the_trail_of_its_team_and_a_worker_none(team):
    team.ok("bob", "POST", "/v1/task/add", {"title": "x"})
    team.ok("eve", "POST", "/v1/task/add", {"title": "x"})
    team.served.ask("GET", "/v1/task/list", token="x.y.z")
    data = team.ok("ann", "GET", "/v1/audit/list")["data"]
    assert {record["team"] for record in data} == {"red"}
    assert team.ask("ann", "GET", "/v1/audit/list?team=blue")[0] == 403
    assert team.ask("bob", "GET", "/v1/audit/list")[0] == 403
    data = team.ok("root", "GET", "/v1/audit/list?limit=200")["data"]
    assert {"red", "blue", "local", ""} <= {record["team"] for record in data}


def test_the_command_filters_pages_and_follows(team):
    env = team.served.env | {
        "FLEET_URL": f"http://127.0.0.1:{team.served.port}", "FLEET_TOKEN": team.tokens["root"]
    }  # fmt: skip
    for _ in range(3):
        team.ok("bob", "POST", "/v1/task/add", {"title": "x"})
    done = subprocess.run(
        [FLEET, "audit", "--actor", "bob", "--since", "1h", "-n", "2", "--json"],
        env=env, cwd=team.served.cwd, capture_output=True, text=True, check=True,
    )  # fmt: skip
    newest, older = json.loads(done.stdout)["data"]
    page = team.ok("root", "GET", f"/v1/audit/list?actor=bob&before={older['id']}")["data"]
    assert [record["operation"] for record in page] == ["task.add"]
    after = team.ok("root", "GET", f"/v1/audit/list?actor=bob&after={older['id']}")["data"]
    assert [record["id"] for record in after] == [newest["id"]]
    follow = subprocess.Popen(
        [FLEET, "audit", "--actor", "bob", "-n", "1", "-f", "--json"],
        env=env, cwd=team.served.cwd, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert json.loads(follow.stdout.readline())["data"]["id"] == newest["id"]
        task = team.ok("bob", "POST", "/v1/task/add", {"title": "x"})["data"]["id"]
        assert json.loads(follow.stdout.readline())["data"]["target"] == task
    finally:
        follow.terminate()
        follow.wait(LIMIT)
        follow.stdout.close()


def test_reads_are_recorded_when_the_setting_says_all(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text("server: {audit: all}\n")
    team = Team(tmp_path)
    try:
        team.ok("bob", "GET", "/v1/task/list")
        assert [r["operation"] for r in records(team, "--actor", "bob")] == ["task.list"]
    finally:
        team.served.end()


def test_what_is_refused_before_a_whole_request_came_is_recorded_and_counted(team):
    port = team.served.port
    for _ in range(3):
        over_the_wire(port, b"NONSENSE\r\n\r\n")
    over_the_wire(port, b"GET /health HTTP/1.1\r\nHost: x\r\nA: " + b"a" * 70_000 + b"\r\n\r\n")
    refused = {r["code"]: r for r in records(team, "--refused") if not r["operation"]}
    assert {"not_http", "too_large"} <= refused.keys()
    assert refused["not_http"]["address"] == "127.0.0.1"
    assert [r["code"] for r in records(team, "--refused")].count("not_http") == 1  # of one minute
    _, measured = team.ask("root", "GET", "/metrics/json")
    assert {row["labels"]["reason"]: row["value"] for row in rows_of(measured)}["not_http"] == 3


def rows_of(measured):
    return [row for row in measured["data"] if row["name"] == "fleet_refusals_total"]
