"""A machine joins with an invitation: once, for itself, and for nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.entry import EntryKind
from fleet.domain.errors import BadInput, Forbidden
from fleet.domain.run import Host
from fleet.operations.compute.hosts import ForgetHost
from fleet.operations.compute.joining import CreateHostToken, InviteHost, JoinHost
from fleet.operations.team.enrolments import CreateEnrolment, Enrol
from fleet.operations.team.sessions import OpenSession
from fleet.ports import Put

KEY, OTHER = "k" * 43, "o" * 43
BOX = "box-3f2a9c"


def test_one_machine_joins_with_an_invitation_and_may_repeat_it(office):
    code = office.call(InviteHost("ada:secret@db.example:5432")).secret
    joined = office.call(JoinHost(code, BOX, KEY))
    assert (joined.host, joined.token) == (BOX, f"signed {BOX}")
    again = office.call(JoinHost(code, BOX, KEY))
    assert office.logins.made[0] == office.logins.made[1]  # the same login, with a new password
    assert again.store_url != joined.store_url
    assert "@db.example:5432/" in joined.store_url
    office.refused(JoinHost(code, BOX, OTHER))
    office.refused(JoinHost(code, "other-000000", KEY), kind=Forbidden)


@pytest.mark.parametrize("store", ["db.example:99999", "db:x", "db example", ":5432", "[::1"])
def test_what_is_no_address_of_a_database_is_refused(office, store):
    error = office.refused(InviteHost(store), kind=BadInput)
    assert store in error.message


@pytest.mark.parametrize(
    ("store", "kept"),
    [
        ("db.example", "db.example"),
        ("[::1]:5432", "[::1]:5432"),
        ("a:5432,b:5433", "a:5432,b:5433"),
        ("postgresql://ada:secret@db.example:5432/fleet", "db.example:5432"),
    ],
)
def test_an_address_of_a_database_is_kept_without_who_and_what(office, store, kept):
    code = office.call(InviteHost(store)).secret
    assert f"@{kept}/" in office.call(JoinHost(code, BOX, KEY)).store_url


def test_a_secret_that_nobody_knows_is_answered_with_how_to_get_an_invitation(office):
    error = office.refused(JoinHost("enrol-x", BOX, KEY), kind=Forbidden)
    assert "fleet host invite" in error.fix


def test_an_invitation_makes_nobody_a_machine_that_is_there(office):
    office.store.commit([Put(Host(BOX, 0, "box", "x", "y", 1))], [])
    code = office.call(InviteHost()).secret
    office.refused(JoinHost(code, BOX, KEY))
    own = office.call(InviteHost(host=BOX)).secret
    assert office.call(JoinHost(own, BOX, KEY)).host == BOX


def test_nobody_enrols_with_an_invitation_and_no_machine_joins_with_a_persons_secret(office):
    code = office.call(InviteHost()).secret
    office.refused(Enrol(code, "bob"), kind=Forbidden)
    office.refused(OpenSession(code, "bob"), kind=Forbidden)
    person = office.call(CreateEnrolment("coordinator")).secret
    office.refused(JoinHost(person, BOX, KEY), kind=Forbidden)


def test_forgetting_a_machine_ends_its_token_its_login_and_its_invitation(office):
    code = office.call(InviteHost()).secret
    office.call(JoinHost(code, BOX, KEY))
    (token,) = [e for e in office.store.entries(token_query()) if e.body.get("host") == BOX]
    office.store.commit([Put(Host(BOX, 0, "box", "x", "y", 1))], [])
    office.call(ForgetHost(BOX))
    assert office.logins.dropped == office.logins.made
    assert office.call(CreateHostToken(BOX, token.key)).token  # the one that it has is revoked
    with pytest.raises(Forbidden, match="revoked"):
        office.call(JoinHost(code, BOX, KEY))


def test_a_token_is_made_anew_when_half_of_its_life_is_over(office):
    made = office.call(CreateHostToken(BOX))
    assert office.call(CreateHostToken(BOX, made.id)).token == ""
    entry = office.store.entry(EntryKind.TOKEN, "", made.id)
    older = replace(entry, until=office.store.now() + 1_000_000)
    office.store.commit([Put(replace(older, at=older.until - 10_000_000))], [])
    assert office.call(CreateHostToken(BOX, made.id)).token


def token_query():
    from fleet.ports import EntryQuery

    return EntryQuery(EntryKind.TOKEN)
