"""Bad input, over raw sockets: each is refused in words, and the server goes on."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from fleet.server.claude_fleet.paths import PATHS
from tests.integration.hostile import HOST, Answer, HostileTeam, over_the_wire, request

JSON = "Content-Type: application/json"
DEEP = 100_000


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = HostileTeam(tmp_path_factory.mktemp("hostile"))
    yield made
    made.served.end()


@pytest.fixture(autouse=True)
def well(team):
    yield
    assert team.served.ask("GET", "/health")[0] == 200


def sent(team, *parts: bytes) -> Answer:
    return Answer(over_the_wire(team.served.port, *parts))


def posted(team, body: bytes, *headers: str, path: str = "/v1/task/add") -> Answer:
    return sent(team, request("POST", path, *headers, body=body, token=team.tokens["ann"]))


GARBAGE = {
    "no HTTP at all": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200 + b"\r\n\r\n",
    "no version": b"GET /health\r\n\r\n",
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /health HTTP/1.1\r\n" + HOST + b"Host: evil.example\r\n\r\n",
    "no such method": b"FOO /health HTTP/1.1\r\n" + HOST + b"\r\n",
    "two lengths": b"POST /tasks HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n",
    "a length below nothing": b"POST /tasks HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n",
    "a length that is no number": b"POST /tasks HTTP/1.1\r\n" + HOST + b"Content-Length: 1e9\r\n\r\n",
    "an unknown coding": b"POST /tasks HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\n",
    "a chunk that is none": b"POST /tasks HTTP/1.1\r\n" + HOST
    + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
    "a header with a line in it": b"GET /health HTTP/1.1\r\n" + HOST + b"X: a\r b\r\n\r\n",
    "a header with NUL": b"GET /health HTTP/1.1\r\n" + HOST + b"X: a\0b\r\n\r\n",
    "bytes in the path": b"GET /\xff\xfe HTTP/1.1\r\n" + HOST + b"\r\n",
    "10,000 headers": b"GET /health HTTP/1.1\r\n" + HOST
    + b"".join(b"X-%d: y\r\n" % n for n in range(10_000)) + b"\r\n",
    "a header of a megabyte": b"GET /health HTTP/1.1\r\n" + HOST + b"X: " + b"y" * (1 << 20),
    "a path of a megabyte": b"GET /" + b"y" * (1 << 20) + b" HTTP/1.1\r\n" + HOST + b"\r\n",
}  # fmt: skip


REFUSED = {"not_http", "no_token", "too_many_headers", "too_large"}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_what_is_not_http_is_refused_in_words(team, garbage):
    assert sent(team, garbage).must_be_a_problem()["code"] in REFUSED


def test_garbage_after_a_good_request_spoils_only_itself(team):
    good = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
    answer = sent(team, good + b"\x00\xff nonsense\r\n\r\n")
    assert answer.data.startswith(b"HTTP/1.1 200 ")
    assert answer.must_be_a_problem()["code"] == "not_http"
    both = sent(team, good + request("GET", "/health"))
    assert both.data.count(b"HTTP/1.1 200 ") == 2


@pytest.mark.parametrize(
    "body",
    [
        b"{", b"[]", b"null", b'"x"', b"\xff\xfe{", b'{"title": "\xff"}', b'{"title": "\xed\xa0\x80"}',
        b'{"title": "\\ud800"}', b'{"title": NaN}', b'{"title": Infinity}', b'{"title": 1e999}',
        b"[" * DEEP, b'{"title":' * DEEP, b'{"title": "x"} {"title": "y"}', b"title=x",
        '{"title": "x"}'.encode("utf-16"), b"9" * 100_000,
    ],
    ids=lambda body: repr(body[:18]),
)  # fmt: skip
@pytest.mark.parametrize("path", ["/v1/task/add", "/blackboard"])
def test_a_body_that_is_no_json_object_is_refused(team, path, body):
    assert posted(team, body, JSON, path=path).must_be_a_problem()["code"] == "not_json"


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("a\0b", "not_text"), (10**30, "too_large_number"), (-(2**63) - 1, "too_large_number"),
        (2**64 - 1, "too_large_number"), (3, "bad_input"), (None, "bad_input"), (True, "bad_input"),
        ({"a\0": 1}, "not_text"), (json.loads("[" * 300 + "]" * 300), "too_deep"),
        ("x" * 201, "bad_input"), ("", "bad_input"), (" \n ", "bad_input"),
    ],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_a_value_that_nobody_could_keep_is_refused(team, value, code):
    said = posted(team, json.dumps({"title": value}).encode(), JSON).must_be_a_problem()
    assert said["code"] == code


@pytest.mark.parametrize("payload", ["[" * DEEP, "NaN", '{"a": NaN}', '{"a": 1e999}', "3", ""])
def test_what_is_json_within_json_is_as_bad(team, payload):
    swarm = team.ok("ann", "POST", "/v1/swarm/create", {"name": "x"})["data"]["id"]
    body = json.dumps({"task": swarm, "payload": payload}).encode()
    posted(team, body, JSON, path="/v1/board/post").must_be_a_problem()


def test_of_a_field_that_is_said_twice_the_last_counts_for_everybody(team):
    body = b'{"to": "bob", "text": "x", "sender": "bob", "sender": "ann"}'
    assert posted(team, body, JSON, path="/v1/mail/send").status == 201
    body = b'{"to": "bob", "text": "x", "sender": "ann", "sender": "bob"}'
    said = posted(team, body, JSON, path="/v1/mail/send").must_be_a_problem()
    assert said["code"] == "forged"


def test_what_nobody_knows_is_refused_however_deep(team):
    for body in ({"titel": "x"}, {"title": "x", "spec": {"gatee": "x"}},
                 {"title": "x", "spec": {"limits": {"attemps": 3}}}):  # fmt: skip
        said = posted(team, json.dumps(body).encode(), JSON).must_be_a_problem()
        assert (said["status"], said["code"]) == (422, "bad_input")


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x", "\xff"]
)
def test_a_form_in_a_browser_says_nothing_here(team, kind):
    """These are what a page of another site can send without being asked first."""
    said = posted(team, b'{"title": "x"}', f"Content-Type: {kind}").must_be_a_problem()
    assert (said["status"], said["code"]) == (415, "not_json")
    assert posted(team, b'{"title": "x"}', f"{JSON}; charset=utf-8").status == 201


@pytest.mark.parametrize(
    "headers",
    [
        "Host: evil.example", "Host: 127.0.0.1.evil.example", "Host: evil.example:80", "Host: [::1",
        "Host: ", "Host: 127.0.0.1@evil.example", "Host: \xff",
    ],
)  # fmt: skip
def test_a_name_that_is_not_ours_is_refused(team, headers):
    """A page whose name was made to point at this machine calls it by that name."""
    said = sent(team, f"GET /health HTTP/1.1\r\n{headers}\r\n\r\n".encode("latin-1"))
    assert said.must_be_a_problem()["code"] in {"wrong_host", "not_http"}


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://[", "http://127.0.0.1:1", "file://", "\xff"]
)
@pytest.mark.parametrize("path", ["/v1/task/list", "/health", "/events", "/mcp", "/openapi.json"])
def test_a_page_of_another_site_may_not_even_ask(team, origin, path):
    answer = sent(team, request("GET", path, f"Origin: {origin}", token=team.tokens["ann"]))
    assert answer.must_be_a_problem()["code"] == "wrong_origin"


@pytest.mark.parametrize("path", ["/v1/task/add", "/tasks", "/mcp", "/nowhere"])
def test_ten_megabytes_are_refused(team, path):
    token = team.tokens["ann"]
    said = sent(team, request("POST", path, JSON, f"Content-Length: {10 << 20}", token=token))
    assert said.must_be_a_problem()["code"] == "too_large"
    chunk = b"10000\r\n" + b" " * (1 << 16) + b"\r\n"
    chunked = request("POST", path, JSON, "Transfer-Encoding: chunked", token=token)
    said = sent(team, chunked, *[chunk] * 160, b"0\r\n\r\n").must_be_a_problem()
    assert said["code"] in {"too_large", "no_such_path"}


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "TRACE", "PROPFIND", "CONNECT"])
@pytest.mark.parametrize("path", ["/v1/task/add", "/health", "/tasks", "/events"])
def test_a_method_that_is_not_meant_is_refused(team, method, path):
    said = sent(team, request(method, path, token=team.tokens["ann"])).must_be_a_problem()
    assert (said["status"], said["code"]) == (405, "no_such_method")


@pytest.mark.parametrize("path", ["/health", "/v1/task/list?limit=1", "/openapi.json", "/swarms"])
def test_head_says_what_get_would_without_saying_it(team, path):
    answer = sent(team, request("HEAD", path, token=team.tokens["ann"]))
    assert (answer.status, answer.body) == (200, b"")


NAMES = [
    "..", "../../etc/passwd", "/etc/passwd", "a/../../b", "\0", "x\0y", "\n", "\udcff", "-rf", "--help",
    "$(id)", "`id`", "'; DROP TABLE task; --", "%", "t-1.99999999999999999999", "t-" + "9" * 40,
    "x" * 5000, "\u202e", "e-x", "m-99999999999999999999",
]  # fmt: skip


NAMING = [path for path in PATHS if "{" in path.path]


@pytest.mark.parametrize("path", NAMING, ids=[f"{p.method} {p.path}" for p in NAMING])
def test_a_name_in_a_path_leads_nowhere_else(team, path):
    for name in NAMES:
        said = quote(name, safe="", errors="surrogateescape")
        where = "/".join(said if part.startswith("{") else part for part in path.path.split("/"))
        body = b"" if path.method in {"GET", "DELETE"} else b"{}"
        data = request(path.method, where, JSON, body=body, token=team.tokens["ann"])
        answer = sent(team, data)
        assert b"root:" not in answer.data
        if answer.status != 200:  # a list of what somebody unknown has is empty
            answer.must_be_a_problem()


@pytest.mark.parametrize(
    "query",
    [
        "limit=%C2%B2", "limit=--5", "limit=0", "limit=201", "limit=" + "9" * 30, "limit=1e2", "limit=",
        "before=x", "before=%00", "before=t-" + "9" * 30, "before=..", "statuses=%FF", "team=%00", "x=y",
        "all=maybe&limit=%D9%A3", "statuses=", "statuses=done,,failed",
    ],
)  # fmt: skip
def test_a_query_that_makes_no_sense_is_refused(team, query):
    answer = sent(team, request("GET", f"/v1/task/list?{query}", token=team.tokens["ann"]))
    answer.must_be_a_problem()


@pytest.mark.parametrize("number", ["%C2%B2", "-1", "x", "9" * 30, "%00", "1.5"])
def test_a_number_of_an_event_that_is_none_is_refused(team, number):
    token = team.tokens["ann"]
    sent(team, request("GET", f"/events?after={number}", token=token)).must_be_a_problem()


@pytest.mark.parametrize("key", ["x" * 201, "\x7f", "\xff\xa0", "two words", "\xe9"])
def test_an_idempotency_key_is_short_and_plain(team, key):
    answer = posted(team, b'{"title": "x"}', JSON, f"Idempotency-Key: {key}")
    assert answer.must_be_a_problem()["code"] in {"bad_input", "not_http"}


@pytest.mark.parametrize("path", ["/", "/nowhere", "/v1/task/add", "/health", "/mcp", "/events"])
def test_a_socket_is_opened_nowhere_but_where_it_belongs(team, path):
    upgrade = ("Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
               "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")  # fmt: skip
    lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *upgrade, "", ""]
    answer = Answer(over_the_wire(team.served.port, "\r\n".join(lines).encode(), limit=5))
    assert answer.status != 101
    if answer.status != 200:
        answer.must_be_a_problem()


def test_what_a_tool_is_given_may_be_as_bad(team):
    accept = "Accept: application/json, text/event-stream"
    for body in (b"{", b"[" * DEEP, b"\xff", b'{"jsonrpc": "2.0", "id": 1}', b"null", b"[]"):
        answer = posted(team, body, JSON, accept, path="/mcp")
        assert 400 <= answer.status < 500
        assert b"Traceback" not in answer.data
    for given in (
        {"query": "a\0b"},
        {"query": json.loads("[" * 200 + "]" * 200)},
        {"query": 10**30},
    ):
        call = {"name": "memory_search", "arguments": given}
        said = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        answer = posted(team, json.dumps(said).encode(), JSON, accept, path="/mcp")
        assert answer.status in {200, 400}
        assert b'"error"' in answer.data or b'"isError":true' in answer.data
