"""Headers that are too long, or contradict each other, however they are cut into pieces."""

from __future__ import annotations

import pytest

from tests.integration.hostile import Answer, Logged, over_the_wire

LONG = b"X-Long: " + b"x" * 70_000 + b"\r\n"
TOP = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    made = Logged(tmp_path_factory.mktemp("headers"))
    yield made
    made.end()


@pytest.mark.parametrize("size", [1 << 20, 1000], ids=["one read", "many reads"])
def test_headers_that_are_too_long_are_refused_however_they_are_read(served, size):
    said = TOP + LONG + b"\r\n"
    parts = [said[at : at + size] for at in range(0, len(said), size)]
    answer = Answer(over_the_wire(served.port, *parts))
    assert answer.must_be_a_problem()["code"] == "too_large"
    assert answer.status == 431


def test_a_long_body_is_no_long_header(served):
    body = b'{"secret": "' + b"x" * 70_000 + b'"}'
    said = (
        b"POST /auth HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    )
    assert Answer(over_the_wire(served.port, said % len(body) + body)).status != 431


@pytest.mark.parametrize(
    "pair",
    [
        (b"Origin: http://evil.example", b"Origin: http://127.0.0.1"),
        (b"Authorization: Bearer a", b"Authorization: Bearer b"),
        (b"Host: evil.example", b"X-Other: 1"),
    ],
    ids=["origin", "authorization", "host"],
)
def test_a_header_that_may_come_once_is_refused_twice(served, pair):
    answer = Answer(over_the_wire(served.port, TOP + b"\r\n".join(pair) + b"\r\n\r\n"))
    assert (answer.status, answer.must_be_a_problem()["code"]) == (400, "not_http")
