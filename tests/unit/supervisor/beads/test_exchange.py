"""What is taken from a beads database, and what it is told; `bd` itself is a fake here."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from fleet.adapters.beads import Bead, find_bd, parse
from fleet.config import Settings
from fleet.domain.access import Actor, Role
from fleet.domain.errors import Unavailable
from fleet.domain.event import Event
from fleet.domain.fleet import Fleet
from fleet.domain.run import Choice, Ending, Outcome, RunState
from fleet.domain.task import Retry, Spec, TaskState, claim
from fleet.operations.catalogue import Context, perform
from fleet.operations.messages.ask_answer_send import Ask
from fleet.operations.tasks.change import AddTask, CancelTask, CloseTask, RetryTask
from fleet.ports import Put
from fleet.supervisor.attempt.settle import end_run
from fleet.supervisor.beads.exchange import LONGEST_PAUSE, POLL, TRIES, Beads
from fleet.supervisor.beads.plan import LABEL, bead_of, updates_for, what_to_take
from fleet.testing.clock import FakeClock
from fleet.testing.fakes import InlineJobs
from fleet.testing.memory_store import MemoryStore

FLEET = Actor("fleet-box-1", Role.COORDINATOR)


def bead(name: str, **given) -> Bead:
    return Bead(name, f"Title of {name}", **given)


class FakeBd:
    def __init__(self, *ready: Bead) -> None:
        self.open, self.mine = list(ready), []
        self.theirs: set[str] = set()
        self.told: list[tuple[str, str, str]] = []
        self.down, self.stubborn, self.coder = "", set(), ""
        self.checkout = "/repo"

    def _asked(self) -> None:
        if self.down:
            raise Unavailable(self.down)

    def ready(self, limit):
        self._asked()
        return self.open[:limit]

    def held(self):
        self._asked()
        return list(self.mine)

    def claim(self, name):
        self._asked()
        if name in self.theirs:
            return False
        self.mine += [b for b in self.open if b.id == name]
        self.open = [b for b in self.open if b.id != name]
        return True

    def tell(self, name, act, text):
        self._asked()
        if name in self.stubborn:
            raise Unavailable(f"{name} not found")
        self.told.append((name, act, text))

    def wanted(self, _name):
        return {"cwd": "/repo", "coder": self.coder, "checkout": self.checkout}


class Number:
    def __init__(self) -> None:
        self.held = None

    def read(self):
        return self.held

    def write(self, number):
        self.held = number


class Place:
    def __init__(self, *ready: Bead, room: int = 3) -> None:
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.bd, self.mark, self.room, self.warned = FakeBd(*ready), Number(), room, []
        self.beads = self.again()

    def again(self) -> Beads:
        """Another incarnation of the supervisor."""
        self.beads = Beads(
            self.store, self.bd, name=FLEET.name, call=self.call, jobs=InlineJobs(), mark=self.mark,
            room=lambda: self.room, warn=self.warned.append,
        )  # fmt: skip
        return self.beads

    def call(self, request, actor=FLEET):
        world = SimpleNamespace(settings=Settings(coder="scripted"), fleet=Fleet())
        return perform(Context(actor, self.store, lambda: None, lambda _: world), request)

    def step(self, seconds: float = 6) -> None:
        """Begin a round, and look at it."""
        for _ in range(2):
            self.beads.step(self.clock.now())
        self.clock.advance(seconds)

    def tasks(self):
        return {
            bead_of(t.spec.labels): t for t in self.store.records.values() if hasattr(t, "spec")
        }

    def run(self, task_id: str, ending=Ending.SUCCEEDED, detail="Did it.", attempts=1) -> None:
        choice = Choice("scripted", "scripted")
        task, run = claim(
            self.store.task(task_id), choice, host="h", holder="x", slots=(), at=self.clock.now()
        )
        self.store.commit([Put(task), Put(run)], [])
        run = self.store.run(run.id)
        self.store.commit([Put(replace(run, state=RunState.RUNNING))], [])
        end_run(
            self.store, run.id, lambda _: Outcome(ending, detail), Retry(attempts, 0), jitter=0.0
        )


def test_a_ready_issue_is_claimed_and_then_a_task():
    place = Place(bead("bd-1", description="Do it.", priority=0))
    place.step()
    task = place.tasks()["bd-1"]
    assert (task.title, task.prompt, task.spec.priority) == ("Title of bd-1", "Do it.", 0)
    assert task.spec.labels == (f"{LABEL}bd-1",)
    assert [b.id for b in place.bd.mine] == ["bd-1"]


def test_an_issue_that_somebody_else_has_is_passed_over_and_the_next_is_taken():
    place = Place(bead("bd-1"), bead("bd-2"))
    place.bd.theirs.add("bd-1")
    place.step()
    assert place.tasks().keys() == {"bd-2"}


def test_no_more_is_claimed_than_there_is_room_for():
    place = Place(*(bead(f"bd-{n}") for n in range(9)), room=2)
    place.call(AddTask("Our own"))
    place.step()
    place.step()
    assert len(place.bd.mine) == 1
    assert len(place.bd.open) == 8


def test_an_issue_is_a_task_once_whoever_supervises():
    place = Place(bead("bd-1"))
    place.step()
    place.again()
    place.step()
    assert len(place.tasks()) == 1


def test_one_that_was_claimed_by_a_supervisor_that_died_is_taken_up():
    place = Place()
    place.bd.mine.append(bead("bd-1"))
    place.step()
    assert place.tasks().keys() == {"bd-1"}


def test_it_is_closed_there_when_it_is_done_here():
    place = Place(bead("bd-1"))
    place.step()
    place.run("t-1")
    place.step()
    assert place.bd.told == [("bd-1", "close", "Did it.")]
    place.step()
    assert len(place.bd.told) == 1


def test_failed_runs_and_questions_are_comments_and_a_failed_task_is_blocked_there():
    place = Place(bead("bd-1"))
    place.step()
    place.run("t-1", Ending.FAILED, "No disk.", attempts=2)
    place.call(Ask("Which way?", "t-1"))
    place.step()
    assert place.bd.told == [
        ("bd-1", "comment", "t-1.1 failed: No disk."),
        ("bd-1", "comment", "QUESTION (m-1): Which way?\nfleet answer m-1 TEXT"),
    ]
    place.bd.told.clear()
    place.run("t-1", Ending.FAILED, "No disk.", attempts=2)
    place.step()
    assert [(act, text) for _, act, text in place.bd.told] == [
        ("comment", "t-1.2 failed: No disk."),
        ("block", place.store.task("t-1").tally.why),
    ]


def test_one_that_is_cancelled_here_is_let_go_and_not_taken_again():
    place = Place(bead("bd-1"))
    place.step()
    place.call(CancelTask("t-1", "Not now."))
    place.step()
    assert place.bd.told == [
        ("bd-1", "comment", "Cancelled in the fleet: Not now."),
        ("bd-1", "release", ""),
    ]
    place.bd.open, place.bd.mine = place.bd.mine, []
    place.step()
    assert place.store.task("t-1").state is TaskState.CANCELLED
    assert place.bd.mine == []


def test_one_that_is_opened_again_there_is_opened_again_here():
    place = Place(bead("bd-1"))
    place.step()
    place.call(CloseTask("t-1", "By hand."))
    place.step()
    assert place.bd.told == [("bd-1", "close", "By hand.")]
    place.bd.open, place.bd.mine = place.bd.mine, []
    place.step()
    assert place.store.task("t-1").state is TaskState.OPEN
    assert len(place.tasks()) == 1


def test_one_that_is_opened_again_here_is_in_progress_there():
    place = Place(bead("bd-1"))
    place.step()
    place.call(CloseTask("t-1"))
    place.step()
    place.call(RetryTask("t-1"))
    place.step()
    assert [act for _, act, _ in place.bd.told] == ["close", "resume"]


def test_a_failing_bd_is_reported_once_and_asked_again_later_and_later():
    place = Place(bead("bd-1"))
    place.bd.down = "database is locked"
    seen, asked = [], place.bd.held

    def held():
        seen.append(place.clock.now())
        return asked()

    place.bd.held = held
    for _ in range(2000):
        place.step(1)
    gaps = [b - a for a, b in pairwise(seen)]
    assert place.warned == ["beads: database is locked"]
    assert gaps[0] >= 2 * POLL
    assert gaps == sorted(gaps)
    assert gaps[-1] <= LONGEST_PAUSE + POLL
    place.bd.down = ""
    place.step(400)
    place.step()
    assert place.tasks().keys() == {"bd-1"}


def test_what_could_not_be_told_is_told_later_also_by_the_next_supervisor():
    place = Place(bead("bd-1"))
    place.step()
    place.bd.down = "database is locked"
    place.run("t-1")
    place.step()
    place.again()
    place.bd.down = ""
    place.step()
    assert place.bd.told == [("bd-1", "close", "Did it.")]


def test_one_issue_that_cannot_be_told_holds_up_the_others_only_so_long():
    place = Place(bead("bd-1"), bead("bd-2"))
    place.step()
    place.bd.stubborn.add("bd-1")
    for task in ("t-1", "t-2"):
        place.run(task)
    for _ in range(TRIES):
        place.step(LONGEST_PAUSE / 1_000_000)
    place.step()
    assert place.bd.told == [("bd-2", "close", "Did it.")]
    assert "bd failed to close bd-1, and is not asked again: bd-1 not found" in place.warned[-1]


def test_an_issue_that_cannot_be_a_task_is_blocked_there_with_the_reason():
    place = Place(bead("bd-1"))
    place.bd.coder = "nope"
    place.step()
    place.step()
    ((name, act, why),) = place.bd.told
    assert (name, act) == ("bd-1", "block")
    assert "There is no coder 'nope'." in why


def test_an_issue_outside_a_git_repository_is_blocked_there_with_the_reason():
    place = Place(bead("bd-1"))
    place.bd.checkout = ""
    place.step()
    place.step()
    ((name, act, why),) = place.bd.told
    assert (name, act) == ("bd-1", "block")
    assert "/repo is not in a git repository" in why


def test_a_bug_in_the_round_ends_nothing():
    place = Place(bead("bd-1"))
    place.bd.held = lambda: 1 / 0
    place.step()
    assert "ZeroDivisionError" in place.warned[0]


def test_a_slow_bd_is_not_waited_for():
    place = Place(bead("bd-1"))
    begun = []

    class Slow:
        def begin(self, act):
            begun.append(act)
            return SimpleNamespace(done=lambda: False)

    place.beads._jobs = Slow()
    for _ in range(10):
        place.step()
    assert len(begun) == 1


def test_what_happened_here_is_told_soon_and_not_at_once():
    place = Place(bead("bd-1"))
    place.step(0.1)
    place.run("t-1")
    place.step(0.5)
    assert place.bd.told == []
    place.step(0.5)
    place.step()
    assert [act for _, act, _ in place.bd.told] == ["close"]


def test_it_is_idle_once_all_is_told_and_nothing_was_taken():
    place = Place(bead("bd-1"))
    assert not place.beads.idle
    place.step()
    assert not place.beads.idle  # it has just made a task
    place.step()
    assert place.beads.idle
    place.run("t-1")
    assert not place.beads.idle
    place.step()
    assert place.beads.idle
    place.call(AddTask("Our own"))
    place.bd.down = "database is locked"
    place.step()
    assert place.beads.idle


def test_nothing_of_tasks_that_are_our_own_is_told():
    place = Place()
    place.call(AddTask("Our own"))
    place.step()
    place.run("t-1")
    place.step()
    assert place.bd.told == []


def test_what_another_host_took_from_its_own_database_is_left_to_that_one():
    place = Place()
    spec = Spec(labels=(f"{LABEL}bd-1",))
    other = Actor("fleet-box-2", Role.COORDINATOR)
    place.call(AddTask("Theirs", spec=spec), other)
    place.step()
    place.run("t-1")
    place.step()
    assert place.bd.told == []


def test_taking_is_decided_from_lists_alone():
    one, two, three = bead("bd-1"), bead("bd-2"), bead("bd-3")
    taking = what_to_take([one, two], [three], known=(), again=(), room=2)
    assert taking == ((one,), (three,))
    assert what_to_take([one, two], [], known=["bd-1"], again=(), room=2).claim == (two,)
    assert what_to_take([one], [one], known=["bd-1"], again=["bd-1"], room=1).claim == (one,)
    assert what_to_take([one], [], known=(), again=(), room=0).claim == ()


@pytest.mark.parametrize("kind", ["run.claimed", "task.added", "message.posted", "task.paused"])
def test_what_is_nobodys_business_is_not_told(kind):
    assert updates_for(Event(kind, "t-1", "ada", 1), "bd-1", question="", why="") == []


def test_what_is_told_is_not_endless():
    event = Event("task.closed", "t-1", "ada", 1, number=7)
    ((number, _, act, text),) = updates_for(event, "bd-1", question="", why="x" * 9999)
    assert (number, act, len(text)) == (7, "close", 2000)


ISSUE = {"id": "bd-1", "title": "T", "description": None, "priority": 1, "status": "open"}


@pytest.mark.parametrize(
    "data",
    [
        [ISSUE],
        ISSUE,
        {"schema_version": 1, "data": [ISSUE]},
        {"schema_version": 1, "data": ISSUE},
        [ISSUE, {"id": "-rf"}, {"id": "../x"}, {"title": "none"}, 3],
    ],
)
def test_issues_are_read_in_an_envelope_or_bare_one_or_many(data):
    assert parse(json.dumps(data)) == [Bead("bd-1", "T", "", 1)]


@pytest.mark.parametrize("text", ["", "null", "[]", '{"schema_version": 1, "data": null}'])
def test_no_issues_are_none(text):
    assert parse(text) == []


def test_what_is_not_json_is_said_to_be_so():
    with pytest.raises(Unavailable, match="no JSON: Warning"):
        parse("Warning: upgrade me")


def test_the_real_bd_is_found_and_never_our_own(tmp_path):
    home, there = tmp_path / "home", tmp_path / "there"
    for folder in (home / "bin", there):
        folder.mkdir(parents=True)
        (folder / "bd").write_text("#!/bin/sh\n")
        (folder / "bd").chmod(0o755)
    path = f"{home / 'bin'}:{there}"
    assert Path(find_bd({"PATH": path}, home)) == there / "bd"
    with pytest.raises(Unavailable, match="bd is not on PATH"):
        find_bd({"PATH": str(home / "bin")}, home)
