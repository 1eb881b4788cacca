"""What a user of any HTTP API expects of this one, whatever is asked for."""

from __future__ import annotations

import http.client
import json
import re
from dataclasses import is_dataclass
from typing import get_args, get_type_hints

import pytest

from fleet.adapters.server_client import Remote
from fleet.base.outside import Time
from fleet.domain.errors import BadInput
from fleet.operations.catalogue import operations
from tests.integration.team import Team
from tests.wait import LIMIT


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = Team(tmp_path_factory.mktemp("manners"))
    yield made
    made.served.end()


def answered(team, method: str, path: str, *, who: str = "", body: bytes | None = None, token=""):
    """The status and the headers."""
    token = team.tokens[who] if who else token
    connection = http.client.HTTPConnection("127.0.0.1", team.served.port, timeout=LIMIT)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer.status, answer.headers


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/task/list"), ("POST", "/v1/task/add"), ("GET", "/tasks/t-1"),
        ("GET", "/events"), ("POST", "/mcp"), ("GET", "/metrics/json"), ("POST", "/auth"),
    ],
)  # fmt: skip
def test_a_401_says_how_to_prove_who_one_is(team, method, path):
    body = b'{"handle": "x"}' if path == "/auth" else None
    status, headers = answered(team, method, path, body=body)
    assert (status, headers["www-authenticate"]) == (401, 'Bearer realm="fleet"')
    if path != "/auth":
        status, headers = answered(team, method, path, token="a.b.c")
        assert status == 401
        assert headers["www-authenticate"] == 'Bearer realm="fleet", error="invalid_token"'


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/swarms", "GET, HEAD, POST"),
        ("/tasks/t-1", "GET, HEAD, PATCH"),
        ("/spawn-queue/t-1", "DELETE, GET, HEAD"),
        ("/v1/task/list", "GET, HEAD, POST"),
        ("/v1/task/add", "POST"),
    ],
)
def test_a_405_names_every_method_of_the_path(team, path, allowed):
    status, headers = answered(team, "PUT", path, who="ann")
    assert (status, headers["allow"]) == (405, allowed)


def test_a_slash_too_many_leads_to_the_path(team):
    status, headers = answered(team, "GET", "/v1/task/list/?limit=3", who="ann")
    assert (status, headers["location"]) == (308, "/v1/task/list?limit=3")
    assert answered(team, "POST", "/swarms/", who="ann", body=b"{}")[0] == 308
    assert answered(team, "GET", "/nowhere/", who="ann")[0] == 404
    assert answered(team, "GET", "//evil.example/", who="ann")[0] == 404


@pytest.mark.parametrize("value", ["maybe", "null", "1", "", "True", "yes"])
@pytest.mark.parametrize("path", ["/v1/task/list?all=", "/blackboard/t-1?unreadOnly="])
def test_a_truth_in_a_query_is_true_or_false(team, path, value):
    status, said = team.ask("ann", "GET", path + value)
    assert (status, said["code"]) == (422, "bad_input")
    assert "neither true nor false" in said["detail"]


@pytest.mark.parametrize("query", ["limit=x", "limit=1.0", "limit=", "limit=1&limit=2"])
def test_a_number_in_a_query_is_one_whole_number(team, query):
    assert team.ask("ann", "GET", f"/v1/task/list?{query}")[0] == 422
    assert team.ask("ann", "GET", f"/swarms?{query}")[0] == 422


RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z")
IN_ITS_WORDS = {"ResidentRow.until", "LogRow.at"}  # as a node, or LiteLLM, wrote it
IS_TIME = re.compile(r"(.*_)?(at|since|until)")


def times_in(value) -> list:
    """The values of all fields that are named like a time, wherever they are."""
    if isinstance(value, list):
        return [time for part in value for time in times_in(part)]
    if not isinstance(value, dict):
        return []
    own = [v for key, v in value.items() if IS_TIME.fullmatch(key) and v is not None]
    return own + [time for part in value.values() for time in times_in(part)]


def test_every_time_in_a_reply_is_rfc_3339(team):
    task = team.ok("ann", "POST", "/v1/task/add", {"title": "When?"})["data"]["id"]
    team.ok("ann", "POST", "/v1/message/comment", {"task": task, "text": "Now."})
    team.ok("ann", "POST", "/v1/mail/send", {"to": "ann", "text": "Now."})
    team.ok("ann", "POST", "/v1/memory/store", {"key": "k", "value": "v"})
    team.ok("ann", "POST", "/v1/file/claim", {"path": "a.py"})
    team.ok("ann", "POST", "/v1/checkpoint/save", {"summary": {"goal": "g", "now": "n"}})
    for path in (
        "task/list", f"task/show?task={task}", "mail/list", "memory/list", "file/list", "member/list",
        "checkpoint/list", "task/issues", "task/team",
    ):  # fmt: skip
        times = times_in(team.ok("ann", "GET", f"/v1/{path}")["data"])
        assert times, path
        assert all(RFC_3339.fullmatch(time) for time in times), (path, times)
    assert times_in(team.ok("root", "GET", "/v1/token/list")["data"])


@pytest.mark.parametrize("operation", list(operations()), ids=lambda one: one.name)
def test_every_field_that_is_named_like_a_time_is_declared_as_one(operation):
    seen: set = set()

    def walk(hint) -> None:
        for part in get_args(hint):
            walk(part)
        if is_dataclass(hint) and hint not in seen:
            seen.add(hint)
            for name, kind in get_type_hints(hint, include_extras=True).items():
                if IS_TIME.fullmatch(name) and f"{hint.__name__}.{name}" not in IN_ITS_WORDS:
                    assert Time in (kind, *get_args(kind)), (hint, name)
                walk(kind)

    walk(operation.reply)


def test_what_was_made_is_answered_with_201_and_where_it_is_shown(team):
    status, headers = answered(team, "POST", "/v1/task/add", who="ann", body=b'{"title": "Where?"}')
    assert status == 201
    shown = team.ok("ann", "GET", headers["location"])
    assert (shown["kind"], shown["data"]["task"]["title"]) == ("task.show", "Where?")
    task = shown["data"]["task"]["id"]
    for path, body in (
        ("swarm/create", {"name": "x"}),
        ("checkpoint/save", {"summary": {"goal": "g", "now": "n"}}),
        ("message/comment", {"task": task, "text": "x"}),
        ("message/ask", {"task": task, "text": "x"}),
        ("board/post", {"task": task, "payload": {"a": 1}}),
    ):
        status, headers = answered(
            team, "POST", f"/v1/{path}", who="ann", body=json.dumps(body).encode()
        )
        assert status == 201, path
        assert team.ok("ann", "GET", headers["location"]), path
    assert (
        answered(team, "POST", "/v1/memory/store", who="ann", body=b'{"key": "k", "value": "v"}')[0]
        == 200
    )


def test_a_page_says_where_the_next_one_begins_and_the_last_that_there_is_none(team):
    for number in range(5):
        team.ok("eve", "POST", "/v1/task/add", {"title": f"Task {number}"})
    path, seen, pages = "/v1/task/list?limit=2", [], 0
    while path:
        status, said, headers = team.asked("eve", "GET", path)
        assert status == 200
        seen += [row["title"] for row in said["data"]]
        path = headers.get("link", "").partition(">")[0].removeprefix("<")
        assert bool(path) is (said["next"] is not None)
        pages += 1
    assert (seen, pages) == ([f"Task {number}" for number in (4, 3, 2, 1, 0)], 3)
    exact = team.ok("eve", "POST", "/v1/task/list", {"limit": 5})
    assert (len(exact["data"]), exact["next"]) == (5, None)


def test_a_payload_is_an_object_and_not_the_text_of_one(team):
    task = team.ok("ann", "POST", "/v1/task/add", {"title": "Board"})["data"]["id"]
    payload = {"tests": "green", "of": [1, None, {"ä": 2.5}]}
    posted = team.ok("ann", "POST", "/v1/board/post", {"task": task, "payload": payload})
    assert posted["data"]["payload"] == payload
    assert team.ok("ann", "GET", f"/v1/board/read?task={task}")["data"][0]["payload"] == payload
    status, said = team.ask("ann", "POST", "/v1/board/post", {"task": task, "payload": "{}"})
    assert (status, said["code"]) == (422, "bad_input")


def test_parts_that_do_not_fit_each_other_are_a_409_and_wrong_input_to_the_command_line(team):
    plan = {"tasks": [{"title": "A", "name": "a", "after": ["a"]}]}
    status, problem = team.ask("ann", "POST", "/v1/task/add_all", plan)
    assert (status, problem["code"]) == (409, "bad_input")
    remote = Remote(f"http://127.0.0.1:{team.served.port}", team.tokens["ann"])
    with pytest.raises(BadInput, match="wait for each other") as caught:
        remote.say("POST", "/v1/task/add_all", plan)
    assert caught.value.exit_status == 2
