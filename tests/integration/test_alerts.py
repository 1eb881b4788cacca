"""A monitor alerts those who lead, and nobody else can."""

from __future__ import annotations

import pytest

from fleet.server.audit import ALARMING
from tests.integration.team import Team
from tests.wait import until


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = Team(tmp_path_factory.mktemp("alerts"))
    made.join("mon", "monitor", "red")
    made.join("news", "notifier", "red")
    for name in ("ann", "bob", "eve"):
        made.ok(name, "GET", "/v1/task/list")  # from now on they are members
    yield made
    made.served.end()


def unread(team, name: str) -> list[tuple[str, str, str]]:
    rows = team.ok(name, "GET", "/v1/mail/list?unread=true")["data"]
    return [(row["sender"], row["subject"], row["text"]) for row in rows]


def test_the_leads_of_the_team_have_mail_and_others_do_not(team):
    row = team.ok("mon", "POST", "/v1/alert/raise", {"text": "The disk is full."})["data"]
    assert row["to"] == ["ann"]
    assert unread(team, "ann") == [("mon", "Alert", "The disk is full.")]
    assert unread(team, "bob") == []
    assert unread(team, "eve") == []


def test_a_notifier_sends_news_and_no_alert(team):
    assert team.ask("news", "POST", "/v1/alert/raise", {"text": "x"})[0] == 403
    team.ok("news", "POST", "/v1/alert/notice", {"text": "It is out."})
    assert ("news", "Notice", "It is out.") in unread(team, "ann")


@pytest.mark.parametrize("who", ["ann", "bob"])
def test_others_may_not_alert(team, who):
    assert team.ask(who, "POST", "/v1/alert/raise", {"text": "x"})[0] == 403


def test_a_monitor_alerts_its_own_team_alone(team):
    status = team.ask("mon", "POST", "/v1/alert/raise", {"text": "x", "team": "blue"})[0]
    assert status in {403, 404}


def test_only_a_coordinator_alerts_every_team(team):
    status, reply = team.ask("mon", "POST", "/v1/alert/raise", {"text": "x", "everywhere": True})
    assert (status, reply["code"]) == (403, "forbidden")


def test_many_refusals_are_mailed_to_the_coordinators_of_every_team(team):
    team.join("chief", "coordinator", "blue")
    team.ok("chief", "GET", "/v1/task/list")
    before = unread(team, "bob")
    for _ in range(ALARMING + 5):
        team.served.ask("GET", "/v1/task/list", token="wrong")
    until(lambda: any("requests were refused" in text for _, _, text in unread(team, "chief")))
    assert unread(team, "bob") == before
