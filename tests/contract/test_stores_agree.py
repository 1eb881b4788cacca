"""Every store gives the same answers as the one in memory, whatever happened before."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from fleet.adapters.stores.sql import SqlStore
from fleet.adapters.stores.sqlite import Sqlite
from fleet.domain.errors import Conflict
from fleet.domain.event import Event
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.run import Choice, Run, RunState, Slots
from fleet.domain.task import Join, Spec, Tally, Task, TaskState
from fleet.ports import STANDINGS, Put, Same, TaskQuery
from fleet.testing.clock import START
from fleet.testing.memory_store import MemoryStore

RAM = Path("/dev/shm")
IDS = [f"t-{n}" for n in range(1, 5)]


def mostly(usual, *rare):
    """Most tasks are ordinary, or a reason not to start would hide every other."""
    return st.sampled_from([usual] * 12 + list(rare))


QUERIES = [
    TaskQuery(),
    TaskQuery(limit=2, before="t-3"),
    TaskQuery(limit=3, before="t-2", oldest_first=True),
    TaskQuery(states=("open", "done"), project="/a"),
    TaskQuery(team="red", oldest_first=True),
    TaskQuery(parent="t-1"),
    TaskQuery(states=("open", "done", "failed"), team="red", before="t-3", limit=2),
    TaskQuery(states=("open", "running"), limit=2, oldest_first=True),
    TaskQuery(assignee="bob"),
    TaskQuery(branches=("fix/login", "b\N{LATIN SMALL LETTER E WITH ACUTE}")),
    TaskQuery(branch_end="login"),
    TaskQuery(branch_end="b\N{LATIN SMALL LETTER E WITH ACUTE}", team="red"),
    TaskQuery(at_work=True, limit=2),
    TaskQuery(at_work=True, team="red", project="/a"),
    TaskQuery(is_held=True),
    TaskQuery(team="red", is_held=True, limit=1),
    *(TaskQuery(may_be=(standing,)) for standing in STANDINGS),
    TaskQuery(team="red", may_be=("waiting", "paused", "asking"), before="t-4", limit=2),
]
BRANCHES = (
    "fix/login",
    "login",
    "z/b\N{LATIN SMALL LETTER E WITH ACUTE}",
    "b\N{LATIN SMALL LETTER E WITH ACUTE}",
)
tasks = st.builds(
    lambda number, **given: Task(
        f"t-{number}", 0, title="x", prompt="", author="me", created_at=START + number // 3, **given
    ),
    number=st.integers(1, 4),
    state=mostly(TaskState.OPEN, *TaskState),
    project=mostly("/a", "/b", "/\udce9t\N{LATIN SMALL LETTER E WITH ACUTE}"),
    team=st.sampled_from(["local", "red"]),
    spec=st.builds(
        Spec,
        priority=st.integers(1, 2),
        branch=st.sampled_from(["", *BRANCHES]),
        assignee=mostly("", "bob"),
        mode=mostly("", "now", "terminal"),
    ),
    after=mostly((IDS[0],), (), (), IDS[1:3], IDS[:2], ("t-99",)).map(tuple),
    parent=st.sampled_from(["", "t-1"]),
    join=mostly(None, Join.ALL),
    paused=mostly(False, True),
    caused_by=mostly("", "worker", "team-lead"),
    tally=st.builds(Tally, not_before=mostly(0, START + 5, START + 50)),
)
KINDS = [MessageKind.QUESTION, MessageKind.QUESTION, MessageKind.WORDS]
messages = st.builds(
    lambda number, state: Message(
        f"m-{number}", 0, IDS[number % 4], "me", KINDS[number % 3], "?", state, START
    ),
    number=st.integers(1, 12),
    state=st.sampled_from(MessageState),
)
runs = st.builds(
    lambda task, number, state, host: Run(
        f"{task}.{number}", 0, task, state, Choice("a", "c"), host, "x", START
    ),
    st.sampled_from(IDS), st.integers(1, 12), st.sampled_from(RunState), st.sampled_from("hg"),
)  # fmt: skip
slots = st.builds(Slots, st.sampled_from(["a", "b"]), st.just(0), st.just(("t-1.1",)))


class Agreement(RuleBasedStateMachine):
    """What is put may be anything: a store takes no side in what makes sense."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = MemoryStore()
        self.real = self.make()
        self.versions: dict[tuple[type, str], int] = {}

    def make(self) -> SqlStore:
        self.folder = Path(tempfile.mkdtemp(dir=RAM if RAM.is_dir() else None))
        return SqlStore(Sqlite(self.folder / "fleet.db"))

    def teardown(self) -> None:
        self.real.close()
        shutil.rmtree(self.folder)

    def known(self, record):
        return replace(record, version=self.versions.get((type(record), record.id), 0))

    @rule(
        records=st.lists(st.one_of(tasks, tasks, messages, runs, slots), min_size=1, max_size=5),
        insist=st.lists(st.one_of(tasks, runs, slots), max_size=1),
        stale=mostly(False, True),
        told=st.integers(0, 2),
    )
    def commit(self, records, insist, stale, told) -> None:
        unique = {(type(r), r.id): r for r in records}
        about = {i for kind, i in (*self.versions, *unique) if kind is Task}
        changes = [
            Put(self.known(r))
            for r in unique.values()
            if not isinstance(r, Message) or r.task in about
        ]
        if not changes:
            return
        changes += [Same(self.known(r)) for r in insist if (type(r), r.id) not in unique]
        if stale:
            record = changes.pop().record
            changes.append(Put(replace(record, version=record.version + 1)))
        events = [Event(f"e.{n}", changes[0].record.id, "me", START) for n in range(told)]
        self.both(changes, events)

    @precondition(lambda self: self.memory.tasks(TaskQuery()))
    @rule(number=st.integers(0, 3), state=st.sampled_from([TaskState.OPEN, TaskState.DONE]))
    def move(self, number, state) -> None:
        """As most changes are: nothing about the task is new but its state."""
        found = self.memory.tasks(TaskQuery())
        self.both([Put(replace(found[number % len(found)], state=state))], [])

    def both(self, changes, events) -> None:
        outcomes = [self.tried(store, changes, events) for store in (self.memory, self.real)]
        assert outcomes[0] == outcomes[1]
        for record in outcomes[0] or ():
            self.versions[type(record), record.id] = record.version

    def tried(self, store, changes, events):
        try:
            return store.commit(changes, events)
        except Conflict:
            return None

    @precondition(lambda self: self.versions)
    @rule(kind=st.sampled_from("tm"))
    def give_an_id(self, kind) -> None:
        assert self.memory.new_id(kind) == self.real.new_id(kind)

    @invariant()
    def they_agree(self) -> None:
        for look in LOOKS:
            assert look(self.memory) == look(self.real)


LOOKS = [
    *(lambda s, t=team, n=now: s.candidates_after(None, team=t, now=n, limit=2)
      for team in ("", "red") for now in (START, START + 100)),
    *(lambda s, n=now, k=limit: s.candidates(now=n, limit=k)
      for now in (START, START + 10, START + 100) for limit in (1, 3, 100)),
    *(lambda s, q=query: s.tasks(q) for query in QUERIES),
    *(lambda s, i=task_id: (s.dependents(i), s.runs(i), s.messages(i), s.messages(i, newest=2))
      for task_id in IDS),
    lambda s: (s.waiting(IDS), s.waiting([])),
    lambda s: (s.counts(team="red"), s.counts(team="local", project="/repo")),
    lambda s: (s.events(task="t-1", before=9, limit=3, newest=True), s.events(before=7)),
    lambda s: (s.counts(), s.tasks_by_id(IDS), s.slots(), s.slots(["b"])),
    lambda s: (s.live_runs(), s.live_runs(host="h"), s.runs_by_id(["t-2.1", "t-9.1", "t-1.2"])),
    lambda s: (s.open_questions(IDS[1:]), s.open_questions([])),
    lambda s: (s.questions(), s.questions(team="red", after="m-2"), s.questions(limit=1)),
    lambda s: (s.open_messages("question"), s.open_messages("words", limit=1)),
    lambda s: [[replace(e, number=0) for e in s.events(**how)]
               for how in ({}, {"newest": True, "limit": 2}, {"task": "t-1"})],
]  # fmt: skip


def run(machine, examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=25, deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )  # fmt: skip


@pytest.mark.timeout(600)  # when it fails, the shortest history is looked for
def test_sqlite_agrees_with_memory():
    run(Agreement, 30)


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.timeout(900)
def test_sqlite_agrees_with_memory_for_long():
    run(Agreement, 2000)


@pytest.mark.real
@pytest.mark.timeout(600)
def test_postgresql_agrees_with_memory(postgres_url):
    from fleet.adapters.stores.postgres.store import open_url

    class OnPostgres(Agreement):
        made = 0

        def make(self) -> SqlStore:
            OnPostgres.made += 1
            return open_url(postgres_url, None, None, schema=f"fleet{OnPostgres.made}")

        def teardown(self) -> None:
            self.real.close()

    run(OnPostgres, 30)
