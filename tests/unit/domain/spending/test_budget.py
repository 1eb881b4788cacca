from __future__ import annotations

from fleet.domain.run import Usage
from fleet.domain.spending.budget import granted, left, overdrawn
from fleet.domain.task import Budget

MINUTE = 60_000_000


def test_a_task_has_its_own_limits_where_it_names_them():
    own, default = Budget(tokens=100), Budget(cost=5_000_000, tokens=9, seconds=60)
    assert granted(own, default, 0) == Budget(5_000_000, 100, 60)


def test_every_grant_gives_as_much_again():
    assert granted(Budget(1, 2, 3), Budget(), 2) == Budget(3, 6, 9)


def test_nothing_is_spent_while_there_is_some_left():
    budget = Budget(cost=1_000_000, tokens=100, seconds=120)
    assert overdrawn(budget, Usage(50, 49, cached=10_000, usd=0.99), MINUTE) == ""
    assert overdrawn(Budget(), Usage(10**9, usd=10**6), 10**15) == ""


def test_what_is_spent_is_said_with_its_limit():
    assert overdrawn(Budget(cost=500_000), Usage(usd=0.513), 0) == "It has cost $0.51 of $0.50."
    words = overdrawn(Budget(cost=500_000), Usage(usd=0.6), 2 * MINUTE)
    assert words == "It has cost $0.60 of $0.50, $0.30 a minute."
    words = overdrawn(Budget(tokens=1000), Usage(2900, 100), 2 * MINUTE)
    assert words == "It has used 3,000 of 1,000 tokens, 1,500 a minute."
    assert overdrawn(Budget(cost=500_000), Usage(usd=0.6), MINUTE // 60).endswith("of $0.50.")
    spent = overdrawn(Budget(tokens=1000), Usage(900, 100), 0)
    assert spent == "It has used 1,000 of 1,000 tokens."
    assert overdrawn(Budget(seconds=90), Usage(), 2 * MINUTE) == "It has worked 2 of 1.5 minutes."


def test_a_program_that_counts_itself_is_told_what_is_left():
    assert left(Budget(cost=2_000_000), Usage(usd=0.5)) == 1.5
    assert left(Budget(), Usage(usd=0.5)) == 0.0
    assert left(Budget(cost=2_000_000), Usage(usd=3)) == 0.01  # zero would mean no limit
