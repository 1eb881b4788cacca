from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.access import Role
from fleet.domain.errors import NotFound, Unavailable
from fleet.domain.landing.landing import (
    Evidence,
    GateResult,
    Landing,
    LandingState,
    LandingWish,
    Planned,
    Train,
    gate_name,
    train_id,
)
from fleet.operations.landing.landing import ShowLanding
from fleet.operations.landing.output import LONGEST, ReadGateOutput
from fleet.ports import Put
from fleet.testing.fakes import FakeProcess

ALONE, BOTH = "tree1 abc", "tree2 abc"
MAIN = train_id("/repo", "main")


class Queue:
    """Two landings on main. The first is tested alone, and both are tested together."""

    def __init__(self, office) -> None:
        self.office = office
        self.one, self.two = self._landing(), self._landing()
        both = Planned((self.one, self.two), "c2", "tree2", BOTH, began=office.clock.now())
        alone = Planned((self.one,), "c1", "tree1", ALONE, began=office.clock.now())
        train = Train(MAIN, 0, "/repo", "main", host="box-1", plan=(both, alone))
        office.store.commit([Put(train)], [])

    def _landing(self) -> str:
        store, task = self.office.store, self.office.add(team="red")
        landing = Landing(
            store.new_id("l"), 0, LandingState.QUEUED, task, "red", "/repo", MAIN, "main", "c",
            LandingWish("ada"), store.now(),
        )  # fmt: skip
        store.commit([Put(landing)], [])
        return landing.id

    def prints(self, result: str, number: int, *lines: str) -> str:
        name = gate_name(result, number)
        process = self.office.machine.processes.setdefault(name, FakeProcess(launch=None))
        process.lines += lines
        return name

    def ends(self, result: str, **counts: int) -> None:
        self.office.clock.advance(1)
        self.office.store.commit(
            [Put(GateResult(result, 0, self.office.clock.now(), **counts))], []
        )

    def begins_again(self) -> None:
        self.office.clock.advance(1)
        train = self.office.store.trains()[MAIN]
        plan = tuple(replace(one, began=self.office.clock.now()) for one in train.plan)
        self.office.store.commit([Put(replace(train, plan=plan))], [])

    def settles(self, state: LandingState, result: str) -> None:
        store = self.office.store
        landing = replace(store.landing(self.one), state=state, evidence=Evidence(result=result))
        store.commit([Put(landing), Put(replace(store.trains()[MAIN], plan=()))], [])

    def read(self, *words, landing: str = "", **given):
        return self.office.call(ReadGateOutput(landing or self.one, *words, **given))


@pytest.fixture
def queue(office):
    return Queue(office)


def test_what_a_gate_prints_is_read_on_while_it_runs(queue):
    gate = queue.prints(ALONE, 1, "collected 3")
    first = queue.read()
    assert (first.gate, first.commit, first.live) == (gate, "c1", True)
    assert first.lines == ("collected 3",)
    assert queue.read(first.gate, first.offset).lines == ()
    queue.prints(ALONE, 1, "1 passed")
    assert queue.read(first.gate, first.offset).lines == ("1 passed",)


def test_each_candidate_names_its_gate(queue, office):
    queue.prints(ALONE, 1, "alone")
    queue.prints(BOTH, 1, "both")
    by_size = {len(c.tasks): c for c in office.call(ShowLanding(queue.one)).candidates}
    assert queue.read(by_size[2].gate).lines == ("both",)
    assert queue.read(landing=queue.two).lines == ("both",)
    assert queue.read().lines == ("alone",)


def test_the_rest_of_a_gate_that_ended_is_read_before_the_one_that_follows(queue):
    first = queue.read(queue.prints(ALONE, 1, "one"))
    queue.prints(ALONE, 1, "and its end")
    queue.ends(ALONE, failed=1)
    queue.begins_again()
    again = queue.prints(ALONE, 2, "once more")
    rest = queue.read(first.gate, first.offset)
    assert (rest.gate, rest.lines, rest.live) == (first.gate, ("and its end",), False)
    following = queue.read(rest.gate, rest.offset)
    assert (following.gate, following.lines, following.live) == (again, ("once more",), True)


@pytest.mark.parametrize("state", [LandingState.LANDED, LandingState.RETURNED])
def test_what_the_last_gate_printed_can_be_read_afterwards(queue, state):
    queue.prints(ALONE, 1, "all of it")
    queue.ends(ALONE, passed=1)
    queue.settles(state, ALONE)
    read = queue.read()
    assert (read.lines, read.live) == (("all of it",), False)
    assert queue.read(read.gate, read.offset).lines == ()


def test_a_gate_of_other_work_is_not_read_by_its_name(queue):
    other = queue.prints("tree9 abc", 1, "secret")
    queue.prints(ALONE, 1, "ours")
    assert queue.read(other, 3).lines == ("ours",)


def test_a_long_line_is_cut_and_a_negative_offset_begins_near_the_end(queue):
    queue.prints(ALONE, 1, "x" * (LONGEST + 9), "last")
    assert [len(line) for line in queue.read(limit=1 << 20).lines] == [LONGEST, 4]
    assert queue.read("", -6).lines[-1] == "last"


def test_no_gate_counts_as_running_once_its_tree_has_passed(queue):
    read = queue.read(queue.prints(ALONE, 1, "passed"))
    queue.ends(ALONE, passed=1)
    after = queue.read(read.gate, read.offset, landing=queue.one)
    assert (after.gate, after.live) == (gate_name(BOTH, 1), True)  # the one that still runs
    queue.ends(BOTH, passed=1)
    assert queue.read(read.gate, read.offset).gate == read.gate


def test_before_any_gate_there_is_nothing_to_read(queue):
    queue.settles(LandingState.QUEUED, "")
    read = queue.read()
    assert (read.gate, read.lines, read.live) == ("", (), False)


def test_another_team_does_not_see_it(queue, office):
    queue.prints(ALONE, 1, "secret")
    office.refused(ReadGateOutput(queue.one), office.person(Role.WORKER, "blue"), NotFound)


def test_on_another_host_it_is_said_where_it_is(queue, office):
    office.agents.shared, office.agents.host = True, "box-2"
    error = office.refused(ReadGateOutput(queue.one), kind=Unavailable)
    assert error.code == "elsewhere"
    assert error.about == {"host": "box-1"}
    assert error.fix == f"On box-1: fleet land show {queue.one} --follow"
