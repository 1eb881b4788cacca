"""The keys that sign tokens: which one a token names, who signs, and how a key is retired."""

from __future__ import annotations

import stat
import time

import jwt
import pytest

from fleet.adapters.home.key_ring import KeyRing
from fleet.app.token_keys import own_token
from fleet.domain.access import Actor, Role, claims_of
from fleet.domain.errors import Forbidden, Unavailable
from fleet.server.tokens import TokenCheck
from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.wait import until

LIST = "/v1/task/list"
SECRET = {"JWT_SECRET": "the secret of the service"}


def kid(token: str) -> str:
    return jwt.get_unverified_header(token)["kid"]


def answer(served, token: str) -> tuple[int, str]:
    status, said = served.ask("GET", LIST, token=token)
    return status, said.get("code", "")


@pytest.fixture
def serve(tmp_path):
    """A server over the same home each time, each with an environment of its own."""
    scratch, started = Scratch(tmp_path), []

    def begin(**env: str) -> Served:
        started.append(Served(scratch, "--no-run", env=env))
        return started[-1]

    yield begin
    for served in started:
        served.close()


def test_a_token_made_beside_a_service_with_a_secret_is_signed_by_the_service(serve):
    """The deployment page, word for word: the secret is in the service's environment alone."""
    served = serve(**SECRET)
    token = served.token("bob", "team-lead", "--team", "red")
    assert answer(served, token) == (200, "")
    assert kid(token) == KeyRing(served.scratch.home, SECRET).signing().id
    assert "fleet_tasks" in served.scratch("metrics")
    assert "ok" in served.scratch("health")
    assert [t["name"] for t in served.scratch.data("token", "list")] == ["bob"]


def test_a_token_made_while_the_service_was_down_is_accepted_later(serve):
    served = serve(**SECRET)
    served.end()
    token = served.token("bob", "worker")
    assert answer(serve(**SECRET), token) == (200, "")


def test_a_token_that_another_server_signed_is_refused_with_that_reason(serve, tmp_path):
    served, other = serve(), tmp_path / "other"
    token = own_token(other, Actor("bob", Role.WORKER), seconds=60)
    status, said = served.ask("GET", LIST, token=token)
    assert (status, said["code"]) == (401, "unknown_key")
    assert KeyRing(other, {}).own().id in said["detail"]
    assert "another server" in said["detail"]


def test_rotation_signs_with_a_new_key_and_the_old_one_still_verifies(serve):
    served = serve()
    old = served.token("ann")
    said = served.scratch.data("token", "rotate", "--overlap", "1")
    new = served.token("ann")
    assert (kid(new), kid(old) == kid(new)) == (said["id"], False)
    assert answer(served, new) == answer(served, old) == (200, "")
    key = served.scratch.home / "server.key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_rotation_without_an_overlap_ends_every_older_token_at_once(serve):
    served = serve()
    old = served.token("ann")
    assert answer(served, old) == (200, "")
    served.scratch("token", "rotate", "--overlap", "0")
    until(lambda: answer(served, old) == (401, "unknown_key"), "the old key to be retired")
    assert answer(served, served.token("ann")) == (200, "")
    assert "ok" in served.scratch("health")


def test_a_key_of_the_environment_is_rotated_there(serve):
    served = serve(**SECRET)
    old = served.token("ann")
    assert "JWT_SECRET_PREVIOUS" in served.scratch.fails("token", "rotate", status=1)
    served.end()
    changed = serve(JWT_SECRET="another one, as long", JWT_SECRET_PREVIOUS=SECRET["JWT_SECRET"])
    new = changed.token("ann")
    assert kid(old) != kid(new)
    assert answer(changed, old) == answer(changed, new) == (200, "")
    changed.end()
    later = serve(JWT_SECRET="another one, as long")
    assert (answer(later, old), answer(later, new)) == ((401, "unknown_key"), (200, ""))


class Time:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def test_an_old_key_verifies_until_its_overlap_is_over(tmp_path):
    clock = Time()
    ring = KeyRing(tmp_path, {}, clock)
    first = ring.signing()
    second = ring.rotate(3600)
    assert ring.signing() == second != first
    clock.now += 1800
    third = ring.rotate(7200)  # does not prolong what is ending already
    assert {key.id for key in ring.all()} == {first.id, second.id, third.id}
    clock.now += 1801
    assert ring.find(first.id) is None
    assert {key.id for key in KeyRing(tmp_path, {}, clock).all()} == {second.id, third.id}
    assert len((tmp_path / "server.key").read_text().split("\n")) == 4


def test_a_damaged_key_file_is_named(tmp_path):
    (tmp_path / "server.key").write_text("not a key\n")
    with pytest.raises(Unavailable, match=r"server\.key"):
        KeyRing(tmp_path, {}).signing()


@pytest.mark.parametrize(
    ("claims", "code"),
    [
        ({"iat": 30}, ""), ({"nbf": 30}, ""), ({"exp": -30}, ""),
        ({"iat": 300}, "bad_token"), ({"nbf": 300}, "bad_token"), ({"exp": -300}, "expired_token"),
    ],
)  # fmt: skip
def test_clocks_may_differ_by_a_minute(tmp_path, claims, code):
    ring, now = KeyRing(tmp_path, {}), time.time()
    said = claims_of(Actor("bob", Role.WORKER), "f" * 16, at=now, until=int(now) + 600)
    said |= {name: now + seconds for name, seconds in claims.items()}
    key = ring.signing()
    token = jwt.encode(said, key.value, algorithm="HS256", headers={"kid": key.id})
    if not code:
        assert TokenCheck(ring).check(token).actor.name == "bob"
        return
    with pytest.raises(Forbidden) as caught:
        TokenCheck(ring).check(token)
    assert caught.value.code == code


def test_a_key_is_named_by_the_token_and_not_chosen_by_whoever_sends_it(tmp_path):
    """A token of a retired key that names the new one is not of the new one."""
    ring = KeyRing(tmp_path, {})
    old, new = ring.signing(), ring.rotate(0)
    said = claims_of(Actor("bob", Role.WORKER), "f" * 16, at=time.time(), until=1 << 33)
    for headers in ({"kid": new.id}, {"kid": ""}, {}):
        token = jwt.encode(said, old.value, algorithm="HS256", headers=headers)
        with pytest.raises(Forbidden) as caught:
            TokenCheck(ring).check(token)
        assert caught.value.code in {"bad_token", "unknown_key"}
