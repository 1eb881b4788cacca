"""Lists come in pages, and whoever asks for more gets more pages."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import get_origin

import pytest

from fleet.operations.catalogue import operations
from tests.integration.team import Team
from tests.integration.test_server import FLEET

LISTS = {
    operation.name: operation
    for operation in operations()
    if operation.is_read
    and get_origin(operation.reply) is tuple
    and operation.name
    not in {
        "agent.look",  # the tasks that it names, or the live runs
        "search.find",  # the newest matches: a search says more precisely what it looks for
        "land.forecast",
        "review.list",  # ranked anew each time: a cursor would mean nothing
        "land.trains",  # one for each branch that work lands on
        "task.gates",  # of one task
        "task.files",  # likewise
        "view.list",  # one person's
        "race.list",  # the newest
        "ticket.find",  # what a forge found first
        "trace.list",
        "eval.list",  # the newest
        "gateway.log",  # the end of a log
        "budget.list",
        "host.list",
        "host.doctor",  # of one host
        "limit.list",
        "model.list",  # what is declared, or runs now
        "setting.find",  # what matches best
    }
}
MANY = 250
NAMES = [f"n{number}" for number in range(3)]


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = Team(tmp_path_factory.mktemp("pages"))
    yield made
    made.served.end()


@pytest.mark.parametrize("name", LISTS)
def test_every_list_has_a_cursor_and_a_limit(name):
    known = {field.name: field.default for field in fields(LISTS[name].request)}
    assert known["before"] in {"", 0}  # the id of a row, or the number of an event
    assert 1 <= known["limit"] <= 200


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("limit", [0, -1, 201, 10**9])
def test_no_page_is_longer_than_another(team, name, limit):
    path = f"/v1/{name.replace('.', '/')}"
    status, said = team.ask("root", "POST", path, {"limit": limit, **NEEDED.get(name, {})})
    assert (status, said["code"]) == (422, "bad_input")


NEEDED = {
    "board.read": {"task": "t-1"},
    "memory.search": {"query": "n"},
    "chat.read": {"chat": "e-1"},
    "task.events": {"task": "t-1"},
}


def test_pages_follow_one_another_without_a_gap(team):
    swarms = [team.ok("ann", "POST", "/v1/swarm/create", {"name": n})["data"]["id"] for n in NAMES]
    tasks = [team.ok("ann", "POST", "/v1/task/add", {"title": n})["data"]["id"] for n in NAMES]
    asked = [{"task": task, "text": "Which?"} for task in tasks]
    for n, question in zip(NAMES, asked, strict=True):
        team.ok("ann", "POST", "/v1/message/ask", question)
        team.ok("ann", "POST", "/v1/memory/store", {"key": n, "value": "n"})
        team.ok("ann", "POST", "/v1/file/claim", {"path": n})
        team.ok("ann", "POST", "/v1/mail/send", {"to": "ann", "text": n})
        team.ok("ann", "POST", "/v1/checkpoint/save", {"summary": {"goal": n, "now": n}})
        team.ok("ann", "POST", "/v1/board/post", {"task": swarms[0], "payload": {}})
        team.ok("ann", "POST", "/v1/task/add", {"title": n, "spec": {"priority": 1}})
    for name, more in {
        "task.list": {}, "task.ready": {}, "task.issues": {}, "agent.list": {"all": True},
        "message.questions": {}, "memory.list": {}, "memory.search": {"query": "n"},
        "file.list": {}, "mail.list": {}, "checkpoint.list": {}, "board.read": {"task": swarms[0]},
        "swarm.list": {}, "member.list": {},
    }.items():  # fmt: skip
        path = f"/v1/{name.replace('.', '/')}"
        whole = team.ok("ann", "POST", path, {"limit": 200, **more})["data"]
        assert len(whole) >= (1 if name == "member.list" else 3), name
        found: list = []
        while page := team.ok("ann", "POST", path, {"limit": 1, **more} | _after(found))["data"]:
            found += page
            assert len(found) <= len(whole), name
        assert [_id(row) for row in found] == [_id(row) for row in whole], name


def _id(row: dict) -> str:
    return row.get("id") or row["task"]


def _after(found: list) -> dict:
    return {"before": _id(found[-1])} if found else {}


def test_a_command_asks_for_as_many_pages_as_it_needs(team):
    before = len(_listed(team))
    for number in range(MANY):
        team.ok("root", "POST", "/v1/task/add", {"title": f"Task {number}"})
    found = _listed(team)
    assert len(found) == len({row["id"] for row in found}) == before + MANY


def _listed(team) -> list:
    env = team.served.env | {
        "FLEET_URL": f"http://127.0.0.1:{team.served.port}",
        "FLEET_TOKEN": team.tokens["root"],
    }
    words = [FLEET, "tasks", "--limit", "1000", "--json"]
    done = subprocess.run(
        words, env=env, cwd=team.repo, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["data"]


def test_a_teams_tasks_cost_about_what_a_plain_list_costs(team):
    """Of the server's processor: a query for each task would take five times as much."""
    for number in range(50):
        team.ok("eve", "POST", "/tasks", {"subject": f"Task {number}", "toHandle": "eve"})
    plain = _seconds_for(team, "/v1/task/list?all=true&limit=50")
    assert _seconds_for(team, "/teams/blue/tasks?limit=50") < 3 * plain + 0.05


def _seconds_for(team, path: str) -> float:
    team.ok("eve", "GET", path)
    before = _processor_seconds(team)
    for _ in range(60):
        team.ok("eve", "GET", path)
    return _processor_seconds(team) - before


def _processor_seconds(team) -> float:
    used = Path(f"/proc/{team.served.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")
