from __future__ import annotations

import pytest

from fleet.adapters.forges.addresses import RepositoryAddress, api_of, kinds_of, parse
from fleet.domain.errors import Refused


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://github.com/shop/web.git", RepositoryAddress("github.com", "shop/web")),
        ("https://user:pass@github.com/shop/web", RepositoryAddress("github.com", "shop/web")),
        ("git@github.com:shop/web.git", RepositoryAddress("github.com", "shop/web")),
        ("github.com:shop/web", RepositoryAddress("github.com", "shop/web")),
        ("ssh://git@git.example.com:2222/a/b/c.git", RepositoryAddress("git.example.com", "a/b/c")),
        (
            "https://git.example.com:8443/shop/web/",
            RepositoryAddress("git.example.com:8443", "shop/web"),
        ),
        (
            "http://127.0.0.1:3000/shop/web.git",
            RepositoryAddress("127.0.0.1:3000", "shop/web", "http"),
        ),
        ("https://GitHub.com/Shop/Web", RepositoryAddress("github.com", "Shop/Web")),
    ],
)
def test_the_address_of_a_remote_names_a_repository_on_a_forge(remote, address):
    assert parse(remote) == address


@pytest.mark.parametrize(
    "remote",
    [
        *("", "/srv/shop.git", "../shop", "file:///srv/shop.git", "https://github.com/"),
        *("https://github.com/shop", "https://host:port/a/b", "git://host/a/b", "C:\\shop"),
        *("https://github.com/../web", "https:///a/b"),
    ],
)
def test_what_leads_to_no_forge_is_none(remote):
    assert parse(remote) is None


def test_the_api_is_where_each_kind_has_it():
    assert api_of(RepositoryAddress("github.com", "a/b"), "github") == "https://api.github.com"
    assert api_of(RepositoryAddress("git.corp", "a/b"), "github") == "https://git.corp/api/v3"
    assert api_of(RepositoryAddress("gitlab.com", "a/b"), "gitlab") == "https://gitlab.com/api/v4"
    assert (
        api_of(RepositoryAddress("codeberg.org", "a/b"), "gitea") == "https://codeberg.org/api/v1"
    )


def test_a_token_goes_over_plain_http_to_this_machine_alone():
    assert api_of(RepositoryAddress("127.0.0.1:3000", "a/b", "http"), "gitea").startswith(
        "http://127.0.0.1"
    )
    with pytest.raises(Refused) as caught:
        api_of(RepositoryAddress("git.corp:3000", "a/b", "http"), "gitea")
    assert caught.value.code == "plain_http"


def test_hosts_of_ones_own_are_added_to_those_that_are_known():
    kinds = kinds_of(["git.corp = gitlab", "127.0.0.1:3000=gitea"])
    assert kinds["git.corp"] == "gitlab"
    assert kinds["127.0.0.1:3000"] == "gitea"
    assert kinds["github.com"] == "github"
