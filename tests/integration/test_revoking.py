"""Sending somebody away: one token, all of a person, everything; and it stays so."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import time
from dataclasses import replace

import pytest

from fleet.adapters.home.revoked_file import RevokedFile
from fleet.app import App
from fleet.domain.access import ALL, Actor, Revocation, Role
from fleet.domain.entry import Entry, EntryKind
from fleet.operations.catalogue import perform
from fleet.operations.team.enrolments import CreateEnrolment, Enrol, ListEnrolments, RevokeEnrolment
from fleet.operations.team.tokens import CreateToken, ListTokens, RevokeToken
from fleet.ports import EntryQuery, Put
from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.wait import until

LIST = "/v1/task/list"


def answer(served, token: str) -> tuple[int, str]:
    status, said = served.ask("GET", LIST, token=token)
    return status, said.get("code", "")


def enrolled(served, secret: str, name: str) -> tuple[int, dict]:
    return served.ask("POST", "/auth", {"handle": name, "secret": secret})


REVOKED = (401, "revoked_token")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    made = Served(Scratch(tmp_path_factory.mktemp("revoking")), "--no-run")
    yield made
    made.close()


@pytest.fixture(scope="module")
def root(served):
    return served.token("root")


def app_of(scratch: Scratch) -> App:
    return App(scratch.repo, scratch.env)


def test_all_tokens_of_a_person_end_however_many_there_are(served, root):
    """Whoever expects to be sent away gets many tokens first."""
    app = app_of(served.scratch)
    context = app.context
    secret = perform(context, CreateEnrolment("worker", "red")).secret
    tokens = [perform(context, Enrol(secret, "bob")).token for _ in range(20)]
    (like, *_) = app.store.entries(EntryQuery(EntryKind.TOKEN, owner="bob"))
    more = [
        replace(like, id=app.store.new_id("e"), version=0, key=f"copy-{number}")
        for number in range(1000 - len(tokens))
    ]
    app.store.commit([Put(entry) for entry in more], [])
    assert enrolled(served, secret, "bob")[1]["code"] == "too_many_tokens"
    other = served.token("carol", "worker")
    assert {answer(served, token)[0] for token in (tokens[0], tokens[-1])} == {200}
    said = served.ask("POST", "/v1/token/revoke", {"token": "bob"}, token=root)
    assert said[0] == 200, said
    assert {answer(served, token) for token in tokens} == {REVOKED}
    assert answer(served, other) == (200, "")
    listed = served.scratch.data("token", "list", "--limit", "2")
    assert [row["name"] for row in listed] == ["carol", "root"]
    app.store.close()


def test_what_a_command_revokes_without_the_server_counts_there_too(served):
    token = served.token("dan", "worker")
    assert answer(served, token) == (200, "")
    served.scratch("token", "revoke", "dan")
    until(lambda: answer(served, token) == REVOKED, "the server to hear of it")
    again = served.token("dan", "worker")  # made in the same second, perhaps
    assert answer(served, again) == (200, "")


def test_a_person_is_sent_away_from_one_team_and_stays_in_another(served):
    here, there = (served.token("eve", "worker", "--team", team) for team in ("red", "blue"))
    served.scratch("token", "revoke", "eve", "--team", "red")
    until(lambda: answer(served, here) == REVOKED, "eve to be sent away")
    assert answer(served, there) == (200, "")


def test_a_revoked_secret_takes_all_its_tokens_with_it(served, root):
    made = served.scratch.data("token", "enrol", "--role", "worker")
    names = ["fay", "gus"]
    tokens = [enrolled(served, made["secret"], name)[1]["token"] for name in names]
    assert served.scratch.data("token", "enrolments")[0]["uses"] == 2
    served.ask("POST", "/v1/enrolment/revoke", {"enrolment": made["id"]}, token=root)
    assert {answer(served, token) for token in tokens} == {REVOKED}
    assert enrolled(served, made["secret"], "hal")[1]["code"] == "bad_secret"
    assert made["id"] not in [row["id"] for row in served.scratch.data("token", "enrolments")]


def test_a_secret_is_good_for_as_many_tokens_as_was_said(served):
    secret = served.scratch("token", "enrol", "--uses", "2").strip()
    assert [enrolled(served, secret, name)[0] for name in ("ida", "jim", "kim")] == [200, 200, 409]
    assert enrolled(served, secret, "kim")[1]["code"] == "used_up"


def test_everything_before_a_time_ends_and_what_comes_after_counts(tmp_path):
    served = Served(Scratch(tmp_path), "--no-run")
    try:
        old, secret = served.token("ann"), served.scratch("token", "enrol").strip()
        assert "those of running agents too" in served.scratch("token", "revoke", "--all")
        until(lambda: answer(served, old) == REVOKED, "all to be revoked")
        new = served.token("ann")
        assert answer(served, new) == (200, "")
        assert enrolled(served, secret, "bob")[1]["code"] == "bad_secret"
        served.scratch("token", "revoke", "--all", "--before", "2020-01-01T00:00:00")
        assert answer(served, new) == (200, "")
        assert "ok" in served.scratch("health")
        served.scratch.fails("token", "revoke", status=2)
        served.scratch.fails("token", "revoke", "ann", "--before", "2999-01-01T00:00:00", status=2)
    finally:
        served.close()


def test_a_restored_database_does_not_revive_the_revoked(tmp_path):
    scratch = Scratch(tmp_path)
    served = Served(scratch, "--no-run")
    tokens = {name: served.token(name, "worker") for name in ("ann", "bob", "carol")}
    secret = scratch.data("token", "enrol")
    _copied(scratch.home / "fleet.db", scratch.home / "copy.db")
    scratch("token", "revoke", "bob")
    scratch("token", "revoke", scratch.data("token", "list")[0]["id"])  # carol's
    scratch("token", "revoke", secret["id"])
    until(lambda: answer(served, tokens["carol"]) == REVOKED, "carol to be revoked")
    served.end()
    for file in scratch.home.glob("fleet.db*"):
        file.unlink()
    shutil.move(scratch.home / "copy.db", scratch.home / "fleet.db")
    served = Served(scratch, "--no-run")
    assert answer(served, tokens["ann"]) == (200, "")
    assert answer(served, tokens["bob"]) == answer(served, tokens["carol"]) == REVOKED
    assert enrolled(served, secret["secret"], "dan")[1]["code"] == "bad_secret"
    assert [row["name"] for row in scratch.data("token", "list")] == ["ann"]
    file = scratch.home / "server.revoked"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    served.close()


def _copied(store, to) -> None:
    with sqlite3.connect(store) as one, sqlite3.connect(to) as other:
        one.backup(other)


def test_a_token_that_an_older_fleet_revoked_stays_so(tmp_path):
    scratch = Scratch(tmp_path)
    app = app_of(scratch)
    made = perform(app.context, CreateToken("bob"))
    entry = app.store.entry(EntryKind.TOKEN, "", made.id)
    body = {**entry.body, "revoked_at": app.store.now()}
    app.store.commit([Put(_changed(entry, body))], [])
    app.store.close()
    served = Served(scratch, "--no-run")
    assert answer(served, made.token) == REVOKED
    served.close()


def _changed(entry: Entry, body: dict) -> Entry:
    from dataclasses import replace

    return replace(entry, body=body)


def test_the_file_forgets_what_could_no_longer_be_valid(tmp_path):
    file = RevokedFile(tmp_path)
    file.add([Revocation("token:a", until=5), Revocation("token:b", until=50), Revocation(ALL, 7)])
    file.add([Revocation(ALL, 3), Revocation(ALL, 9)])
    with (tmp_path / "server.revoked").open("a") as half:
        half.write('["token:c", 46')  # a power cut
    kept = file.read(now=10)
    assert {key: r.before for key, r in kept.items()}.keys() == {"token:b", ALL}
    assert kept[ALL].before == 9
    assert file.read(now=10) == kept
    assert len((tmp_path / "server.revoked").read_text().splitlines()) == 2


def test_revoking_costs_one_row_and_lists_filter_before_the_page_is_cut(tmp_path):
    app = app_of(Scratch(tmp_path))
    context = app.context._replace(actor=Actor("root", Role.COORDINATOR))
    with app.store.together():
        for number in range(30):
            perform(context, CreateToken("bob" if number > 4 else "ann"))
            perform(context, CreateEnrolment())
    before = len(app.store.events(limit=1000))
    perform(context, RevokeToken("bob"))
    assert len(app.store.events(limit=1000)) == before + 1
    assert [t.name for t in perform(context, ListTokens(limit=5))] == ["ann"] * 5
    rows = perform(context, ListEnrolments(limit=30))
    for row in rows[:25]:
        perform(context, RevokeEnrolment(row.id))
    assert [row.id for row in perform(context, ListEnrolments(limit=5))] == [
        r.id for r in rows[25:]
    ]
    began = time.perf_counter()
    perform(context, ListTokens(limit=5))
    assert time.perf_counter() - began < 5
    app.store.close()
