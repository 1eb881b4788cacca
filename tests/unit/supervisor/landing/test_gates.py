"""The gates of one train: what they said is kept once, and as they said it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from fleet.domain.errors import Unavailable
from fleet.domain.landing.landing import GateResult
from fleet.ports import Look, Presence
from fleet.supervisor.landing.gates import MOST_LOST, Gates
from fleet.testing.clock import FakeClock
from fleet.testing.fakes import FakeMachine, InlineJobs
from fleet.testing.memory_store import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable

RESULT = GateResult("abc 123", 0, command="make test")
REPORT = '<testsuite><testcase classname="c" name="one"/></testsuite>'


class OneWorktree:
    """A worktree for gates, with the report that each of them writes."""

    def __init__(self) -> None:
        self._gate = ""
        self.prepared = 0

    def prepare(self, name: str, commit: str) -> Path:
        del commit
        self.prepared += 1
        self._gate = name
        return Path("/gates/1")

    def busy(self) -> dict[str, str]:
        return {self._gate: "/gates/1"} if self._gate else {}

    def report(self, name: str) -> str:
        return REPORT if name == self._gate else ""

    def leave(self, name: str) -> None:
        if name == self._gate:
            self._gate = ""


class BusyStore(MemoryStore):
    """It cannot write for a while, as SQLite cannot while another process writes."""

    is_busy = False

    def commit(self, changes: Any, events: Any) -> Any:
        if self.is_busy:
            raise Unavailable("The store is busy.")
        return super().commit(changes, events)


class SlowMachine(FakeMachine):
    """Its keepers take a while to begin, as they do on a busy machine."""

    slow = 0  # looks at which a keeper has not begun yet

    def look(self, run_id: str) -> Look:
        look = super().look(run_id)
        if self.slow and look.presence is Presence.ALIVE:
            self.slow -= 1
            return Look(Presence.NEVER)
        return look


class GateHouse:
    def __init__(self) -> None:
        clock = FakeClock()
        self.store = BusyStore(clock)
        self.machine = SlowMachine(clock, lambda _run, _process: None)
        self.worktree = OneWorktree()
        parts: Any = SimpleNamespace(
            store=self.store, launcher=self.machine, transcripts=self.machine, clock=clock,
            jobs=InlineJobs(),
        )  # fmt: skip
        more: Any = SimpleNamespace(
            gate_worktrees=lambda _project: self.worktree, gate_env=lambda _project: {}
        )
        self.gates: Callable[[], Gates] = lambda: Gates(parts, more)

    def end(self, code: int) -> None:
        self.machine.tick()
        for run in self.machine.running():
            self.machine.finish(run, code)

    @property
    def kept(self) -> GateResult:
        return self.store.gate_results([RESULT.id])[RESULT.id]


@pytest.fixture
def house():
    return GateHouse()


def begun(gates: Gates, result: GateResult = RESULT) -> Gates:
    gates.start("/p", result, "make test", "c0ffee", report=True)
    while "land-" not in "".join(gates.names) or gates.step(60.0):
        pass
    gates.step(60.0)
    return gates


def test_the_tests_of_a_gate_are_kept_though_the_store_was_busy_when_it_ended(house):
    gates = begun(house.gates())
    house.end(0)
    house.store.is_busy = True
    with pytest.raises(Unavailable):
        gates.step(60.0)
    house.store.is_busy = False
    assert [result.passed for result in gates.step(60.0)] == [1]
    assert house.kept.tests == {"c::one": "passed"}
    assert house.worktree.busy() == {}


def test_the_worktree_of_a_gate_is_prepared_once_though_its_keeper_begins_late(house):
    """Preparing cleans it: that would take the report of a gate that was faster, or break its build."""
    house.machine.slow = 4
    gates = begun(house.gates())
    for _ in range(8):
        gates.step(60.0)
    assert house.worktree.prepared == 1
    house.end(0)
    gates.step(60.0)
    assert (house.kept.passed, house.kept.tests) == (1, {"c::one": "passed"})


def test_a_gate_whose_worktree_was_freed_before_its_report_was_read_runs_again(house):
    gates = begun(house.gates())
    house.end(0)
    house.worktree.leave(*house.worktree.busy())  # as the clean-up after a killed supervisor does
    assert [(result.lost, result.passed) for result in gates.step(60.0)] == [(1, 0)]
    gates = begun(house.gates(), house.kept)
    house.end(0)
    gates.step(60.0)
    assert (house.kept.passed, house.kept.tests) == (1, {"c::one": "passed"})


def test_two_trains_that_test_the_same_files_go_on_with_one_result(house):
    one, other = begun(house.gates()), begun(house.gates())
    house.end(1)
    assert [result.failed for result in one.step(60.0)] == [1]
    assert other.step(60.0) == []
    assert (one.count, other.count, house.kept.failed) == (0, 0, 1)


def ended_by(house, how) -> GateResult:
    """What is kept of a gate that ends so each time, until it counts."""
    result, gates = RESULT, house.gates()
    while not result.failed:
        assert result.lost <= MOST_LOST
        begun(gates, result)
        how(house)
        gates.step(60.0)
        result = house.kept
    assert (result.lost, result.passed) == (MOST_LOST, 0)
    return result


def lose_report(house):
    house.end(0)
    house.worktree.leave(*house.worktree.busy())  # as the clean-up after a killed supervisor does


def kill_keeper(house):
    house.machine.tick()
    for run in house.machine.running():
        house.machine.kill_keeper(run)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        (lambda house: house.end(-9), "It was killed by signal 9, 6 times."),
        (lose_report, "Its worktree was freed before its report was read, 6 times."),
        (kill_keeper, "Its keeper vanished, 6 times."),
    ],
)
def test_a_gate_that_is_lost_again_and_again_fails_and_says_how(house, how, why):
    assert ended_by(house, how).output == why
