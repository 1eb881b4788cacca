"""A server behind a reverse proxy: the name that clients use, and who they are."""

from __future__ import annotations

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served

GUESS = {"handle": "eve", "secret": "enrol-guess"}


@pytest.fixture(scope="module")
def proxied(tmp_path_factory):
    made = Served(
        Scratch(tmp_path_factory.mktemp("proxied")), "--no-run", "--name", "Fleet.Example.ORG",
        env={"FLEET_SERVER_TRUSTED_PROXIES": "127.0.0.1\n10.0.0.0/8"},
    )  # fmt: skip
    yield made
    made.close()


@pytest.mark.parametrize(
    "host",
    ["Fleet.Example.ORG", "fleet.example.org", "FLEET.EXAMPLE.ORG:443", "fleet.example.org."],
)
def test_the_case_of_the_servers_name_does_not_matter(proxied, host):
    assert proxied.ask("GET", "/health", headers={"Host": host})[0] == 200
    origin = {"Host": host, "Origin": f"https://{host.lower()}"}
    assert proxied.ask("GET", "/health", headers=origin)[0] == 200
    assert proxied.ask("GET", "/health", headers={"Host": f"x{host}"})[0] == 421


def guessed(served, *forwarded: str) -> int:
    headers = {"X-Forwarded-For": ", ".join(forwarded)} if forwarded else {}
    return served.ask("POST", "/auth", GUESS, headers=headers)[0]


def test_a_trusted_proxy_says_whose_guesses_they_are(proxied):
    for _ in range(11):
        status = guessed(proxied, "203.0.113.7")
    assert status == 429
    assert guessed(proxied, "203.0.113.8") == 401
    assert guessed(proxied, "203.0.113.7", "10.1.2.3") == 429  # through a second proxy of ours
    assert guessed(proxied, "203.0.113.99", "203.0.113.7") == 429  # the client's own claim


def test_nobody_else_says_it(tmp_path):
    served = Served(Scratch(tmp_path), "--no-run")
    try:
        assert [guessed(served, f"203.0.113.{number}") for number in range(11)][-1] == 429
        secret = served.scratch("token", "enrol").strip()
        assert served.ask("POST", "/auth", {"handle": "carol", "secret": secret})[0] == 200
    finally:
        served.close()


def test_a_proxy_that_is_no_address_is_refused(tmp_path):
    scratch = Scratch(tmp_path)
    said = scratch.fails("config", "set", "server.trusted_proxies=[nginx]", status=2)
    assert "is not an address or a network" in said
