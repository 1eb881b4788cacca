"""The store: claims under eight processes, claims among many tasks, one commit against one insert."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from _bench import finish, verdict
from _store import a_task, bare, fill, fill_bare, ours, together
from fleet.app import open_store
from fleet.domain.event import Event
from fleet.domain.run import Choice, Progress, Slots
from fleet.domain.task import Tally, TaskState, claim
from fleet.ports import Put

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleet.ports import Store

PROCESSES = 8
TASKS = int(os.environ.get("BENCH_TASKS", "1200"))
WARM_UP = 2000  # until the bare log, too, is as long as it gets
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "11"))


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="fleet-bench-") as name:
        yield Path(name)


def sqlite_url(path: Path) -> str:
    return f"sqlite:///{path}"


def eight_processes() -> bool:
    """In turns, so that both meet the same disk; the median of the ratios decides."""
    pairs = []
    for _ in range(ROUNDS):
        with folder() as here:
            with contextlib.closing(fill_bare(here / "bare.db", TASKS)):
                peer, _ = together(bare, str(here / "bare.db"), PROCESSES, TASKS)
            mine = our_rate(sqlite_url(here / "fleet.db"))
            print(f"  {mine / peer:.2f} x in this round", flush=True)
            pairs.append((mine, peer))
    middle = statistics.median_low(sorted(mine / peer for mine, peer in pairs))
    mine, peer = next(pair for pair in pairs if pair[0] / pair[1] == middle)
    return verdict(
        f"claim and complete with events, {PROCESSES} processes, synchronous=FULL",
        ("{:,.0f} tasks/s", mine),
        ("{:,.0f} of a bare loop of two transactions", peer),
        at_least=0.4,
    )


def our_rate(where: str) -> float:
    store = open_store(where)
    fill(store, [a_task(n) for n in range(1, TASKS + 1)])
    grow_log(store)
    rate, conflicts = together(ours, where, PROCESSES, TASKS)
    store.close()  # not before: the last to close takes the log away
    print(f"  {rate:,.0f} tasks/s, {conflicts / TASKS:.2f} conflicts a claim", flush=True)
    return rate


def claim_once(store: Store, host: list[Slots]) -> None:
    (found,) = store.candidates(now=store.now(), limit=1)
    task, run = claim(
        found, Choice("implementer", "claude"), host="h", holder="h", slots=(host[0].id,), at=1
    )
    held = replace(host[0], holders=(run.id,))
    told = Event("run.claimed", task.id, "supervisor", 1, run.id)
    host[0] = store.commit([Put(task), Put(run), Put(held)], [told])[2]


def grow_log(store: Store) -> None:
    """Until the log is as long as it gets: writing over it is faster than writing at its end."""
    progress = Progress("t-1.1", 0, 0)
    for letter in "abcdefghijklmnopqrst":  # what does not change is not written
        (progress,) = store.commit([Put(replace(progress, last=letter * 1_000_000))], [])


def latencies(stores: dict[str, Store], times: int) -> dict[str, float]:
    """The median seconds of a claim in each, one after the other."""
    took: dict[str, list[float]] = {name: [] for name in stores}
    hosts = {name: store.commit([Put(Slots("host:h", 0))], []) for name, store in stores.items()}
    for turn in range(-10, times):
        for name, store in stores.items():
            start = time.perf_counter()
            claim_once(store, hosts[name])
            if turn >= 0:
                took[name].append(time.perf_counter() - start)
    return {name: statistics.median(seconds) for name, seconds in took.items()}


def among_many() -> list[bool]:
    count, waiting = 100_000, TaskState.OPEN
    later = Tally(not_before=1 << 62)
    worlds = {
        "100 tasks": [a_task(n) for n in range(1, 101)],
        "100,000 tasks": [a_task(n) for n in range(1, count + 1)],
        # what is held back comes first: it must not have to be stepped over
        "100,000 tasks, 50,000 of them blocked and 10,000 postponed": [
            a_task(1, state=TaskState.FAILED),
            *(a_task(n, state=waiting, after=("t-1",)) for n in range(2, 50_001)),
            *(a_task(n, tally=later) for n in range(50_001, 60_001)),
            *(a_task(n) for n in range(60_001, count + 1)),
        ],
    }
    with folder() as here:
        stores = {}
        for number, (name, tasks) in enumerate(worlds.items()):
            stores[name] = open_store(sqlite_url(here / f"{number}.db"))
            fill(stores[name], tasks)
            grow_log(stores[name])
        took = latencies(stores, 80)
        for store in stores.values():
            store.close()
    few = took.pop("100 tasks") * 1e6
    return [
        verdict(
            f"claim latency with {name}",
            ("{:.0f} µs", seconds * 1e6),
            ("{:.0f} µs with 100", few),
            at_most=2,
        )
        for name, seconds in took.items()
    ]


def one_commit() -> bool:
    with folder() as here:
        store = open_store(sqlite_url(here / "fleet.db"))
        db = sqlite3.connect(here / "bare.db", isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE task (body TEXT)")
        grow_log(store)
        size = stored_bytes(store)
        mine, peer = in_turns(lambda n: add(store, n), lambda _: insert(db, "x" * size), 3000)
    return verdict(
        "one commit of a task with its event",
        ("{:.0f} µs", mine * 1e6),
        ("{:.0f} µs for a bare insert of the same bytes", peer * 1e6),
        at_most=2.5,
    )


def add(store: Store, number: int) -> None:
    task = a_task(number)
    told = Event("task.added", task.id, "me", number, data={"title": task.title})
    store.commit([Put(task)], [told])


def insert(db: sqlite3.Connection, body: str) -> None:
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO task VALUES (?)", [body])
    db.execute("COMMIT")


def stored_bytes(store: Store) -> int:
    """What one task and its event come to as text."""
    from fleet.adapters.stores.codec import encode

    add(store, 1_000_000)
    return len(encode(store.task("t-1000000"))) + len(str(store.events()[-1]))


def in_turns(
    mine: Callable[[int], None], peer: Callable[[int], None], times: int
) -> tuple[float, float]:
    took: tuple[list[float], list[float]] = ([], [])
    for turn in range(1, times + WARM_UP):
        for call, seconds in zip((mine, peer), took, strict=True):
            start = time.perf_counter()
            call(turn)
            if turn >= WARM_UP:
                seconds.append(time.perf_counter() - start)
    return statistics.median(took[0]), statistics.median(took[1])


def on_postgres() -> None:
    """Printed for comparison; it has no bar."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    try:
        import psycopg  # noqa: F401  # is it there

        from tests.postgres import private_postgres

        with private_postgres() as url:
            print("PostgreSQL, fsync on (no bar):", flush=True)
            our_rate(url)
    except (ImportError, RuntimeError, OSError, subprocess.CalledProcessError) as error:
        print(f"PostgreSQL: not measured ({error})")


if __name__ == "__main__":
    passed = [eight_processes(), *among_many(), one_commit()]
    on_postgres()
    finish(*passed)
