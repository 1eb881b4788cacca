"""What one process does to a shared store. `python store_worker.py WHAT URL ARG…`, one line out per fact."""

from __future__ import annotations

import os
import random
import signal
import sys
import time
from dataclasses import replace

from fleet.app import open_store
from fleet.domain.errors import Conflict
from fleet.domain.event import Event
from fleet.domain.run import Choice, Ending, Outcome, Slots, end, release
from fleet.domain.task import Retry, Task, TaskState, claim, settle
from fleet.ports import Put


def tell(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def drain(store, name: str, slot: str = "", limit: int = 0) -> None:
    """Claim and complete until nothing is left, within `limit` of `slot` at once."""
    while batch := store.candidates(now=store.now(), limit=16):
        random.shuffle(batch)
        for task in batch:
            take(store, name, task, slot, limit)


def take(store, name: str, task: Task, slot: str, limit: int) -> None:
    slots = (slot,) if slot else ()
    running, run = claim(
        task, Choice("a", "c"), host=name, holder=name, slots=slots, at=store.now()
    )
    changes = [Put(running), Put(run)]
    if slot:
        row = store.slots([slot]).get(slot) or Slots(slot, 0)
        if len(row.holders) >= limit:  # of the very row that the commit insists on
            return
        changes.append(Put(replace(row, holders=(*row.holders, run.id))))
    try:
        done = store.commit(changes, [Event("run.claimed", task.id, name, store.now(), run.id)])
    except Conflict:
        return
    tell("claimed", task.id, len(done[2].holders) if slot else 0)
    complete(store, name, done[0], done[1], slot)


def complete(store, name: str, task, run, slot: str) -> None:
    outcome = Outcome(Ending.SUCCEEDED)
    while True:
        now = store.now()
        changes = [
            Put(settle(task, outcome, retry=Retry(), now=now)),
            Put(end(run, outcome, at=now)),
        ]
        if slot:
            changes.append(Put(release(store.slots([slot])[slot], run.id)))
        try:
            store.commit(changes, [Event("run.ended", task.id, name, now, run.id)])
        except Conflict:
            continue
        return


def add_pairs(store, name: str) -> None:
    """For ever: one commit with two tasks and two events that belong together; told once it is in."""
    while True:
        first, second = store.new_id("t"), store.new_id("t")
        tasks = [
            Task(i, 0, TaskState.OPEN, f"{first}+{second}", "x" * 2000, "/p", name, store.now())
            for i in (first, second)
        ]
        store.commit(
            [Put(t) for t in tasks], [Event("pair", t.id, name, t.created_at) for t in tasks]
        )
        tell("added", first, second)


def add_events(store, name: str, count: str) -> None:
    for number in range(int(count)):
        store.commit([], [Event(f"{name}.{number}", "t-1", name, store.now()) for _ in range(3)])


def give_ids(store, count: str) -> None:
    for _ in range(int(count)):
        tell("id", store.new_id("t"))


def kill_pairs(url: str, kills: str, seed: str) -> None:
    """Fork so many that add pairs, each killed at some moment of some commit; what they told."""
    rng = random.Random(int(seed))
    for number in range(int(kills)):
        told, tells = os.pipe()
        pid = os.fork()
        if not pid:
            os.dup2(tells, 1)
            add_pairs(open_store(url), f"k{number}")
        os.close(tells)
        time.sleep(rng.uniform(0.0, 0.02))
        with os.fdopen(told) as lines:
            head = lines.readline()  # it is at work
            time.sleep(rng.uniform(0.0, 0.02))
            os.kill(pid, signal.SIGKILL)
            whole = [line for line in (head, *lines) if line.endswith("\n")]
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
        sys.stdout.write("".join(whole))
        sys.stdout.flush()


WHAT = {
    "drain": lambda s, name, *rest: drain(s, name, *rest[:1], *(int(r) for r in rest[1:])),
    "pairs": add_pairs,
    "events": add_events,
    "ids": give_ids,
}

if __name__ == "__main__":
    what, url, *rest = sys.argv[1:]
    if what == "kill":  # a store that is open is not to be forked
        kill_pairs(url, *rest)
    else:
        WHAT[what](open_store(url), *rest)
