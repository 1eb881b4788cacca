"""What the store's benchmarks share: the tasks, the two contestants, and eight processes."""

from __future__ import annotations

import multiprocessing as mp
import random
import sqlite3
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.app import open_store
from fleet.domain.errors import Conflict
from fleet.domain.event import Event
from fleet.domain.run import Checkpoint, Choice, Ending, Outcome, Slots, end, release
from fleet.domain.task import Retry, Spec, Task, TaskState, claim, settle
from fleet.ports import Put

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fleet.ports import Store

FEW, MANY = 4, 64
PROMPT = "Fix the login form so that it keeps the name after a wrong password. " * 6


def a_task(number: int, **given) -> Task:
    given = {"state": TaskState.OPEN, "spec": Spec(agent="implementer")} | given
    return Task(
        f"t-{number}", 0, title=f"Task {number}", prompt=PROMPT, project="/home/me/project",
        author="me", created_at=number, **given,
    )  # fmt: skip


def fill(store: Store, tasks: list[Task]) -> None:
    for start in range(0, len(tasks), 1000):
        store.commit([Put(task) for task in tasks[start : start + 1000]], [])


class Worker:
    """What a supervisor does to the store for one task: look, claim, settle."""

    def __init__(self, store: Store, host: str) -> None:
        self.store = store
        self.host = host
        self.conflicts = 0
        (self.slots,) = store.commit([Put(Slots(f"host:{host}", 0))], [])

    def work(self, *, spread: bool) -> int:
        """Read some and go through them; what another has taken meanwhile is passed over."""
        done = 0
        limit = MANY if spread else FEW
        while found := self.store.candidates(now=self.store.now(), limit=limit):
            if spread:
                random.shuffle(found)
            for task in found:
                try:
                    self.claim_and_complete(task)
                except Conflict:
                    self.conflicts += 1
                else:
                    done += 1
        return done

    def claim_and_complete(self, found: Task) -> None:
        store, now = self.store, self.store.now()
        task, run = claim(
            found, Choice("implementer", "claude"), host=self.host, holder=self.host,
            slots=(self.slots.id,), at=now,
        )  # fmt: skip
        held = replace(self.slots, holders=(run.id,))
        told = Event("run.claimed", task.id, "supervisor", now, run.id)
        task, run, self.slots = store.commit([Put(task), Put(run), Put(held)], [told])
        outcome = Outcome(Ending.SUCCEEDED, "Done.", 0, Checkpoint("0" * 40, "a-session"))
        task = settle(task, outcome, retry=Retry(), now=now)
        over, free = end(run, outcome, at=now), release(self.slots, run.id)
        told = Event("run.ended", task.id, run.id, now, run.id)
        _, _, self.slots = store.commit([Put(task), Put(over), Put(free)], [told])


def ours(where: str, name: str, ready, out) -> None:
    worker = Worker(open_store(where), name)
    ready.wait()
    # PostgreSQL hands its lock on in turn, so all who read at once would want the same task
    done = worker.work(spread=not where.startswith("sqlite"))
    out.put((done, worker.conflicts))


CLAIM = """UPDATE task SET state = 'running' WHERE id =
  (SELECT id FROM task WHERE state = 'open' ORDER BY priority, created_at LIMIT 1) RETURNING id"""


def bare(where: str, _name: str, ready, out) -> None:
    db = sqlite3.connect(where, isolation_level=None, timeout=120)
    db.execute("PRAGMA synchronous = FULL")
    ready.wait()
    done = 0
    while row := db.execute(CLAIM).fetchone():
        db.execute("UPDATE task SET state = 'done' WHERE id = ?", row)
        done += 1
    out.put((done, 0))


def fill_bare(path: Path, count: int) -> sqlite3.Connection:
    """The same text, in the order that ours has: priority, then age; the log as long as it gets."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE task (id INTEGER PRIMARY KEY, state, priority, created_at, body)")
    db.execute("CREATE INDEX task_next ON task (state, priority, created_at)")
    db.execute("BEGIN")
    rows = ((n, "open", 2, n, PROMPT) for n in range(1, count + 1))
    db.executemany("INSERT INTO task VALUES (?, ?, ?, ?, ?)", rows)
    db.execute("COMMIT")
    db.execute("CREATE TABLE filler (text)")
    for _ in range(8):
        db.execute("INSERT INTO filler VALUES (?)", ["x" * 1_000_000])
    return db


def together(
    work: Callable[..., None], where: str, processes: int, count: int
) -> tuple[float, int]:
    """Tasks a second, and how many claims met another's; every task must be done once."""
    context = mp.get_context("spawn")
    ready, out = context.Barrier(processes + 1), context.Queue()
    names = [f"h{n}" for n in range(processes)]
    workers = [context.Process(target=work, args=(where, n, ready, out)) for n in names]
    for worker in workers:
        worker.start()
    ready.wait(timeout=120)
    began = time.perf_counter()
    reports = [out.get(timeout=600) for _ in workers]
    took = time.perf_counter() - began
    for worker in workers:
        worker.join()
    assert sum(done for done, _ in reports) == count, reports
    return count / took, sum(conflicts for _, conflicts in reports)
