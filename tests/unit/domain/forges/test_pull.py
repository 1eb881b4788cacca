from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.forges.pull import PullSeen, PullState, follow, is_ours, is_proposed, may_merge
from fleet.domain.landing.landing import (
    Landing,
    LandingState,
    LandingWish,
    Proposal,
    Pull,
    with_pull,
)

HEAD, OTHER = "a" * 40, "b" * 40
PULL = Pull(7, "https://forge/7", "fleet/t-1", HEAD, tip=HEAD, tested_on=OTHER)
WISH = LandingWish("ada", remote="origin", pull=Proposal(merge=True, opened=PULL))
LANDING = Landing(
    "l-1", 1, LandingState.QUEUED, "t-1", "local", "/shop", "main in /shop", "main", HEAD, WISH, 1,
)  # fmt: skip
SEEN = PullSeen(7, "https://forge/7", PullState.OPEN, HEAD, "fleet/t-1", "main")


def test_merged_there_is_landed_here_with_the_commit_that_the_branch_has():
    seen = SEEN._replace(state=PullState.MERGED, merged_as=OTHER)
    assert (follow(LANDING, seen).state, follow(LANDING, seen).commit) == (
        LandingState.LANDED,
        OTHER,
    )


def test_a_fast_forward_there_has_no_commit_of_its_own():
    assert follow(LANDING, SEEN._replace(state=PullState.MERGED)).commit == HEAD


def test_closed_there_needs_a_person_and_opened_again_goes_on():
    closed = follow(LANDING, SEEN._replace(state=PullState.CLOSED))
    assert closed.state is LandingState.HELD
    again = follow(closed, SEEN)
    assert (again.state, "is open" in again.why) == (LandingState.QUEUED, True)


def test_what_a_person_holds_stays_held_while_it_is_open():
    held = replace(LANDING, state=LandingState.HELD, why="After the release.")
    assert follow(held, SEEN) == held


@pytest.mark.parametrize(
    ("landing", "seen", "may"),
    [
        (LANDING, SEEN, True),
        (LANDING, SEEN._replace(head=OTHER), False),
        (LANDING, SEEN._replace(state=PullState.CLOSED), False),
        (replace(LANDING, tip=OTHER), SEEN, False),
        (replace(LANDING, state=LandingState.HELD), SEEN, False),
        (replace(LANDING, wish=LandingWish("ada", pull=Proposal(opened=PULL))), SEEN, False),
        (with_pull(LANDING, None), SEEN, False),
    ],
)
def test_only_the_commit_that_was_tested_is_merged_and_only_when_wanted(landing, seen, may):
    assert may_merge(landing, seen) is may


@pytest.mark.parametrize(
    ("state", "head", "ours"),
    [
        (PullState.OPEN, HEAD, True),
        (PullState.OPEN, OTHER, True),
        (PullState.MERGED, HEAD, True),
        (PullState.MERGED, OTHER, False),
        (PullState.CLOSED, HEAD, False),
    ],
)
def test_a_pull_request_that_is_there_is_taken_up_unless_it_is_over(state, head, ours):
    assert is_ours(SEEN._replace(state=state, head=head), HEAD) is ours
    assert not is_ours(None, HEAD)


def test_new_work_is_proposed_again():
    assert is_proposed(LANDING)
    assert not is_proposed(replace(LANDING, tip=OTHER))
    assert not is_proposed(with_pull(LANDING, None))
