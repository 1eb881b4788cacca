"""A kind of forge is its row, its module and, as it sends events, its reader."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from fleet.adapters.forges.addresses import RepositoryAddress, api_of
from fleet.adapters.forges.token import TokenSource
from fleet.config.keys.table import KEYS
from fleet.domain.errors import Refused
from fleet.domain.forges.kinds import FORGES, KINDS, TITLES, TRACKERS
from fleet.domain.forges.webhooks import READERS
from fleet.supervisor.attempt.environment import inherited


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_has_its_module_and_its_reader(kind):
    module = import_module(f"fleet.adapters.forges.{kind}")
    needs = {"ticket", "search", "comment"}
    if kind in FORGES:
        needs |= {"open", "show", "merge", "comment_on_ticket"}
    assert {name for name in needs if not callable(getattr(module.Client, name, None))} == set()
    assert isinstance(module.headers("ada:token"), dict)
    assert set(READERS) == set(KINDS)


def test_the_settings_take_every_kind_and_say_so():
    keys = {key.path: key for key in KEYS}
    assert set(keys["forge.hosts"].choices) == set(KINDS)
    for name in ("forge.hosts", "hooks.secrets"):
        assert [kind for kind in KINDS if kind not in keys[name].doc] == []


def test_agents_get_the_token_of_none():
    env = {row.token: "secret" for row in KINDS.values()} | {"PATH": "/bin"}
    assert inherited(env, store_url="", passed=()) == {"PATH": "/bin"}


def test_the_address_of_an_api_is_the_rows():
    assert api_of(RepositoryAddress("github.com", ""), "github") == "https://api.github.com"
    assert api_of(RepositoryAddress("git.example", ""), "github") == "https://git.example/api/v3"
    assert api_of(RepositoryAddress("linear.app", ""), "linear") == "https://api.linear.app"
    assert api_of(RepositoryAddress("x.atlassian.net", ""), "jira") == "https://x.atlassian.net"


def test_a_missing_token_is_explained_in_the_words_of_its_kind():
    fixes = {}
    for kind in KINDS:
        with pytest.raises(Refused) as refused:
            TokenSource("h.example", kind, {"PATH": "/nowhere", "HOME": "/nowhere"})()
        fixes[kind] = refused.value.fix
    assert fixes["linear"] == "Set FLEET_LINEAR_TOKEN."
    assert fixes["jira"] == "Set FLEET_JIRA_TOKEN; for Jira Cloud it is EMAIL:TOKEN."
    assert fixes["gitea"].startswith("Set FLEET_FORGE_TOKEN, or store one with git")
    assert fixes["github"].startswith(
        "gh auth login --hostname h.example, or set FLEET_FORGE_TOKEN"
    )


def test_the_kinds_are_named_as_people_write_them():
    assert TITLES == "GitHub, GitLab, Gitea, Forgejo, Linear or Jira"
    assert set(FORGES) | set(TRACKERS) == set(KINDS)
    assert all(re.compile(row.ticket).groupindex.keys() >= {"name"} for row in KINDS.values())
