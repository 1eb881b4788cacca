"""How a forge is asked: within a deadline, no more often than it allows, and nothing twice."""

from __future__ import annotations

import time

import pytest

from fleet.adapters.forges.addresses import parse
from fleet.adapters.forges.forges import HostForges
from fleet.adapters.forges.github import GitHub
from fleet.adapters.forges.rest import Rest
from fleet.domain.errors import Refused, Unavailable
from tests.contract.checkouts import make_repo
from tests.forges.fake_forge import TOKEN, FakeForge, Issue


@pytest.fixture
def forge(tmp_path):
    made = FakeForge("github", tmp_path / "forge")
    made.adopt(make_repo(tmp_path / "shop"))
    made.issues.append(Issue(1, "Prices", "They are wrong."))
    yield made
    made.close()


def rest_of(forge, **options) -> Rest:
    headers = {"Authorization": f"Bearer {options.pop('token', TOKEN)}"}
    return Rest(f"http://{forge.host}/api/v3", lambda: headers, **options)


def test_an_answer_that_has_not_changed_is_not_sent_again(forge):
    github = GitHub(rest_of(forge), "shop/web")
    assert github.ticket(1) == github.ticket(1)
    assert [e.status for e in forge.exchanges] == [200, 304]
    forge.issues[0].title = "Prices!"
    assert github.ticket(1).title == "Prices!"


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (429, {"Retry-After": "30"}),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Limit": "60"}),
        (503, {"Retry-After": "30"}),
    ],
)
def test_a_forge_that_asks_us_to_wait_is_not_asked_until_then(forge, status, headers):
    headers = {"X-RateLimit-Reset": str(int(time.time()) + 30)} | headers
    forge.refusals["GET"] = (status, headers, {"message": "Slow down"})
    github = GitHub(rest_of(forge), "shop/web")
    for _ in range(3):
        with pytest.raises(Unavailable) as caught:
            github.ticket(1)
        assert caught.value.code == "forge_busy"
    assert len(forge.exchanges) == 1


def test_when_little_is_left_for_this_hour_we_stop_looking_but_not_working(forge):
    reset = {"X-RateLimit-Reset": str(int(time.time()) + 900)}
    low = {"X-RateLimit-Remaining": "1900", "X-RateLimit-Limit": "5000", **reset}
    forge.refusals["GET"] = (200, low, {})
    rest = rest_of(forge)
    rest.get("/repos/shop/web/issues/1")
    with pytest.raises(Unavailable):
        rest.get("/repos/shop/web/issues/1")
    rest.send("POST", "/repos/shop/web/issues/1/comments", {"body": "Done."})
    assert forge.comments == {1: ["Done."]}


def test_a_forge_that_answers_too_slowly_is_cut_off(forge):
    forge.before["GET"] = lambda: time.sleep(5)
    begun = time.monotonic()
    with pytest.raises(Unavailable, match=r"no answer within 0\.2 s"):
        rest_of(forge, within=0.2).get("/repos/shop/web/issues/1")
    assert time.monotonic() - begun < 4


def test_a_wrong_token_is_said_with_what_to_do_and_never_shown(forge):
    with pytest.raises(Refused) as caught:
        rest_of(forge, token="wrong-token").get("/repos/shop/web/issues/1")
    assert (caught.value.code, bool(caught.value.fix)) == ("forge_token", True)
    assert "wrong-token" not in str(caught.value)


def test_a_forge_that_moved_is_not_followed_with_the_token(forge):
    forge.refusals["GET"] = (301, {"Location": "http://127.0.0.1:9/"}, None)
    with pytest.raises(Refused, match="moved"):
        rest_of(forge).get("/repos/shop/web/issues/1")


def test_an_answer_of_another_shape_is_said_to_be_odd(forge):
    forge.refusals["GET"] = (200, {}, {"number": "x"})
    with pytest.raises(Unavailable, match="an unexpected answer"):
        GitHub(rest_of(forge), "shop/web").show(1)


def test_a_proxy_of_the_environment_is_used(forge, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://{forge.host}")
    monkeypatch.setenv("no_proxy", "")
    rest = Rest("http://forge.invalid/api/v3", lambda: {"Authorization": f"Bearer {TOKEN}"})
    assert rest.get("/repos/shop/web/issues/1")["title"] == "Prices"


def test_a_comment_is_written_once_for_each_mark(forge):
    github = GitHub(rest_of(forge), "shop/web")
    github.comment(1, "Done.", "t-1 done")
    github.comment(1, "Done.", "t-1 done")
    github.comment(1, "Landed.", "t-1 landed")
    assert [text.partition("\n")[0] for text in forge.comments[1]] == ["Done.", "Landed."]


def test_a_host_that_nobody_declared_is_not_asked(forge):
    forges = HostForges({"FLEET_FORGE_TOKEN": TOKEN}, lambda: ())
    with pytest.raises(Refused) as caught:
        forges.at(parse(forge.url))
    assert caught.value.code == "unknown_forge"
    assert forge.exchanges == []
