"""Tokens that an older Fleet made, with a HMAC and a JWT of its own, stay valid."""

from __future__ import annotations

from dataclasses import replace

import jwt
import pytest

from fleet.adapters.home.home import Home
from fleet.app.token_keys import KeyRing, own_token
from fleet.domain.access import Actor, Role
from fleet.domain.errors import Forbidden
from fleet.server.tokens import TokenCheck

RUN = Actor("t-31.2", Role.WORKER, "shop", "t-31.2", remote=True)
KEY = b"k" * 32


def who(tokens: TokenCheck, token: str) -> Actor:
    """Without what differs from token to token."""
    return replace(tokens.check(token).actor, token="", until=0)


def tokens_of(home, key: bytes = KEY) -> TokenCheck:
    """Of a home from before there were several keys."""
    (home / "server.key").write_text(f"{key.hex()}\n")
    return TokenCheck(KeyRing(home, {}))


OLD = (
    "eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJqdGkiOiAiZmZhZDQxMzEzMWZmZmE4NCIsICJhdWQiOiAiZmxlZXQiLC"
    "AiaWF0IjogMTcwMDAwMDAwMCwgImV4cCI6IDQwNzA5MDg4MDAsICJzdWIiOiAidC0zMS4yIiwgInJvbGUiOiAid29ya2VyIiwgInR"
    "lYW0iOiAic2hvcCIsICJydW4iOiAidC0zMS4yIn0.aKm3IwfdbFPeMlQkf9NDYld1Zw3kkWm4cu7lB39ZjUA"
)


def test_the_server_takes_a_token_that_an_older_supervisor_gave_a_run(tmp_path):
    assert who(tokens_of(tmp_path), OLD) == RUN


def test_the_server_refuses_it_with_one_character_changed(tmp_path):
    with pytest.raises(Forbidden) as caught:
        tokens_of(tmp_path).check(OLD[:-2] + "E0")
    assert caught.value.code == "bad_token"


def test_a_run_that_an_older_supervisor_started_is_still_believed(tmp_path):
    (tmp_path / "key").write_text("0123456789abcdef" * 4 + "\n")
    old = "3c7910a6facc6e333104a464789926c32159cdda914a41f71ced75f049ad83b4"
    home = Home(tmp_path)
    assert home.is_token("t-31.2", old)
    assert not home.is_token("t-31.3", old)


def test_the_server_takes_a_token_that_a_command_makes_for_itself(tmp_path):
    token = own_token(tmp_path, RUN, seconds=60)
    keys = KeyRing(tmp_path, {})
    assert who(TokenCheck(keys), token) == RUN
    assert jwt.get_unverified_header(token) == {
        "alg": "HS256", "typ": "JWT", "kid": keys.signing().id,
    }  # fmt: skip
