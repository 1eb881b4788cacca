"""One member opens as many streams as it can: it gets its share, and nobody else notices."""

from __future__ import annotations

import json

import pytest

from tests.integration.listeners import Inside, Sse, Ws
from tests.wait import until

EACH = 3


@pytest.fixture
def server(tmp_path):
    (tmp_path / "home").mkdir(mode=0o700)
    (tmp_path / "home" / "config.yaml").write_text(f"server: {{streams: {EACH}}}\n")
    made = Inside(tmp_path)
    yield made
    made.end()


def refused(stream: Sse) -> dict:
    assert stream.status == 429
    problem = json.loads(stream.answer.read())
    stream.close()
    return problem


def test_a_greedy_member_is_refused_its_next_stream_and_others_have_theirs(server):
    greedy, other = server.token("mallory"), server.token("ann")
    streams = [Sse(server.port, greedy), Sse(server.port, server.token("mallory"))]
    sockets = [Ws(server.port)]
    sockets[0].auth(greedy)  # streams and sockets, of all tokens of one name, count together
    problem = refused(Sse(server.port, greedy))
    assert problem["code"] == "too_many_streams"
    assert "server.streams" in problem["fix"]
    late = Ws(server.port)
    late.send({"type": "auth", "token": greedy})
    frame = late.next()
    assert (frame["type"], frame["code"]) == ("error", "too_many_streams")
    assert late.next() is None
    assert late.closed == 1013
    mine = [Sse(server.port, other), Sse(server.port, other)]
    task = server.add(other)
    for stream in (*mine, *streams):
        until(lambda stream=stream: stream.events(1)[0]["task"] == task)
    for each in (*mine, *streams, *sockets, late):
        each.close()


def test_the_same_name_in_another_team_has_a_budget_of_its_own(server):
    red = [Sse(server.port, server.token("bob", "worker", "red")) for _ in range(EACH)]
    blue = Sse(server.port, server.token("bob", "worker", "blue"))
    assert [stream.status for stream in (*red, blue)] == [200] * (EACH + 1)
    for each in (*red, blue):
        each.close()


def test_a_stream_that_ends_gives_back_its_place_however_it_ended(server):
    token = server.token("mallory")
    for _ in range(EACH + 1):  # refused after the token was accepted
        socket = Ws(server.port)
        socket.send({"type": "auth", "token": token, "after": 10**9})
        assert socket.next()["code"] == "no_such_event"
        socket.close()
        stream = Sse(server.port, token, 10**9)
        assert stream.status == 422
        stream.close()
    full = [Sse(server.port, token) for _ in range(EACH)]
    assert refused(Sse(server.port, token))
    full.pop().close()
    until(lambda: server.streams.busiest == EACH - 1)
    full.append(Sse(server.port, token))
    assert full[-1].status == 200
    for each in full:
        each.close()


def test_the_trail_and_the_metrics_know_who_was_refused(server):
    token = server.token("mallory", "worker", "red")
    streams = [Sse(server.port, token) for _ in range(EACH)]
    refused(Sse(server.port, token))
    root = server.token("root")
    rows = server.ok(root, "audit.list", refused=True)
    assert [(r["actor"], r["team"], r["code"]) for r in rows] == [
        ("mallory", "red", "too_many_streams")
    ]
    figures = server.ask("GET", "/metrics/json", token=root)[1]["data"]
    values = {row["name"]: row for row in figures if "stream" in str(row)}
    assert values["fleet_streams_of_one_member"]["value"] == EACH
    assert any("too_many_streams" in str(row) for row in figures)
    for each in streams:
        each.close()
