"""What every Checkout promises: the real one on real repositories, and the fake."""

from pathlib import Path

import pytest

from fleet.domain.errors import Refused
from fleet.domain.task import Spec
from fleet.testing.fakes import FakeCheckout
from tests.contract.checkouts import checkout_in, git, make_repo, picture, prepared, site


class Real:
    def __init__(self, place):
        self.project = make_repo(place / "shop")
        self.place = place
        self.checkout = checkout_in(place)

    def is_made(self, workspace):
        return Path(workspace.path).is_dir()

    def world(self):
        return picture(self.project), sorted(self.place.rglob("worktrees/**"))

    def impossible(self):
        return site(self.project, "t-9", spec=Spec(cwd=str(self.project), base="no-such-commit"))


class Fake:
    def __init__(self, place):
        self.project = Path("/shop")
        self.checkout = FakeCheckout()
        self.checkout.broken = {"t-9"}

    def is_made(self, workspace):
        return workspace.path in self.checkout.made

    def world(self):
        return set(self.checkout.made)

    def impossible(self):
        return site(self.project, "t-9")


@pytest.fixture(params=[Real, Fake])
def world(request, tmp_path):
    return request.param(tmp_path)


def test_a_plan_makes_nothing_and_is_the_same_every_time(world):
    before = world.world()
    planned = world.checkout.plan(site(world.project))
    assert planned.made
    assert planned.branch == "fleet/t-1"
    assert not world.is_made(planned)
    assert world.checkout.plan(site(world.project)) == planned
    assert world.world() == before


def test_what_was_planned_is_made(world):
    wanted = site(world.project)
    planned = world.checkout.plan(wanted)
    world.checkout.prepare(planned, wanted)
    assert world.is_made(planned)
    assert world.checkout.commit(planned) != ""


def test_preparing_again_changes_nothing(world):
    wanted = site(world.project)
    planned = prepared(world.checkout, wanted)
    before = world.world()
    world.checkout.prepare(planned, wanted)
    assert world.world() == before


def test_what_no_run_has_had_is_discarded_with_its_branch_and_can_be_planned_again(world):
    wanted = site(world.project)
    planned = prepared(world.checkout, wanted)
    for _ in range(2):
        world.checkout.discard(planned, task="t-1", project=str(world.project))
        assert not world.is_made(planned)
        assert world.checkout.plan(wanted) == planned


def test_two_tasks_have_two_places(world):
    one = prepared(world.checkout, site(world.project, "t-1"))
    two = prepared(world.checkout, site(world.project, "t-2"))
    assert one.path != two.path
    assert one.branch != two.branch


def test_a_later_run_takes_the_workspace_over_when_it_may(world):
    one = prepared(world.checkout, site(world.project))
    again = site(world.project, number=2, previous=one)
    assert world.checkout.plan(again) == one
    world.checkout.prepare(one, again)
    assert world.is_made(one)


def test_a_later_run_that_may_not_gets_a_new_place_and_branch(world):
    one = prepared(world.checkout, site(world.project))
    two = prepared(world.checkout, site(world.project, number=2))
    assert two.path != one.path
    assert two.branch == "fleet/t-1-a2"


def test_a_run_in_place_works_in_the_project_itself(world):
    wanted = site(world.project, spec=Spec(cwd=str(world.project), in_place=True))
    before = world.world()
    workspace = prepared(world.checkout, wanted)
    assert (workspace.path, workspace.made, workspace.branch) == (str(world.project), False, "")
    assert world.world() == before


def test_a_workspace_that_cannot_be_had_is_refused(world):
    before = world.world()
    with pytest.raises(Refused):
        prepared(world.checkout, world.impossible())
    assert world.world() == before


def test_the_commit_of_a_workspace_is_where_its_branch_is(tmp_path):
    real = Real(tmp_path)
    workspace = prepared(real.checkout, site(real.project))
    assert real.checkout.commit(workspace) == git(real.project, "rev-parse", workspace.branch)
