"""Bytes that strangers send to a hook."""

from __future__ import annotations

import pytest
from starlette.exceptions import HTTPException

from fleet.server.http.hooks import BUDGET, WHILE, UncheckedBytes


def test_a_stranger_spends_nothing_that_the_forge_needs():
    now = [0.0]
    budget = UncheckedBytes(lambda: now[0])
    budget.take("192.0.2.1", BUDGET)
    with pytest.raises(HTTPException) as refused:
        budget.take("192.0.2.1", 1)
    assert (refused.value.status_code, refused.value.headers) == (429, {"Retry-After": "61"})
    budget.take("198.51.100.7", BUDGET)
    budget.give_back("198.51.100.7", BUDGET)
    budget.take("198.51.100.7", BUDGET)
    now[0] = WHILE
    budget.take("192.0.2.1", BUDGET)
