"""Several hosts on one store: when the runs of one may be taken over by another, and when not."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fleet.config import Settings
from fleet.domain.errors import Conflict, StoreAway, Unavailable
from fleet.domain.event import Kind
from fleet.domain.hosts.lease import ALONE, beat
from fleet.domain.message import MessageKind
from fleet.domain.run import Choice, Ending, Host, Run, RunState
from fleet.domain.task import SECOND, Limits, Spec, Task, TaskState
from fleet.operations.messages.ask_answer_send import SendWords
from fleet.ports import Put
from fleet.supervisor.attempt.words import note_heard
from tests.chaos.simulator import Simulation, _fleet


class Pair(Simulation):
    """Two hosts and no chance; coders work until they are told otherwise."""

    def __init__(self, hosts: int = 2) -> None:
        super().__init__(0, hosts=hosts, tasks=0, crash_at=-1)
        self.crasher.meanwhile = lambda: None
        for host in self.hosts:
            host.machine._work = lambda _run, _process: None

    def add(self, name: str, **spec) -> None:
        task = Task(
            name, 0, TaskState.OPEN, "Do it", prompt="do it", project="/project", author="ann",
            created_at=1, spec=Spec(cwd="/project", **spec),
        )  # fmt: skip
        self.store.commit([Put(task)], [])

    def begin(self, *names: str) -> None:
        """These tasks at work on the first host, and the second looks on."""
        for name in names:
            self.add(name)
        for _ in range(3):
            self._step(self.hosts[0])
            self.hosts[0].machine.tick()
        assert self.hosts[0].machine.running() == [f"{name}.1" for name in names]
        self._step(self.hosts[1])

    def go_on(self, seconds: float, *hosts: int) -> None:
        """For so long only these get time; the keepers of all do."""
        until = self.clock.since_boot() + seconds
        while self.clock.since_boot() < until:
            self.clock.advance(1)
            for number in hosts:
                try:
                    self._step(self.hosts[number])
                except Unavailable:
                    continue  # as the loop does
            for host in self.hosts:
                host.machine.tick()
                self._check()


@pytest.fixture
def pair():
    return Pair()


def endings(pair: Pair, task: str) -> list[Ending]:
    return [run.outcome.ending for run in pair.store.runs(task) if run.outcome]


def test_the_runs_of_a_host_that_went_silent_are_taken_over_after_its_lease(pair):
    pair.begin("t-1")
    pair.go_on(ALONE - 10, 1)
    assert pair.store.run("t-1.1").live
    pair.go_on(10 + 15, 1)
    assert endings(pair, "t-1") == [Ending.LOST]
    assert pair.store.run("t-1.2").host == "h1"
    assert pair.hosts[0].machine.running() == []


def away(pair: Pair, seconds: float) -> None:
    """The store answers nobody for so long."""
    real = pair.store.commit, pair.store.hosts

    def unreachable(*_args):
        raise Unavailable("The store cannot be reached.")

    pair.store.commit = pair.store.hosts = unreachable
    pair.go_on(seconds, 0, 1)
    pair.store.commit, pair.store.hosts = real


def test_a_store_that_is_away_for_less_than_the_lease_ends_no_agent_and_loses_no_run(pair):
    pair.begin("t-1", "t-2")
    away(pair, ALONE - 30)
    pair.go_on(3, 1)  # the one comes back a little earlier than the other
    pair.go_on(60, 0, 1)
    assert pair.hosts[0].machine.running() == ["t-1.1", "t-2.1"]
    assert endings(pair, "t-1") == endings(pair, "t-2") == []


def test_a_store_that_is_away_while_a_run_is_made_ready_costs_the_task_no_attempt(pair):
    messages, refused = pair.store.messages, []

    def away_once_claimed(task_id, **given):
        if pair.store.live_runs():
            refused.append(task_id)
            raise StoreAway("The store cannot be reached.")
        return messages(task_id, **given)

    pair.add("t-1")
    pair.store.messages = away_once_claimed
    for _ in range(5):
        with suppress(Unavailable):  # as the loop does
            pair._step(pair.hosts[0])
    pair.store.messages = messages
    pair.go_on(5, 0)
    assert refused
    assert endings(pair, "t-1") == []
    assert pair.hosts[0].machine.running() == ["t-1.1"]


def test_work_that_ended_while_the_store_was_away_for_long_still_counts(pair):
    """The other host is back first, and does not take its own absence for silence."""
    pair.begin("t-1")
    process = pair.hosts[0].machine.processes["t-1.1"]
    process.lines.append("result all good")
    pair.hosts[0].machine.finish("t-1.1", 0)
    away(pair, 5 * ALONE)
    pair.go_on(20, 1)
    pair.go_on(20, 0, 1)
    assert endings(pair, "t-1") == [Ending.SUCCEEDED]


def test_a_renewal_whose_reply_is_lost_costs_no_agent(pair):
    pair.begin("t-1")
    real, lost = pair.store.commit, []

    def reply_lost(changes, events):
        done = real(changes, events)
        if not lost and any(isinstance(c.record, Host) and c.record.id == "h0" for c in changes):
            lost.append(1)
            raise Unavailable("The connection was reset.")
        return done

    pair.store.commit = reply_lost
    pair.go_on(2 * ALONE, 0, 1)
    assert lost
    assert pair.hosts[0].machine.running() == ["t-1.1"]
    assert pair.hosts[0].machine.leases["t-1.1"] - pair.clock.since_boot() > ALONE / 2


def test_an_agent_that_its_lease_ended_is_lost_and_its_task_did_not_fail(pair):
    pair.begin("t-1")
    pair.go_on(ALONE)  # nobody supervises, so the keeper ends it
    assert pair.hosts[0].machine.running() == []
    pair.go_on(2, 0)
    assert endings(pair, "t-1") == [Ending.LOST]
    assert "lease" in pair.store.run("t-1.1").outcome.detail
    assert pair.store.task("t-1").tally.failures == 0


def test_a_wall_clock_that_jumps_makes_nobody_silent(pair):
    pair.begin("t-1")
    for hours in (5, -5, 0):
        pair.clock.moved = hours * 3600 * SECOND
        pair.go_on(40, 0, 1)
    assert pair.hosts[0].machine.running() == ["t-1.1"]
    assert endings(pair, "t-1") == []


def test_a_machine_that_has_the_id_of_this_host_is_told_apart_and_nothing_is_started(pair):
    pair.begin("t-1")
    twin = pair._incarnate(pair.hosts[0])  # of a copied home, with the row's version of now
    twin.start()
    pair.go_on(beat(ALONE) + 2, 0)
    supervisor = pair.hosts[0].supervisor
    assert "Another machine uses the id of this host, h0" in supervisor.trouble["host"]
    pair.add("t-2")
    pair.go_on(3, 0)
    assert pair.store.runs("t-2") == []
    assert pair.store.hosts()["h0"].holder == twin.here.holder


def test_an_idle_host_asks_as_much_however_many_runs_others_have():
    counts = []
    for runs in (0, 1000):
        pair = Pair()
        rows = [Host(f"far{n}", 0, f"far{n}", "x", "boot", 1 << 60, lease=300) for n in range(100)]
        pair.store.commit([Put(row) for row in rows], [])
        pair.store.commit([Put(foreign(n)) for n in range(runs)], [])
        pair.go_on(5, 0)
        before = pair.crasher.moment
        pair.go_on(20, 0)
        counts.append(pair.crasher.moment - before)
    assert counts[1] == counts[0]
    assert counts[0] / 2 / 20 < 12  # calls of any port a second; each is two moments


def foreign(number: int) -> Run:
    return Run(
        f"t-{number + 10}.1", 0, f"t-{number + 10}", RunState.RUNNING, Choice("a", "a"),
        f"far{number % 100}", "x", 1,
    )  # fmt: skip


def test_a_host_that_a_person_stopped_keeps_its_runs_for_a_day(pair):
    pair.begin("t-1")
    row = pair.store.hosts()["h0"]
    pair.store.commit([Put(replace(row, holder="", lease=24 * 3600))], [])
    pair.hosts[0].machine.leases.clear()
    pair.go_on(3 * ALONE, 1)
    assert endings(pair, "t-1") == []


def trusted(*withheld: str) -> SimpleNamespace:
    return SimpleNamespace(
        settings=Settings(coder="fake"), fleet=_fleet(), withheld=frozenset(withheld)
    )


def test_a_host_takes_no_task_of_a_project_that_it_does_not_have(pair):
    """It would fail them faster than the others could do them."""
    first, second = pair.hosts
    first.supervisor = pair._incarnate(first)
    first.supervisor._parts = replace(first.supervisor.parts, is_here=lambda _path: False)
    first.supervisor.start()
    pair.add("t-1")
    for _ in range(3):
        pair._step(first)
    assert pair.store.runs("t-1") == []
    assert pair.store.hosts()["h0"].without == ("absent /project",)
    (wait,) = first.supervisor.waits
    assert (wait.code, wait.why) == (
        "no_host", "Not on this host, h0: it does not have the project.",
    )  # fmt: skip
    pair._step(second)
    assert pair.store.run("t-1.1").host == "h1"


def test_a_host_takes_no_task_of_a_project_whose_settings_are_not_trusted_there(pair):
    first, second = pair.hosts
    pair.add("t-1")
    pair.world = trusted("agents.fake.command")
    for _ in range(2):
        pair._step(first)
    assert pair.store.runs("t-1") == []
    assert pair.store.hosts()["h0"].without == ("untrusted /project",)
    pair.world = trusted()
    pair._step(second)
    assert pair.store.run("t-1.1").host == "h1"


def test_a_task_starts_only_where_its_needs_are_met(pair):
    first, second = pair.hosts
    for host, labels in ((first, ("linux",)), (second, ("linux", "gpu"))):
        host.supervisor = pair._incarnate(host)
        host.supervisor._here = replace(host.supervisor.here, labels=labels)
        host.supervisor.start()
    for name, needs in (("t-1", ("gpu", "linux")), ("t-2", ("h0",)), ("t-3", ("macos",))):
        pair.add(name, limits=Limits(needs=needs))
    for _ in range(2):
        pair._step(first)
        pair._step(second)
    assert pair.store.run("t-1.1").host == "h1"
    assert pair.store.run("t-2.1").host == "h0"
    assert pair.store.runs("t-3") == []
    assert [w.why for w in second.supervisor.waits] == [
        "This host, h1, cannot run it: it has no label macos."
    ]


def test_a_drained_host_ends_nothing_and_starts_nothing(pair):
    pair.begin("t-1")
    row = pair.store.hosts()["h0"]
    pair.store.commit([Put(replace(row, draining=True))], [])
    pair.go_on(3, 0)
    pair.add("t-2")
    pair.go_on(2 * ALONE, 0)
    assert pair.hosts[0].machine.running() == ["t-1.1"]
    assert pair.store.hosts()["h0"].draining
    assert pair.store.runs("t-2") == []
    pair.hosts[0].supervisor = None  # it is upgraded
    pair.go_on(5, 0)
    assert pair.store.runs("t-2") == []
    pair.store.commit([Put(replace(pair.store.hosts()["h0"], draining=False))], [])
    pair.go_on(5, 0)
    assert pair.store.run("t-2.1").host == "h0"


def test_the_runs_of_a_forgotten_host_go_on_elsewhere_and_it_may_come_back(pair):
    pair.begin("t-1")
    pair.hosts[0].supervisor = None
    pair.hosts[0].machine.finish("t-1.1", 9)  # the power is off
    row = pair.store.hosts()["h0"]
    pair.store.commit([Put(replace(row, forgotten=True, holder="", lease_until=0))], [])
    pair.go_on(40, 1)
    assert endings(pair, "t-1") == [Ending.LOST]
    assert pair.store.run("t-1.2").host == "h1"
    pair.go_on(5, 0)
    assert not pair.store.hosts()["h0"].forgotten


def test_a_supervisor_whose_run_was_taken_over_marks_no_message_as_heard(pair):
    """The next run would never be told it."""
    pair.begin("t-1")
    stale = pair.store.run("t-1.1")
    pair._ask_for(SendWords("t-1", "Look here."))
    (message,) = pair.store.open_messages(MessageKind.WORDS)
    pair.go_on(ALONE + 5, 1)
    assert endings(pair, "t-1") == [Ending.LOST]
    with pytest.raises(Conflict):
        note_heard(pair.store, stale, message)
    assert pair.store.events_of_kinds([Kind.MESSAGE_HEARD], after=0, limit=9) == []
