"""The train's decisions, one by one and in worlds where changes break alone, together or by chance."""

from __future__ import annotations

import random

import pytest

from fleet.domain.landing.train import (
    Decision,
    GateVerdicts,
    Waiting,
    arrange,
    decide,
    deepest,
    next_batch,
    next_rate,
)

GOOD, BAD, WORSE, FLAKY = (
    GateVerdicts(1),
    GateVerdicts(0, 1),
    GateVerdicts(0, 2),
    GateVerdicts(1, 1),
)


def decided(members, slots=2, batch=1, **verdicts):
    known = {tuple(name): verdict for name, verdict in verdicts.items()}
    return decide(list(members), lambda c: known.get(c, GateVerdicts()), slots=slots, batch=batch)


def test_without_members_there_is_nothing_to_do():
    assert decided("") == Decision()


def test_a_chain_is_tested_at_once_in_all_slots():
    assert decided("abcd", slots=3).test == (("a",), ("a", "b"), ("a", "b", "c"))


def test_a_batch_adds_several_members_at_once():
    assert decided("abcde", batch=2).test == (("a", "b"), ("a", "b", "c", "d"))
    assert decided("a", batch=4).test == (("a",),)


def test_the_furthest_candidate_that_passed_lands_with_all_before_it():
    assert decided("abc", ab=GOOD, a=BAD).land == ("a", "b")


def test_a_member_that_failed_alone_runs_once_more_before_it_is_blamed():
    assert decided("ab", slots=1, a=BAD).test == (("a",),)
    assert decided("ab", a=WORSE).blame == "a"
    assert decided("ab", a=FLAKY).land == ("a",)
    assert FLAKY.flaky
    assert not BAD.flaky


def test_those_that_conflict_least_land_first_then_the_small_ones():
    queue = [Waiting("a", lines=900), Waiting("b", rivals=1, lines=1), Waiting("c", lines=10)]
    assert arrange(queue) == ["c", "a", "b"]


def test_equals_land_in_the_order_in_which_they_came():
    assert arrange([Waiting("a", lines=15), Waiting("b", lines=9), Waiting("c")]) == ["c", "a", "b"]


def test_work_that_builds_on_other_work_lands_after_it():
    queue = [Waiting("a", frozenset("b"), lines=1), Waiting("b", lines=900), Waiting("c", lines=9)]
    assert arrange(queue) == ["c", "b", "a"]
    circle = [Waiting("a", frozenset("b")), Waiting("b", frozenset("a"))]
    assert arrange(circle) == ["a", "b"]


def test_a_batch_that_failed_is_divided():
    assert decided("abcd", slots=1, batch=4, abcd=BAD).test == (("a", "b"),)
    assert decided("abcd", slots=3, batch=4, abcd=BAD).test == (("a",), ("a", "b"), ("a", "b", "c"))


def test_free_slots_test_the_train_without_the_suspect():
    assert decided("abc", slots=3, a=BAD).test == (("a",), ("b",), ("b", "c"))


def test_a_batch_grows_by_one_and_is_halved():
    assert next_batch(3, passed=True) == 4
    assert next_batch(8, passed=True) == 8
    assert next_batch(5, passed=False) == 2
    assert next_batch(1, passed=False) == 1


def test_the_chain_is_as_long_as_it_has_an_even_chance_to_pass():
    assert deepest(1.0) == 64
    assert deepest(0.9) == 6
    assert deepest(0.4) == 1
    members = "abcdefgh"
    assert len(decide(members, lambda _: GateVerdicts(), slots=8, rate=0.9).test) == 6
    assert decide(members, lambda _: GateVerdicts(), slots=8, rate=0.1).test == (("a",),)
    assert next_rate(0.5, passed=True) > 0.5 > next_rate(0.5, passed=False)


class ChangeWorld:
    """Changes of which some are bad, some break with a neighbour, and gates that fail by chance."""

    def __init__(self, rates: tuple[float, float, float], count: int, seed: int) -> None:
        bad, pair, self._flake = rates
        self._dice = random.Random(seed)
        self._bad = {n for n in range(count) if self._dice.random() < bad}
        self._foes = {
            n: {m for m in range(max(0, n - 12), n) if self._dice.random() < pair}
            for n in range(count)
        }
        self.landed: set[int] = set()
        self.returned: set[int] = set()
        self.innocent = 0  # of those that were returned: they would not have broken the branch
        self.gates = self.time = 0

    def is_good(self, candidate) -> bool:
        members = {int(m) for m in candidate}
        return not any(n in self._bad or self._foes[n] & (members | self.landed) for n in members)

    def gate(self, candidate) -> bool:
        self.gates += 1
        return self.is_good(candidate) and self._dice.random() >= self._flake

    def land(self, candidate) -> None:
        assert self.is_good(candidate), "a broken main"
        members = {int(m) for m in candidate}
        assert not members & (self.landed | self.returned), "landed twice"
        self.landed |= members

    def blame(self, member: str) -> None:
        assert int(member) not in self.landed | self.returned
        self.innocent += self.is_good((member,))
        self.returned.add(int(member))


def run(world: ChangeWorld, count: int, slots: int, *, ahead: int = 40) -> float:
    """Landings for each unit of time, in which each slot runs one gate."""
    queue, verdicts, batch, rate = [str(n) for n in range(count)], {}, 1, 1.0

    def tree(candidate):
        return frozenset(world.landed | {int(m) for m in candidate})

    while queue:

        def verdict(candidate):
            return verdicts.get(tree(candidate), GateVerdicts())

        decision = decide(queue[:ahead], verdict, slots=slots, batch=batch, rate=rate)
        if decision.land:
            world.land(decision.land)
            queue = [m for m in queue if m not in decision.land]
            batch = next_batch(batch, passed=True)
            for _ in decision.land:
                rate = next_rate(rate, passed=True)
        elif decision.blame:
            world.blame(decision.blame)
            queue.remove(decision.blame)
            rate = next_rate(rate, passed=False)
        else:
            red = False
            for candidate in decision.test[:slots]:
                passed, old = world.gate(candidate), verdict(candidate)
                verdicts[tree(candidate)] = GateVerdicts(
                    old.passed + passed, old.failed + (not passed)
                )
                red = red or (not passed and not old.failed)
            world.time += 1
            batch = next_batch(batch, passed=False) if red else batch
    return len(world.landed) / world.time


@pytest.mark.parametrize(
    ("rates", "times"),
    [((0.03, 0.01, 0.02), 2.5), ((0.01, 0.003, 0.005), 4), ((0.002, 0.0005, 0.002), 10)],
)
def test_four_slots_land_many_times_what_one_by_one_does_and_never_break_the_branch(rates, times):
    count = 1000
    alone = run(ChangeWorld(rates, count, seed=1), count, 1, ahead=1)
    train = run(ChangeWorld(rates, count, seed=1), count, 4)
    assert train > times * alone


@pytest.mark.parametrize("seeds", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_in_the_worst_world_nothing_breaks_and_innocent_changes_hardly_ever_come_back(seeds):
    """One gate in twenty fails by chance; two in a row on a change alone are needed to blame it."""
    worlds = [ChangeWorld((0.08, 0.02, 0.05), 1000, seed) for seed in range(seeds)]
    for world in worlds:
        run(world, 1000, 4)
        assert world.landed | world.returned == set(range(1000))
    assert sum(world.innocent for world in worlds) <= seeds


@pytest.mark.parametrize("seed", range(4))
def test_of_ten_thousand_landings_none_breaks_the_branch_and_none_is_lost(seed):
    """In worlds of all kinds; the world itself refuses a landing that breaks it."""
    dice = random.Random(seed)
    landings = 0
    while landings < 2500:
        rates = (dice.uniform(0, 0.1), dice.uniform(0, 0.02), dice.uniform(0, 0.05))
        world = ChangeWorld(rates, 200, seed=dice.randrange(1 << 30))
        run(world, 200, dice.randint(1, 6), ahead=dice.choice([1, 5, 40]))
        assert world.landed | world.returned == set(range(200))
        landings += len(world.landed)
