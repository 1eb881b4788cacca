"""The contestants of `postgres.py`: what a supervisor does, a bare loop, and another queue."""

from __future__ import annotations

import asyncio
import json
import multiprocessing as mp
import queue
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from _store import PROMPT, a_task
from fleet.adapters.stores.rows import write
from fleet.app import open_store
from fleet.domain.event import Event
from fleet.domain.run import Choice, Run, RunState, Slots
from fleet.domain.schedule import Claim, ReadyTask, Slot, schedule
from fleet.domain.task import claim
from fleet.ports import Put

if TYPE_CHECKING:
    from collections.abc import Callable

FOUR = 4  # tasks for which a host has room when it looks
SECONDS = 4.0
BARE = """UPDATE bare SET state = 'running' WHERE id = (SELECT id FROM bare WHERE state = 'open'
  ORDER BY priority, id LIMIT 1 FOR UPDATE SKIP LOCKED)"""


def fill(url: str, count: int) -> None:
    """As many tasks for us as rows for the bare loop, by COPY."""
    open_store(url).close()
    values = write(Put(a_task(1))).values
    columns = [name for name in values if name != "version"]
    text = json.dumps(PROMPT)[1:-1]
    with psycopg.connect(url, autocommit=True) as db:
        with db.cursor().copy(
            f"COPY fleet.task ({', '.join(columns)}, version, blockers) FROM STDIN"
        ) as copy:
            for n in range(1, count + 1):
                row = {**values, "seq": n, "id": f"t-{n}", "created_at": n}
                row["body"] = values["body"].replace('"t-1"', f'"t-{n}"', 1)
                copy.write_row([*(row[name] for name in columns), 1, 0])
        db.execute(
            "CREATE TABLE bare AS SELECT n AS id, 'open' AS state, 2 AS priority, %s AS body"
            f" FROM generate_series(1, {count}) n", [text],
        )  # fmt: skip
        for sql in (
            "ALTER TABLE bare ADD PRIMARY KEY (id)",
            "CREATE INDEX bare_next ON bare (priority, id) WHERE state = 'open'",
            "SELECT setval('fleet.id_t', max(seq)) FROM fleet.task",
            "VACUUM ANALYZE bare",
            "VACUUM ANALYZE fleet.task",
            "CHECKPOINT",
        ):
            db.execute(sql.encode())


def ours(url: str, name: str, ready, out) -> None:
    """As `Supervisor._start_ready` does it: look, decide with `schedule`, claim."""
    store = open_store(url)
    done, until = 0, float("inf")
    rounds, names = 0, []
    while time.monotonic() < until:
        if rounds == 3:  # what is compiled once is compiled
            ready.wait()
            done, until = 0, time.monotonic() + SECONDS
        rounds += 1
        tasks, rows = store.offer(name, now=store.now(), limit=FOUR, names=names)
        slot = Slot(f"host {name}", 1 << 30)
        choice = Choice("implementer", "claude")
        asks = [ReadyTask(task, choice, ((slot,),), f"credential {name}") for task in tasks]
        wanted = sorted({n for ask in asks for n in ask.names})
        if unread := [n for n in wanted if n not in names]:
            rows |= store.slots(unread)
        names = wanted
        row = rows.get(slot.name)
        if row and len(row.holders) > 4 * FOUR:  # as when runs end: their slots are free again
            (rows[slot.name],) = store.commit([Put(Slots(slot.name, row.version))], [])
        plan = schedule(asks, rows, now=store.now())
        done += len(store.claim([_claim(start, name) for start in plan.starts]))
    out.put(done)
    ready.wait()


def _claim(start, host: str) -> Claim:
    task, run = claim(start.task, start.choice, host=host, holder=host, slots=start.slots, at=1)
    return Claim(task, run, Event("run.claimed", task.id, "supervisor", 1, run.id), start.room)


def bare(url: str, _name: str, ready, out) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        ready.wait()
        done, until = 0, time.monotonic() + SECONDS
        while time.monotonic() < until:
            done += db.execute(BARE).rowcount
        out.put(done)
        ready.wait()


def commits(url: str, name: str, ready, out) -> None:
    """A run's row and one event, by the one call that all writes are."""
    store = open_store(url)
    task = store.new_id("t")
    run = Run(f"{task}.1", 0, task, RunState.RUNNING, Choice("a", "c"), name, "x", 1)
    (run,) = store.commit([Put(run)], [])
    ready.wait()
    done, until = 0, time.monotonic() + SECONDS
    while time.monotonic() < until:
        (run,) = store.commit([Put(run)], [Event("run.said", run.task, run.id, 1, run.id)])
        done += 1
    out.put(done)
    ready.wait()


def procrastinate(url: str, name: str, ready, out) -> None:
    """Its own query for the next job, as its worker sends it."""
    import procrastinate as peer

    async def work() -> None:
        connector = peer.PsycopgConnector(conninfo=url, min_size=1, max_size=1)
        app = peer.App(connector=connector)
        async with app.open_async():
            worker = await app.job_manager.register_worker()
            await app.job_manager.fetch_job(queues=None, worker_id=worker)
            ready.wait()
            done, until = 0, time.monotonic() + SECONDS
            while time.monotonic() < until:
                done += bool(await app.job_manager.fetch_job(queues=None, worker_id=worker))
            out.put(done)
            ready.wait()

    del name
    asyncio.run(work())


def fill_procrastinate(url: str, count: int) -> None:
    import procrastinate as peer

    async def make() -> None:
        app = peer.App(connector=peer.PsycopgConnector(conninfo=url))
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    asyncio.run(make())
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, args)"
            f" SELECT 'q', 't', '{{}}' FROM generate_series(1, {count})"
        )
        db.execute("VACUUM ANALYZE procrastinate_jobs")


class Rate(NamedTuple):
    """How many a second, all together; and what each cost, in microseconds of a processor.

    The second says more on a machine that does other things, too. 0: this system does not tell.
    """

    a_second: float
    cost: float


def rate(work: Callable[..., None], url: str, processes: int) -> Rate:
    context = mp.get_context("spawn")
    ready, out = context.Barrier(processes + 1), context.Queue()
    names = [f"{work.__name__}{processes}-{n}" for n in range(processes)]
    workers = [context.Process(target=work, args=(url, n, ready, out)) for n in names]
    for worker in workers:
        worker.start()
    try:
        ready.wait(timeout=180)
        began = time.perf_counter()
        pids = [worker.pid for worker in workers] + _their_servers(url)
        before = _microseconds(pids)
        done = sum(out.get(timeout=120) for _ in workers)
        took = time.perf_counter() - began
        cost = (_microseconds(pids) - before) / max(1, done)
        ready.wait(timeout=120)  # until now all of them are there to be asked
    except (threading.BrokenBarrierError, queue.Empty):
        for worker in workers:
            worker.terminate()
        raise RuntimeError(f"{work.__name__} did not work") from None
    for worker in workers:
        worker.join()
    return Rate(done / took, cost)


def _their_servers(url: str) -> list[int]:
    """The server's processes that work for others than us."""
    with psycopg.connect(url, autocommit=True) as db:
        rows = db.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        ).fetchall()
    return [pid for (pid,) in rows]


def _microseconds(pids: list[int]) -> float:
    """How long a processor has worked for them."""
    try:
        return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids) / 1e3
    except OSError:
        return 0


class Delaying:
    """A loopback proxy to a Unix socket that passes each piece on after half of the round trip."""

    def __init__(self, path: str, round_trip: float) -> None:
        self._path, self._half = path, round_trip / 2
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            client, _ = self._listening.accept()
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._path)
            for one, other in ((client, server), (server, client)):
                pieces: queue.Queue = queue.Queue()
                threading.Thread(target=self._read, args=(one, pieces), daemon=True).start()
                threading.Thread(target=self._write, args=(other, pieces), daemon=True).start()

    def _read(self, source: socket.socket, pieces: queue.Queue) -> None:
        while data := source.recv(1 << 16):
            pieces.put((time.monotonic() + self._half, data))
        pieces.put((0.0, b""))

    def _write(self, sink: socket.socket, pieces: queue.Queue) -> None:
        while True:
            due, data = pieces.get()
            if not data:
                sink.close()
                return
            time.sleep(max(0.0, due - time.monotonic()))
            sink.sendall(data)
