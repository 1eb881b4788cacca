"""A real PgBouncer in transaction mode: each statement may be on another connection of the server."""

from __future__ import annotations

import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from fleet.adapters.stores.postgres.store import open_url
from fleet.domain.event import Event
from fleet.domain.run import Choice, Progress
from fleet.domain.schedule import Claim
from fleet.domain.task import Task, TaskState, claim
from fleet.ports import Put, TaskQuery
from tests.free_ports import free_ports
from tests.postgres import ROOT, _ordinary_user
from tests.wait import until

pytestmark = pytest.mark.real

SETTINGS = """[databases]
postgres = host={server} dbname=postgres user=fleet
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 100
"""


@pytest.fixture
def pooled_url(postgres_url):
    found = subprocess.run(
        [ROOT / "scripts" / "pgbouncer"], capture_output=True, text=True, check=False
    )
    if found.returncode:
        pytest.skip(found.stderr.strip())
    with psycopg.connect(postgres_url) as db:
        server = db.info.host
    port = free_ports()
    with tempfile.TemporaryDirectory(prefix="fleet-bouncer-", dir="/tmp") as name:
        folder = Path(name)
        (folder / "ini").write_text(SETTINGS.format(server=server, port=port))
        user = _ordinary_user(folder)
        process = subprocess.Popen(
            [*user, found.stdout.strip(), str(folder / "ini")],
            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        url = f"postgresql://fleet@127.0.0.1:{port}/postgres"

        def answers() -> bool:
            try:
                psycopg.connect(url, connect_timeout=2).close()
            except psycopg.OperationalError:
                return False
            return True

        try:
            until(answers)
            yield url
        finally:
            process.terminate()
            process.wait(20)


def test_many_hosts_claim_write_and_read_through_a_pool_in_transaction_mode(pooled_url):
    first = open_url(pooled_url, None, None)
    assert first._db.is_pooled
    tasks = [
        Task(f"t-{n}", 0, TaskState.OPEN, "Do it", "do it", "/p", "me", n) for n in range(1, 61)
    ]
    first.commit([Put(task) for task in tasks], [])

    def work(host: str) -> int:
        store, made = open_url(pooled_url, None, None), 0
        while offered := store.offer(host, now=store.now(), limit=3).tasks:
            runs = store.claim([_claim(task, host) for task in offered])
            made += len(runs)
            for run in runs:
                (progress,) = store.commit([Put(Progress(run.id, 0, 1, last="a"))], [])
                for text in "bcdefgh":
                    (progress,) = store.commit([Put(replace(progress, last=text))], [])
            store.limit(20)
            assert len(store.tasks(TaskQuery(limit=100))) == 60
        store.close()
        return made

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, [f"h{n}" for n in range(8)])) == 60
    runs = first.live_runs()
    assert len(runs) == len({run.task for run in runs}) == 60
    assert {p.last for p in first.progress([run.id for run in runs]).values()} == {"h"}
    assert len(first.events()) == 60
    first.close()


def _claim(task: Task, host: str) -> Claim:
    running, run = claim(task, Choice("a", "c"), host=host, holder="#1", slots=("all",), at=5)
    return Claim(running, run, Event("run.claimed", task.id, "s", 5, run.id), {"all": 60})


def test_who_waits_behind_a_pool_looks_by_itself_every_second(pooled_url):
    store, other = open_url(pooled_url, None, None), open_url(pooled_url, None, None)
    other.commit([], [Event("task.added", "t-1", "me", 1)])
    store.wait(30)
    assert [event.type for event in store.events(newest=True, limit=1)] == ["task.added"]
    store.close()
    other.close()
