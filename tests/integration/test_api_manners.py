"""What a user of any HTTP API expects of this one, whatever is asked for."""

from __future__ import annotations

import http.client

import pytest

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


def test_the_root_leads_to_the_documentation_and_a_slash_too_many_to_the_path(team):
    assert answered(team, "GET", "/")[1]["location"] == "/docs"
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
