"""PostgreSQL: claims beside a bare loop and another queue, commits, distance, reads, an idle host.

`--tasks 1000000 --events 10000000` for the whole; by default there are fewer, so that it ends soon.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import psycopg

from _bench import finish, verdict
from _claims import Delaying, bare, commits, fill, fill_procrastinate, ours, procrastinate, rate
from fleet.app import open_store
from fleet.domain.run import Choice, Host, Run, RunState
from fleet.ports import Put, TaskQuery
from tests.postgres import private_postgres
from tests.real.several_hosts import RealHost

QUIET_SECONDS = 40  # two whole rounds of a host that rests


def claims(url: str, numbers: list[int], rounds: int, *, has_peer: bool) -> list[bool]:
    good = []
    for workers in numbers:
        turns = [(rate(ours, url, workers), rate(bare, url, workers)) for _ in range(rounds)]
        mine, loop = sorted(turns, key=lambda t: t[0].a_second / t[1].a_second)[rounds // 2]
        what = f"claims, {workers} workers"
        shown = ("{:,.0f}/s", mine.a_second)
        beside = ("{:,.0f}/s of a bare SKIP LOCKED loop", loop.a_second)
        good.append(verdict(what, shown, beside, at_least=0.5))
        _by_cost(what, [min(turn[n].cost for turn in turns) for n in (0, 1)])
        if has_peer:
            peer = rate(procrastinate, url, workers).a_second
            good.append(verdict(what, shown, ("{:,.0f}/s of procrastinate", peer), at_least=1))
        if workers == 32:
            good.append(verdict(what, shown, ("{:,.0f}/s", 1000.0), at_least=1))
    return good


def _by_cost(what: str, costs: list[float]) -> None:
    if all(costs):
        mine, loop = costs
        print(f"{what}, by processor: {mine:.0f} us against {loop:.0f} us: {loop / mine:.2f} x")


def writes(url: str, rounds: int) -> bool:
    best = max(rate(commits, url, 32).a_second for _ in range(rounds))
    return verdict("commits, 32 writers", ("{:,.0f}/s", best), ("{:,.0f}/s", 2000.0), at_least=1)


def at_a_distance(url: str) -> bool:
    folder = url.partition("host=")[2]
    proxy = Delaying(f"{folder}/.s.PGSQL.5432", 0.040)
    far = f"postgresql://fleet@127.0.0.1:{proxy.port}/postgres"
    mine, peer = rate(ours, far, 8).a_second, rate(bare, far, 8).a_second
    return verdict(
        "claims, 8 workers, 40 ms away", ("{:,.0f}/s", mine),
        ("{:,.0f}/s of a bare loop", peer), at_least=0.5,
    )  # fmt: skip


def reads(url: str, events: int) -> list[bool]:
    with psycopg.connect(url, autocommit=True) as db:
        ((count,),) = db.execute("SELECT count(*) FROM fleet.task").fetchall()
        db.execute(
            "INSERT INTO fleet.event (number, type, version, task, run, actor, at, data)"
            " SELECT nextval('fleet.event_number'), 'run.claimed', 1, 't-' || (n %% %s + 1), '', 'x', n, '{}'"
            " FROM generate_series(1, %s) n", [count, events],
        )  # fmt: skip
        db.execute("VACUUM ANALYZE fleet.event")
    store = open_store(url)
    asked = {
        "task": lambda: store.task(f"t-{count // 2}"),
        "first page of all tasks": lambda: store.tasks(TaskQuery()),
        "first page of open tasks": lambda: store.tasks(TaskQuery(states=("open",))),
        "events of one task": lambda: store.events(task=f"t-{count // 2}", limit=200),
        "newest events": lambda: store.events(limit=200, newest=True),
        "candidates": lambda: store.candidates(now=store.now(), limit=68),
        "counts of a team": lambda: store.counts(team="nobody"),
    }
    good = []
    for what, ask in asked.items():
        took = []
        for _ in range(9):
            began = time.perf_counter()
            ask()
            took.append(time.perf_counter() - began)
        milliseconds = statistics.median(took) * 1000
        about = f"{what}, {count:,} tasks and {events:,} events"
        good.append(verdict(about, ("{:.1f} ms", milliseconds), ("{:.0f} ms", 100.0), at_most=1))
    store.close()
    return good


def idle_host() -> bool:
    """Statements a second of a host without work, beside 1,000 runs of 100 others."""
    with private_postgres() as url, tempfile.TemporaryDirectory(dir="/tmp") as folder:
        store = open_store(url)
        far = [f"far{n}" for n in range(100)]
        store.commit([Put(Host(n, 0, n, "x", "boot", 1 << 60, lease=300)) for n in far], [])
        for batch in range(10):
            tasks = [f"t-{batch * 100 + n + 10}" for n in range(100)]
            runs = [
                Run(f"{t}.1", 0, t, RunState.RUNNING, Choice("a", "a"), far[n], "x", 1)
                for n, t in enumerate(tasks)
            ]
            store.commit([Put(run) for run in runs], [])
        store.close()
        host = RealHost(Path(folder) / "host", url)
        host.env["FLEET_STORE_LEASE"] = "300"
        host.supervise()
        try:
            time.sleep(5)
            with psycopg.connect(url, autocommit=True) as db:
                db.execute("ALTER SYSTEM SET log_statement = 'all'")
                db.execute("SELECT pg_reload_conf()")
            log = Path(url.partition("host=")[2]) / "log"
            time.sleep(1)
            before = log.read_text().count("\n")
            time.sleep(QUIET_SECONDS)
            lines = [x for x in log.read_text().splitlines()[before:] if "LOG:  " in x]
            sent = sum(" statement: " in x or " execute " in x for x in lines)
        finally:
            host.end(signal.SIGTERM)
            host.kill_keepers()
    return verdict(
        "an idle host beside 1,000 runs elsewhere", ("{:.1f} statements/s", sent / QUIET_SECONDS),
        ("{:.0f}", 2.0), at_most=1,
    )  # fmt: skip


def has_procrastinate(url: str, tasks: int) -> bool:
    try:
        fill_procrastinate(url, tasks)
    except ImportError:
        print("procrastinate: not measured (pip install procrastinate)")
        return False
    return True


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--rounds", type=int, default=3, help="the median of their ratios decides")
    given = parser.parse_args()
    with private_postgres() as url:
        fill(url, given.tasks)
        peer = has_procrastinate(url, given.tasks)
        passed = claims(url, given.workers, given.rounds, has_peer=peer)
        passed += [writes(url, given.rounds), at_a_distance(url), *reads(url, given.events)]
    finish(*passed, idle_host())
