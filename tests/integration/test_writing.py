"""What many ask for at once is written as one; who asks for what cannot be is told alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.integration.team import Team


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = Team(tmp_path_factory.mktemp("writing"))
    yield made
    made.served.end()


def test_of_many_at_once_only_the_wrong_are_refused(team):
    def ask(number: int):
        claim = {"path": "src/login.py", "seconds": 60}
        if number % 3 == 0:  # of these one gets it
            who = f"w{number}"
            return "claim", *team.ask(who, "POST", "/v1/file/claim", claim)
        return "add", *team.ask("ann", "POST", "/v1/task/add", {"title": f"Task {number}"})

    for number in range(0, 48, 3):
        team.join(f"w{number}", "worker", "red")
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(48)))
    claims = [status for what, status, _ in answers if what == "claim"]
    added = [
        said["data"]["id"] for what, status, said in answers if what == "add" and status == 201
    ]
    assert sorted(claims) == [200] + [409] * 15
    assert len(set(added)) == 32
    _, listed = team.ask("ann", "GET", "/v1/task/list?limit=200")
    assert set(added) <= {row["id"] for row in listed["data"]}
