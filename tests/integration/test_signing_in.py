"""A browser signs in with a one-time code."""

from __future__ import annotations

import jwt
import pytest

from fleet.operations.team import enrolments
from fleet.server.http.guard import STRANGERS_BODY, Rates
from tests.integration.listeners import Inside
from tests.integration.team import Team


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = Team(tmp_path_factory.mktemp("sign-in"))
    yield made
    made.served.end()


def code_of(team, name="", role="", of=""):
    asked = {"name": name, "role": role, "team": of}
    return team.ok("root", "POST", "/v1/session/code", asked)["data"]["code"]


def opened(team, code):
    return team.served.ask("POST", "/v1/session/open", {"code": code})


def test_a_code_opens_one_session_as_the_person_it_was_made_for(team):
    code = code_of(team, name="kim", role="worker", of="red")
    status, reply = opened(team, code)
    assert status == 200
    session = reply["data"]
    assert (session["name"], session["role"], session["team"]) == ("kim", "worker", "red")
    status, reply = team.served.ask("GET", "/v1/me/show", token=session["token"])
    me = reply["data"]
    assert (me["name"], me["role"], me["team"], me["until"]) == (
        "kim", "worker", "red", session["until"],
    )  # fmt: skip
    assert "add" in me["permissions"]
    assert "admin" not in me["permissions"]
    status, reply = opened(team, code)
    assert (status, reply["code"]) == (409, "used_code")
    assert reply["fix"]


def test_without_a_name_the_code_is_for_whoever_made_it(team):
    session = opened(team, code_of(team))[1]["data"]
    assert (session["name"], session["role"]) == ("root", "coordinator")


@pytest.mark.parametrize("code", ["none", "x" * 200, "ü"])
def test_a_code_that_nobody_made_opens_nothing(team, code):
    status, reply = opened(team, code)
    assert (status, reply["code"]) == (401, "bad_secret")


def test_guessing_codes_is_slowed_down_and_a_good_code_still_works(team):
    code = code_of(team)
    statuses = [opened(team, f"guess-{number}")[0] for number in range(14)]
    assert statuses[-1] == 429
    assert opened(team, code)[0] == 200


def test_a_session_renews_itself_and_another_token_does_not(team):
    session = opened(team, code_of(team, name="lee", role="monitor", of="red"))[1]["data"]
    status, reply = team.served.ask("POST", "/v1/session/renew", {}, token=session["token"])
    renewed = reply["data"]
    assert (status, renewed["name"], renewed["role"]) == (201, "lee", "monitor")
    assert renewed["last"] == session["last"]
    assert team.served.ask("GET", "/v1/me/show", token=renewed["token"])[0] == 200
    status, reply = team.ask("bob", "POST", "/v1/session/renew", {})
    assert (status, reply["code"]) == (409, "refused")


def test_a_session_ends_with_the_persons_other_tokens(team):
    session = opened(team, code_of(team, name="pat", role="worker", of="red"))[1]["data"]
    team.ok("root", "POST", "/v1/token/revoke", {"token": "pat"})
    status, reply = team.served.ask("GET", "/v1/me/show", token=session["token"])
    assert (status, reply["code"]) == (401, "revoked_token")


@pytest.mark.parametrize("which", [0, 1, 2])
def test_revoking_any_token_of_a_session_ends_all_of_them(team, which):
    """Whoever took one may have renewed it."""
    name = f"kim{which}"
    session = opened(team, code_of(team, name=name, role="worker", of="red"))[1]["data"]
    tokens = [session["token"]]
    for _ in range(2):
        _, reply = team.served.ask("POST", "/v1/session/renew", {}, token=tokens[-1])
        tokens.append(reply["data"]["token"])
    taken = jwt.decode(tokens[which], options={"verify_signature": False})["jti"]
    team.ok("root", "POST", "/v1/token/revoke", {"token": taken})
    for token in tokens:
        status, reply = team.served.ask("GET", "/v1/me/show", token=token)
        assert (status, reply["code"]) == (401, "revoked_token")
    listed = team.ok("root", "GET", "/v1/token/list?limit=200")["data"]
    assert name not in {row["name"] for row in listed}


def test_only_a_coordinator_makes_codes_and_nobody_for_more_than_they_may_see(team):
    for who in ("ann", "bob", "eve"):
        assert team.ask(who, "POST", "/v1/session/code", {})[0] == 403


@pytest.mark.parametrize("path", ["/auth", "/v1/session/open", "/v1/host/join"])
def test_who_has_no_token_sends_little(team, path):
    body = {"code": "x", "name": " " * STRANGERS_BODY}
    status, reply = team.served.ask("POST", path, body)
    assert (status, reply["code"]) == (413, "too_large")


@pytest.fixture
def inside(tmp_path):
    made = Inside(tmp_path)
    yield made
    made.end()


def session_of(inside, name: str) -> str:
    code = inside.ok(inside.token("root"), "session.code", name=name, role="monitor")["code"]
    return inside.ask("POST", "/v1/session/open", {"code": code})[1]["data"]["token"]


def enrolled(inside, secret: str, name: str) -> str:
    body = {"secret": secret, "handle": name, "teamName": "local", "agentType": "worker"}
    return inside.ask("POST", "/auth", body)[1]["token"]


def test_who_renews_a_session_has_no_more_requests_for_it(inside):
    first, other = session_of(inside, "kim"), session_of(inside, "lee")
    inside.serving._server.rates = Rates(0.001, 3)
    second = inside.ask("POST", "/v1/session/renew", {}, token=first)[1]["data"]["token"]
    asked = [inside.ask("GET", "/v1/me/show", token=token)[0] for token in (first, second, second)]
    assert asked == [200, 200, 429]
    assert inside.ask("GET", "/v1/me/show", token=first)[0] == 429
    assert inside.ask("GET", "/v1/me/show", token=other)[0] == 200


def test_who_enrols_again_under_a_name_has_no_more_requests_for_it(inside):
    secret = inside.ok(inside.token("root"), "enrolment.create", role="worker")["secret"]
    tokens = [enrolled(inside, secret, name) for name in ("kim", "kim", "lee")]
    inside.serving._server.rates = Rates(0.001, 2)
    turns = (tokens[0], tokens[1], tokens[1], tokens[2])
    assert [inside.ask("GET", "/v1/me/show", token=t)[0] for t in turns] == [200, 200, 429, 200]


def test_a_session_is_renewed_only_so_often_at_once(inside, monkeypatch):
    monkeypatch.setattr(enrolments, "MOST_TOKENS", 3)
    token = session_of(inside, "kim")
    asked = [inside.ask("POST", "/v1/session/renew", {}, token=token) for _ in range(3)]
    assert [status for status, _ in asked] == [201, 201, 409]
    assert asked[-1][1]["code"] == "too_many_tokens"
