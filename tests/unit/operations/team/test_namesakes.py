"""Two names that differ only by case are one name to people: only one of them gets in."""

from __future__ import annotations

import pytest

from fleet.domain.access import Actor, Role
from fleet.domain.errors import Refused
from fleet.operations.team.enrolments import CreateEnrolment, Enrol
from fleet.operations.team.members import BeSeen, ListMembers
from fleet.operations.team.tokens import CreateToken


@pytest.mark.parametrize("name", ["Bob", "BOB", "boB"])
def test_a_name_that_differs_only_by_case_gets_no_token_and_no_secret(office, name):
    office.call(CreateToken("bob"))
    for request in (CreateToken(name), CreateEnrolment(name=name)):
        error = office.refused(request, kind=Refused)
        assert error.code == "taken"
        assert "bob" in error.message


def test_whoever_has_a_secret_cannot_enrol_in_other_letters(office):
    office.call(CreateToken("bob"))
    secret = office.call(CreateEnrolment()).secret
    assert office.refused(Enrol(secret, "Bob"), kind=Refused).code == "taken"
    assert office.call(Enrol(secret, "eve")).name == "eve"
    assert office.refused(Enrol(secret, "EVE"), kind=Refused).code == "taken"
    assert office.call(Enrol(secret, "eve")).name == "eve"  # again, in the same letters


def test_the_same_name_in_another_team_is_somebody_elses(office):
    office.call(CreateToken("bob", team="red"))
    assert office.call(CreateToken("Bob", team="blue")).name == "Bob"


def test_a_secret_for_one_name_is_found_in_any_letters(office):
    office.call(CreateEnrolment(name="dan"))
    assert office.refused(CreateToken("Dan"), kind=Refused).code == "taken"


def test_a_token_that_somebody_else_signed_makes_no_second_member_in_other_letters(office):
    office.call(BeSeen(), Actor("bob", Role.WORKER, "local"))
    error = office.refused(BeSeen(), Actor("Bob", Role.MONITOR, "local"), kind=Refused)
    assert error.code == "taken"
    office.call(BeSeen(), Actor("bob", Role.WORKER, "local"))
    assert [member.name for member in office.call(ListMembers())] == ["bob"]
