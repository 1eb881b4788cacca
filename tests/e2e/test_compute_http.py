"""What the page knows of the machines is what the commands say of them."""

from __future__ import annotations

import json

import pytest

from fleet.testing.fake_node.node import FakeNode
from tests.e2e.machines import Machines
from tests.e2e.served import Served
from tests.wait import until

CHANGING = {"latency_ms", "relay"}


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    made = Machines(tmp_path_factory.mktemp("machines") / "x")
    yield made
    made.close()


@pytest.fixture(scope="module")
def served(machines):
    made = Served(machines.scratch, "--no-run")
    yield made
    made.close()


@pytest.fixture(scope="module")
def tokens(served):
    return {role: served.token(role, role) for role in ("coordinator", "team-lead", "monitor")}


def ok(served, token, path, body=None):
    status, reply = served.ask("POST", f"/v1/{path}", body or {}, token=token)
    assert status == 200, reply
    return reply["data"]


def without(rows):
    return [{key: value for key, value in row.items() if key not in CHANGING} for row in rows]


def test_the_page_the_command_and_its_json_show_the_same_nodes(machines, served, tokens):
    page = ok(served, tokens["monitor"], "node/list")
    for command in ("nodes", "status"):
        typed = machines.scratch.data(command)
        assert without(typed["nodes"]) == without(page["nodes"])
        assert typed["routes"] == page["routes"]
    assert {node["status"] for node in page["nodes"]} == {"online"}


def test_warming_is_seen_to_its_end_by_everybody(machines, served, tokens):
    body = {"model": "small-coder"}
    assert ok(served, tokens["team-lead"], "model/warm", body)[0]["node"] == "laptop"

    def warmed():
        (row,) = ok(served, tokens["monitor"], "node/list")["warming"]
        return row["state"] == "ok"

    until(warmed, "the model to be loaded")
    until(
        lambda: ok(served, tokens["monitor"], "node/list")["nodes"][0]["loaded_models"],
        "the node to say so",
    )
    status, reply = served.ask("POST", "/v1/model/warm", body, token=tokens["monitor"])
    assert (status, reply["code"]) == (403, "forbidden")


def test_a_node_that_dies_is_down_with_a_reason_and_its_model_has_no_route(
    served, machines, tokens
):
    machines.mini.stop()
    machines.mini = FakeNode([]).start()  # elsewhere: for whoever tidies up

    def down():
        nodes = ok(served, tokens["monitor"], "node/list")["nodes"]
        mini = next(node for node in nodes if node["name"] == "mini")
        return mini["status"] == "offline" and mini["error"]

    until(down, "the server to notice")
    explained = ok(served, tokens["monitor"], "route/explain", {"agent": "implementer"})
    assert explained["node"] == ""
    assert "mini is down" in explained["why"]


def test_traces_and_the_log_are_read_from_their_ends(machines, served, tokens):
    logs = machines.scratch.home / "logs"
    logs.mkdir(exist_ok=True)
    lines = [
        json.dumps({"at": at, "agent": "planner", "node": "laptop", "outcome": "ok"})
        for at in range(1, 30_000)
    ]
    (logs / "traces.jsonl").write_text("\n".join([*lines, '{"at": 99999, "ag']))
    assert ok(served, tokens["monitor"], "trace/list", {"limit": 3}) == []  # no run of its team
    rows = ok(served, tokens["coordinator"], "trace/list", {"limit": 3})
    assert [row["at"] for row in rows] == [
        f"1970-01-01T00:00:00.{micros:06}Z" for micros in (29_997, 29_998, 29_999)
    ]
    slow = {
        "at": 20_000,
        "total": 0.02,
        "agent": "slow",
        "outcome": "ok",
    }  # begun before the others
    with (logs / "traces.jsonl").open("w") as out:
        out.write("\n".join([*lines, json.dumps(slow), ""]))
    after = {"after": rows[-1]["ended_at"]}
    assert [row["agent"] for row in ok(served, tokens["coordinator"], "trace/list", after)] == [
        "slow"
    ]
    (logs / "traces.jsonl").write_text("\n".join([*lines, ""]))
    typed = machines.scratch.data("trace", "-n", "3")
    assert [row["at"] for row in typed] == [29_997, 29_998, 29_999]
    (logs / f"gateway-{machines.port}.log").write_text("INFO: x\nERROR: y\n")
    rows = ok(served, tokens["coordinator"], "gateway/log", {"severity": "error"})
    assert [row["text"] for row in rows] == ["ERROR: y"]
    assert served.ask("POST", "/v1/gateway/log", {}, token=tokens["team-lead"])[0] == 403


def test_the_gateway_and_the_hosts_are_shown(served, tokens):
    shown = ok(served, tokens["monitor"], "gateway/show")
    assert [service["running"] for service in shown["services"]] == [False, False]
    assert ok(served, tokens["monitor"], "host/list") == []
