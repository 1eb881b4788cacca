"""A landing that came back is given to a person."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.access import Role
from fleet.domain.errors import Forbidden, NotFound
from fleet.domain.landing.landing import Landing, LandingState, LandingWish, train_id
from fleet.operations.inbox import ListInbox
from fleet.operations.landing.landing import GiveLanding, ListLandings, ReleaseLanding
from fleet.operations.team.members import BeSeen
from fleet.ports import Put


@pytest.fixture
def landing(office) -> Landing:
    """Of a task of the team red, held after it came back."""
    office.call(BeSeen(), office.person(Role.WORKER, team="red", name="alice"))
    store, task = office.store, office.add("Read prices", team="red")
    train = train_id("/repo", "main")
    row = Landing(
        store.new_id("l"), 0, LandingState.HELD, task, "red", "/repo", train, "main", "abc",
        LandingWish("ada"), store.now(), why="It conflicts in a.py.", returns=3,
    )  # fmt: skip
    return store.commit([Put(row)], [])[0]


def item(office):
    (item,) = office.call(ListInbox(kinds=("landing",)))
    return item


def test_it_is_with_that_member_until_it_is_queued_again(office, landing):
    assert item(office).given == ""
    assert office.call(GiveLanding(landing.task, "alice")).given == "alice"
    assert item(office).given == "alice"
    assert [row.given for row in office.call(ListLandings())] == ["alice"]
    (event,) = [e for e in office.store.events() if e.type == "landing.given"]
    assert (event.task, event.data["to"]) == (landing.task, "alice")
    assert office.call(ReleaseLanding(landing.id)).given == ""
    assert not office.store.landing(landing.id).wish.given


def test_it_is_taken_back_by_giving_it_to_nobody(office, landing):
    office.call(GiveLanding(landing.id, "alice"))
    assert office.call(GiveLanding(landing.id)).given == ""
    assert item(office).given == ""


def test_only_a_member_of_its_team_can_have_it(office, landing):
    office.refused(GiveLanding(landing.id, "bob"), kind=NotFound)
    office.call(BeSeen(), office.person(Role.WORKER, team="blue", name="bob"))
    office.refused(GiveLanding(landing.id, "bob"), kind=NotFound)


def test_what_waits_in_the_queue_is_nobodys_yet(office, landing):
    office.store.commit([Put(replace(landing, state=LandingState.QUEUED))], [])
    office.refused(GiveLanding(landing.id, "alice"))


def test_who_may_not_merge_may_not_give_it(office, landing):
    watcher = office.person(Role.MONITOR, team="red")
    office.refused(GiveLanding(landing.id, "alice"), watcher, kind=Forbidden)
