"""From any history: no task is lost, none runs twice at once, none waits without a reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fleet.domain import task as rules
from fleet.domain.errors import Conflict, FleetError
from fleet.domain.message import Message, MessageKind, MessageState, answer
from fleet.domain.run import Choice, Ending, Outcome, Slots, end, release
from fleet.domain.schedule import ReadyTask, Slot, schedule, waits
from fleet.domain.task import ENDED, Retry, Task, TaskState, claim, settle
from fleet.ports import Put, Same, TaskQuery
from fleet.testing.clock import FakeClock
from fleet.testing.memory_store import MemoryStore

ROOM = 2
SLOT = Slot("model@node", ROOM)
CHOICE = Choice("agent", "coder")
pick = st.integers(min_value=0)


class Histories(RuleBasedStateMachine):
    """Two hosts that decide on what they read, which may be stale by the time they commit."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.made: set[str] = set()
        self.read: list[list[ReadyTask]] = [[], []]
        self.slots = [{}, {}]

    def tasks(self) -> list[Task]:
        return self.store.tasks(TaskQuery(limit=1000, oldest_first=True))

    def any_task(self, number: int) -> Task:
        found = self.tasks()
        return found[number % len(found)]

    def write(self, *records) -> None:
        self.store.commit([Put(r) for r in records], [])

    @rule(after=st.lists(pick, max_size=3))
    def add(self, after) -> None:
        known = self.tasks()
        needs = tuple(dict.fromkeys(known[n % len(known)].id for n in after)) if known else ()
        task = Task(
            self.store.new_id("t"), 0, TaskState.OPEN, "x", "", "/p", "me", self.clock.now(), after=needs
        )  # fmt: skip
        self.write(task)
        self.made.add(task.id)

    @rule(host=st.sampled_from([0, 1]))
    def look(self, host) -> None:
        found = self.store.candidates(now=self.clock.now(), limit=10)
        self.read[host] = [ReadyTask(t, CHOICE, ((SLOT,),)) for t in found]
        self.slots[host] = self.store.slots([SLOT.name])

    @rule(host=st.sampled_from([0, 1]))
    def start_what_was_read(self, host) -> None:
        rows = self.slots[host]
        for begin in schedule(self.read[host], rows, now=self.clock.now()).starts:
            task, run = claim(
                begin.task, begin.choice, host=f"h{host}", holder="x", slots=begin.slots, at=1
            )
            row = rows.get(SLOT.name) or Slots(SLOT.name, 0)
            try:
                done = self.store.commit(
                    [Put(task), Put(run), Put(replace(row, holders=(*row.holders, run.id)))], []
                )
            except Conflict:
                return
            rows[SLOT.name] = done[2]

    @precondition(lambda self: self.store.live_runs())
    @rule(number=pick, ending=st.sampled_from(Ending), later=st.sampled_from([0, 60_000_000]))
    def end_a_run(self, number, ending, later) -> None:
        live = self.store.live_runs()
        run = live[number % len(live)]
        outcome = Outcome(ending, resume_at=self.clock.now() + later if later else 0)
        task = settle(self.store.task(run.task), outcome, retry=Retry(), now=self.clock.now())
        row = self.store.slots([SLOT.name])[SLOT.name]
        records = [task, end(run, outcome, at=1), release(row, run.id)]
        if ending in {Ending.ASKED, Ending.OVER_BUDGET}:
            records.append(
                Message(
                    self.store.new_id("m"), 0, task.id, run.id, MessageKind.QUESTION, "Which?",
                    MessageState.OPEN, 1,
                )
            )  # fmt: skip
        self.write(*records)

    @precondition(lambda self: self.store.open_messages("question"))
    @rule()
    def answer_one(self) -> None:
        question = self.store.open_messages("question")[0]
        self.write(*answer(question, "This", by="me", at=1, new_id=self.store.new_id("m")))

    @precondition(lambda self: self.made)
    @rule(number=pick, act=st.sampled_from(["cancel", "close", "reopen", "pause", "resume"]))
    def somebody(self, number, act) -> None:
        task = self.any_task(number)
        now = self.clock.now()
        acts = {
            "cancel": lambda: rules.cancel(task, "No.", now=now),
            "close": lambda: rules.close(task, "Yes.", now=now),
            "reopen": lambda: rules.reopen(task),
            "pause": lambda: replace(task, paused=True),
            "resume": lambda: replace(task, paused=False),
        }
        try:
            changed = acts[act]()
        except FleetError:
            return
        self.write(changed)

    @precondition(lambda self: len(self.made) > 1)
    @rule(one=pick, other=pick)
    def depend(self, one, other) -> None:
        task, need = self.any_task(one), self.any_task(other)
        try:
            changed = rules.depend(task, need.id, lambda i: self.store.task(i).after)
        except FleetError:
            return
        self.store.commit([Put(changed), *([Same(need)] if need.id != task.id else [])], [])

    @rule(seconds=st.sampled_from([1, 30, 4000]))
    def time_passes(self, seconds) -> None:
        self.clock.advance(seconds)

    @invariant()
    def no_task_is_lost(self) -> None:
        assert {t.id for t in self.tasks()} == self.made

    @invariant()
    def none_runs_twice_at_once(self) -> None:
        for task in self.tasks():
            live = [r.id for r in self.store.runs(task.id) if r.live]
            assert live == ([task.run_id] if task.state is TaskState.RUNNING else [])

    @invariant()
    def capacity_holds(self) -> None:
        for row in self.store.slots().values():
            assert len(row.holders) <= ROOM
            assert set(row.holders) == {r.id for r in self.store.live_runs()}

    @invariant()
    def nothing_waits_in_a_circle(self) -> None:
        for task in self.tasks():
            for need in task.after:
                assert not rules.find_path(need, task.id, lambda i: self.store.task(i).after)

    @invariant()
    def whatever_does_not_run_can_say_why(self) -> None:
        now = self.clock.now()
        ready = {t.id for t in self.store.candidates(now=now, limit=1000)}
        for task in self.tasks():
            needs = [self.store.task(n) for n in task.after]
            held = waits(task, needs, self.store.messages(task.id), now=now)
            if task.state is TaskState.OPEN:
                assert bool(held) != (task.id in ready)
            assert all(w.why.strip() for w in held)

    def teardown(self) -> None:
        """In a kind world everything ends, or names what ended badly."""
        for _ in range(40 * (len(self.made) + 1)):
            if not self.unfinished():
                return
            self.clock.advance(4000)
            while self.store.open_messages("question"):
                self.answer_one()
            for task in self.tasks():
                if task.paused:
                    self.write(replace(task, paused=False))
            self.look(0)
            self.start_what_was_read(0)
            while self.store.live_runs():
                self.end_a_run(0, Ending.SUCCEEDED, 0)
        assert not self.unfinished()

    def unfinished(self) -> list[Task]:
        """What may still end: what waits for a task that ended badly waits for ever."""
        left = [task for task in self.tasks() if task.state not in ENDED]
        return [task for task in left if not self.waits_for_another(task)]

    def waits_for_another(self, task: Task) -> bool:
        needs = [self.store.task(n) for n in task.after]
        return any(w.code == "after" for w in waits(task, needs, [], now=self.clock.now()))


class LongHistories(Histories):
    pass


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=20, stateful_step_count=40, deadline=None)
TestLongHistories = pytest.mark.slow(LongHistories.TestCase)
TestLongHistories.settings = settings(max_examples=500, stateful_step_count=60, deadline=None)
