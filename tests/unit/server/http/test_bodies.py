"""What a body may hold, and what it takes of its sender's budget."""

from __future__ import annotations

import json

import pytest

from fleet.domain.errors import BadInput
from fleet.server.http.codec import FEW_BYTES, MOST_VALUES, object_of
from fleet.server.http.guard import BODY, BYTES_PER_REQUEST, Rates, cost_of

MANY = {
    "numbers": {"a": [1000] * (MOST_VALUES + 2)},
    "lists": {"a": [[]] * (MOST_VALUES + 2)},
    "fields": {f"k{n}": 0 for n in range(MOST_VALUES + 2)},
    "texts with quotes in them": {"a": ['"', "\\", '\\"'] * (MOST_VALUES // 2)},
}


@pytest.mark.parametrize("kind", MANY)
def test_a_body_of_very_many_values_is_refused_before_it_is_decoded(kind):
    with pytest.raises(BadInput) as refused:
        object_of(json.dumps(MANY[kind]).encode())
    assert refused.value.code == "too_many_values"


@pytest.mark.parametrize("text", [",", '",', "\\", '\\",', "[,]{,}"])
def test_a_long_text_has_as_many_commas_as_it_likes(text):
    body = {"prompt": text * 100_000}
    assert object_of(json.dumps(body).encode()) == body


def test_as_many_values_as_a_plan_of_a_thousand_tasks_has_are_taken():
    body = {
        "tasks": [{"title": "Fix the login", "after": ["1", "2"], "spec": {"agent": "a"}}] * 1000
    }
    text = json.dumps(body).encode()
    assert len(text) > FEW_BYTES
    assert object_of(text) == body


def test_a_large_body_takes_as_much_as_many_requests():
    rates = Rates(1.0, 200.0, clock=lambda: 0.0)
    large = cost_of({"content-length": str(BODY)})
    assert large == 1 + BODY // BYTES_PER_REQUEST
    assert [rates.wait("a", large) == 0 for _ in range(4)] == [True, True, True, False]
    assert rates.wait("a") == 0
    assert rates.wait("b", large) == 0


@pytest.mark.parametrize(
    ("headers", "cost"),
    [
        ({}, 1),
        ({"content-length": "100"}, 1),
        ({"content-length": "9" * 4000}, 1 + BODY // BYTES_PER_REQUEST),
        ({"transfer-encoding": "chunked"}, 1 + BODY // BYTES_PER_REQUEST),
    ],
)
def test_a_body_without_a_length_may_be_the_largest(headers, cost):
    assert cost_of(headers) == cost
