from __future__ import annotations

import pytest

from fleet.domain.access import Actor, Role
from fleet.domain.errors import Refused
from fleet.operations.team.enrolments import CreateEnrolment, RevokeEnrolment
from fleet.operations.team.sessions import (
    CODE_SECONDS,
    LONGEST_SESSION,
    CreateCode,
    OpenSession,
    RenewSession,
)
from fleet.operations.team.tokens import CreateToken, ListTokens, RevokeToken


def token_of(office) -> str:
    return next(k.key for k in reversed(office.store.records.values()) if is_token(k))


def is_token(record) -> bool:
    return getattr(record, "kind", "") == "token"


def test_a_code_expires_after_a_minute(office):
    code = office.call(CreateCode()).code
    office.clock.advance(CODE_SECONDS)
    assert office.refused(OpenSession(code)).code == "used_code"


@pytest.mark.parametrize("revoke", [RevokeToken("bob"), RevokeToken(all=True)])
def test_a_code_opens_nothing_after_its_person_was_sent_away(office, revoke):
    office.call(CreateToken("bob"))
    code = office.call(CreateCode("bob", "worker")).code
    office.call(revoke)
    assert office.refused(OpenSession(code)).code == "used_code"
    office.clock.advance(1)
    assert office.call(OpenSession(office.call(CreateCode("bob", "worker")).code)).name == "bob"


def test_of_two_who_use_one_code_at_once_the_second_is_refused(office):
    code = office.call(CreateCode()).code
    with pytest.raises(Refused) as caught:
        office.call(OpenSession(code), meanwhile=lambda: office.call(OpenSession(code)))
    assert caught.value.code == "used_code"


def test_a_session_is_renewed_for_30_days_and_no_longer(office):
    session = office.call(OpenSession(office.call(CreateCode()).code))
    actor = Actor("ada", Role.COORDINATOR, token=token_of(office))
    assert session.last - session.until > 0
    for days in (10, 10, 9.9):
        office.clock.advance(days * 86400)
        renewed = office.call(RenewSession(), actor)
        assert renewed.last == session.last
        assert renewed.until <= renewed.last
    office.clock.advance(LONGEST_SESSION)
    assert office.refused(RenewSession(), actor).code == "refused"


def test_an_enrolment_opens_a_session_of_its_name_and_role(office):
    made = office.call(CreateEnrolment("team-lead", name="kim", seconds=600, uses=1))
    session = office.call(OpenSession(made.secret))
    assert (session.name, session.role) == ("kim", "team-lead")
    assert office.refused(OpenSession(made.secret)).code == "used_up"


def test_an_enrolment_for_anybody_needs_a_name_that_is_free(office):
    secret = office.call(CreateEnrolment("worker")).secret
    assert office.refused(OpenSession(secret)).code == "no_name"
    assert office.call(OpenSession(secret, "kim")).name == "kim"
    other = office.call(CreateEnrolment("worker")).secret
    assert office.refused(OpenSession(other, "kim")).code == "taken"


def test_a_session_ends_with_the_enrolment_that_it_came_from_also_when_renewed(office):
    made = office.call(CreateEnrolment("worker", name="kim"))
    office.call(OpenSession(made.secret))
    kim = Actor("kim", Role.WORKER, token=token_of(office))
    office.call(RenewSession(), kim)
    office.call(RevokeEnrolment(made.id))
    assert office.call(ListTokens()) == ()
    assert office.refused(OpenSession(made.secret)).code == "bad_secret"
