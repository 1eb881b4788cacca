"""Answering an agent's permission dialog from outside: by commands, over HTTP and over MCP."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.wait import until

ACCEPT = {"Accept": "application/json, text/event-stream"}
ASKS = "run: rm -rf build"


@pytest.fixture
def scratch(tmp_path):
    made = Scratch(tmp_path)
    yield made
    for agent in made.data("list", "--everywhere"):
        made.type("kill", agent["task"], "--force")


def doing(scratch, **given) -> str:
    return scratch.data("list", **given)[0]["doing"]


def asking(scratch) -> None:
    scratch("create", "seat", "--prompt", "errand 0 rm -rf build")
    until(lambda: doing(scratch) == "permission", "its dialog")


def results(scratch) -> list[str]:
    lines = (scratch.home / "runs" / "t-1.1" / "transcript").read_text().splitlines()
    return [s["text"] for s in map(json.loads, lines) if s["kind"] == "tool_result"]


def test_an_agent_that_asks_is_approved_from_outside(scratch):
    asking(scratch)
    listed = scratch.type("list")
    assert f"seat asks for permission: {ASKS}  → fleet approve t-1, fleet deny t-1" in listed.stderr
    assert scratch.data("list")[0]["asks"] == ASKS
    assert f"It asks for permission: {ASKS}" in scratch.type("show", "seat").stderr
    explained = scratch.type("explain", "seat")
    assert ASKS in explained.stdout
    assert "fleet approve seat" in explained.stderr
    assert "fleet deny seat" in scratch.fails("prompt", "seat", "yes", status=1)
    assert scratch("approve", "seat") == f"Allowed t-1: {ASKS}\n"
    until(lambda: results(scratch) == ["done"], "that it was allowed")
    until(lambda: doing(scratch) == "waiting", "the end of its turn")
    assert "asks for no permission now" in scratch.fails("approve", "seat", status=1)


def test_an_agent_that_asks_is_denied_from_outside(scratch):
    asking(scratch)
    assert "something else" in scratch.fails("deny", "seat", "--asks", "run: ls", status=1)
    assert doing(scratch) == "permission"
    row = scratch.data("deny", "seat", "--asks", ASKS)
    assert (row["task"], row["allowed"]) == ("t-1", False)
    until(lambda: results(scratch) == ["denied"], "that it was denied")


def test_what_is_allowed_from_now_on_is_not_asked_for_again(scratch):
    script = "permission rm -rf build\npermission rm -rf dist\npermission mv a b"
    scratch("create", "seat", "--prompt", script)
    until(lambda: doing(scratch) == "permission", "its dialog")
    assert "always" in scratch.fails("deny", "seat", "--always", status=2)
    assert "--always chooses: Yes, always run rm" in scratch.type("explain", "seat").stderr
    (item,) = scratch.data("inbox")
    assert item["always"] == "Yes, always run rm"
    assert "fleet approve t-1 --always" in [action["command"] for action in item["actions"]]
    assert scratch("approve", "seat", "--always") == f"Always allowed t-1: {ASKS}\n"
    until(lambda: results(scratch) == ["done", "done"], "that both ran")
    until(lambda: scratch.data("list")[0]["asks"] == "run: mv a b", "the dialog about another")
    scratch("deny", "seat")
    until(lambda: results(scratch) == ["done", "done", "denied"], "that it was denied")


def test_a_server_tells_who_asks_and_takes_the_answer_of_who_may_give_it(scratch):
    with closing(Served(scratch, "--no-run")) as served:
        asking(scratch)
        root, lead, worker = (
            served.token(role, role, "--team", "local")
            for role in ("coordinator", "team-lead", "worker")
        )
        (seen,) = served.ask("GET", "/orchestrate/workers", token=root)[1]
        assert (seen["state"], seen["asks"]) == ("permission", ASKS)
        sent = {"message": "Hurry."}
        status, words = served.ask("POST", "/orchestrate/send/seat", sent, token=root)
        assert (status, words["status"]) == (200, "queued")
        assert ASKS in words["waitsFor"]
        far = {"FLEET_URL": served.url, "FLEET_TOKEN": root}
        assert doing(scratch, env=far) == "permission"
        body = {"task": "seat", "allow": True}
        for token in (worker, lead):
            assert served.ask("POST", "/v1/run/permit", body, token=token)[0] == 403
        deny = {"name": "team_permit", "arguments": {"handle": "seat", "allow": False}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": deny}
        refused = served.ask("POST", "/mcp", call, token=worker, headers=ACCEPT)[1]
        assert refused.get("error") or refused["result"]["isError"]
        assert doing(scratch) == "permission"
        done = served.ask("POST", "/v1/run/permit", body | {"allow": False}, token=lead)
        assert done[0] < 300, done
        until(lambda: results(scratch) == ["denied"], "that it was denied")
        (seen,) = served.ask("GET", "/orchestrate/workers", token=root)[1]
        assert seen["state"] in {"ready", "working"}


def test_a_coordinator_allows_over_a_server(scratch):
    with closing(Served(scratch, "--no-run")) as served:
        asking(scratch)
        far = {"FLEET_URL": served.url, "FLEET_TOKEN": served.token()}
        assert scratch("approve", "seat", env=far).startswith("Allowed t-1: ")
        until(lambda: results(scratch) == ["done"], "that it was allowed")


def test_no_agent_answers_for_a_person(scratch):
    asking(scratch)
    other = scratch.add("Other", script="run fleet approve seat\nsay Tried.")
    scratch.work()
    assert doing(scratch) == "permission"
    assert "may not answer" in scratch("logs", other)


def test_a_message_to_an_agent_that_asks_is_said_to_be_queued(scratch):
    asking(scratch)
    words = scratch("send", "seat", "Hurry.", "--wait", "0.2")
    assert words.startswith(f"Queued (m-1): t-1 asks for permission first: {ASKS}")
