"""The store under real processes: many at once, and `kill -9` in the middle of commits."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from fleet.adapters.stores.sqlite import Sqlite
from fleet.app import open_store
from fleet.domain.errors import BadStore, Conflict, Unavailable
from fleet.domain.run import Choice, Ending, Outcome, end
from fleet.domain.task import Retry, Task, TaskState, cancel, claim, settle
from fleet.ports import Put, TaskQuery
from tests.wait import LIMIT

WORKER = str(Path(__file__).with_name("store_worker.py"))
TASKS = int(os.environ.get("STORE_TASKS", "1000"))
KILLS = int(os.environ.get("STORE_KILLS", "200"))
KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.real)]


@pytest.fixture(params=KINDS)
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'fleet.db'}"
    return request.getfixturevalue("postgres_url")


def a_task(number: int) -> Task:
    return Task(f"t-{number}", 0, TaskState.OPEN, "Do it", "", "/p", "me", created_at=number)


def fill(store, count: int) -> None:
    first = 1 + sum(store.counts().values())
    store.commit([Put(a_task(n)) for n in range(first, first + count)], [])


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, WORKER, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def outputs(workers, *, timeout: float = 110) -> list[list[str]]:
    found = []
    for worker in workers:
        out, err = worker.communicate(timeout=timeout)
        assert worker.returncode == 0, err
        found += [line.split() for line in out.splitlines()]
    return found


def test_eight_processes_take_each_task_exactly_once(url):
    take_each_once(url, TASKS)


@pytest.mark.slow
@pytest.mark.real
@pytest.mark.timeout(900)
def test_eight_processes_take_each_of_ten_thousand_tasks_exactly_once(tmp_path):
    take_each_once(f"sqlite:///{tmp_path / 'fleet.db'}", 10_000)


def take_each_once(url: str, count: int) -> None:
    store = open_store(url)
    tasks = [a_task(n) for n in range(1, count + 1)]
    store.commit([Put(t) for t in tasks], [])
    told = outputs([start("drain", url, f"w{n}") for n in range(8)], timeout=800)
    claimed = Counter(words[1] for words in told)
    assert claimed == Counter(t.id for t in tasks)
    assert store.counts() == {"done": count}
    endings = Counter(e.run for e in store.events(limit=10 * count) if e.type == "run.ended")
    assert endings == Counter(f"{t.id}.1" for t in tasks)


def test_two_supervisors_never_exceed_a_cap(url):
    store = open_store(url)
    fill(store, 200)
    told = outputs([start("drain", url, f"w{n}", "model@node", "3") for n in range(4)])
    assert len(told) == 200
    assert 1 <= max(int(words[2]) for words in told) <= 3
    assert store.slots()["model@node"].holders == ()


def test_a_cancel_between_read_and_commit_is_not_overwritten(url):
    store, other = open_store(url), open_store(url)
    fill(store, 1)
    read = store.task("t-1")
    other.commit([Put(cancel(other.task("t-1"), "No.", now=1))], [])
    running, run = claim(read, Choice("a", "c"), host="h", holder="1", slots=(), at=1)
    with pytest.raises(Conflict):
        store.commit([Put(running), Put(run)], [])
    assert store.task("t-1").state is TaskState.CANCELLED
    assert store.runs("t-1") == []


def claimed(store) -> tuple:
    running, run = claim(store.task("t-1"), Choice("a", "c"), host="h", holder="1", slots=(), at=1)
    return tuple(store.commit([Put(running), Put(run)], []))


def test_a_supervisor_whose_run_was_taken_over_cannot_write(url):
    mine, theirs = open_store(url), open_store(url)
    fill(mine, 1)
    task, run = claimed(mine)
    lost = Outcome(Ending.LOST)
    open_again = settle(theirs.task("t-1"), lost, retry=Retry(), now=1)
    theirs.commit([Put(end(theirs.run(run.id), lost, at=2)), Put(open_again)], [])
    claimed(theirs)
    done = Outcome(Ending.SUCCEEDED)
    for stale in (end(run, done, at=3), settle(task, done, retry=Retry(), now=3)):
        with pytest.raises(Conflict):
            mine.commit([Put(stale)], [])
    assert mine.task("t-1").run_id == "t-1.2"


def test_a_supervisor_that_slept_but_was_not_taken_over_carries_on(url):
    store = open_store(url)
    fill(store, 1)
    task, run = claimed(store)
    done = Outcome(Ending.SUCCEEDED)
    store.commit([Put(end(run, done, at=9)), Put(settle(task, done, retry=Retry(), now=9))], [])
    assert store.task("t-1").state is TaskState.DONE


def test_kill_nine_in_the_middle_of_commits_leaves_every_commit_whole_or_absent(tmp_path):
    url = f"sqlite:///{tmp_path / 'fleet.db'}"
    open_store(url).close()
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    told = outputs([start("kill", url, str(KILLS), str(seed))])
    acknowledged = {task for words in told for task in words[1:]}
    check_whole(tmp_path / "fleet.db", url, acknowledged)


def check_whole(file: Path, url: str, acknowledged: set[str]) -> None:
    db = sqlite3.connect(file)
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    db.close()
    store = open_store(url)
    tasks = {t.id: t for t in store.tasks(TaskQuery(limit=1_000_000))}
    assert len(acknowledged) >= 2 * KILLS
    assert acknowledged <= set(tasks)
    for task in tasks.values():
        assert all(other in tasks for other in task.title.split("+")), f"half of {task.title}"
    told = Counter(e.task for e in store.events(limit=10_000_000))
    assert told == Counter(list(tasks))
    assert {t.id for t in store.candidates(now=store.now(), limit=1_000_000)} == set(tasks)


def test_no_reader_that_has_seen_a_number_ever_sees_a_lower_new_one(url):
    store = open_store(url)
    writers = [start("events", url, f"w{n}", "150") for n in range(4)]
    seen: list[int] = []
    while any(w.poll() is None for w in writers) or store.events(after=seen[-1] if seen else 0):
        seen += [e.number for e in store.events(after=seen[-1] if seen else 0)]
    outputs(writers)
    assert seen == [e.number for e in store.events(limit=10_000)]
    assert len(seen) == 4 * 150 * 3


def test_ids_are_given_once_across_processes(url):
    open_store(url).close()
    told = outputs([start("ids", url, "100") for _ in range(4)])
    assert len({words[1] for words in told}) == 400


def test_a_commit_elsewhere_wakes_whoever_waits(url):
    store = open_store(url)
    store.wait(0)  # PostgreSQL begins to listen
    worker = start("events", url, "w", "1")
    began = time.monotonic()
    store.wait(LIMIT)
    assert time.monotonic() - began < LIMIT
    worker.communicate()


def test_a_newer_database_is_refused_and_left_alone(tmp_path):
    file = tmp_path / "fleet.db"
    Sqlite(file).close()
    db = sqlite3.connect(file)
    db.execute("PRAGMA user_version = 99")
    db.execute("DELETE FROM meta WHERE key IN ('writes', 'reads')")  # for no older fleet
    db.commit()
    db.close()
    before = file.read_bytes()
    with pytest.raises(BadStore, match="newer fleet"):
        Sqlite(file)
    assert file.read_bytes() == before


def test_another_programs_database_is_refused_and_left_alone(tmp_path):
    file = tmp_path / "fleet.db"
    db = sqlite3.connect(file)
    db.execute("CREATE TABLE theirs (x)")
    db.commit()
    db.close()
    before = file.read_bytes()
    with pytest.raises(BadStore, match="another program"):
        Sqlite(file)
    assert file.read_bytes() == before


def use(file: Path) -> None:
    store = open_store(f"sqlite:///{file}")
    store.tasks(TaskQuery(limit=1000))
    fill(store, 10)


@pytest.mark.parametrize("damage", ["header", "middle", "truncated", "text"])
def test_a_damaged_database_is_named_copied_aside_and_never_overwritten(tmp_path, damage):
    file = tmp_path / "fleet.db"
    store = open_store(f"sqlite:///{file}")
    fill(store, 300)
    store.close()
    data = bytearray(file.read_bytes())
    match damage:
        case "header":
            data[:16] = b"not a database!!"
        case "middle":
            data[4096 : len(data) - 4096] = os.urandom(len(data) - 8192)
        case "truncated":
            del data[len(data) // 2 :]
        case "text":
            data = bytearray(b"just some text\n" * 100)
    file.write_bytes(data)
    with pytest.raises(BadStore, match="damaged") as caught:
        use(file)
    assert file.read_bytes() == bytes(data)
    (aside,) = (f for f in tmp_path.glob("fleet.db.damaged-*") if not f.name.endswith("-wal"))
    assert aside.read_bytes() == bytes(data)
    assert str(aside) in caught.value.message


def fill_up(store) -> int:
    for done in range(10_000):
        try:
            fill(store, 1)
        except Unavailable:
            return done
    raise AssertionError("the disk never got full")


def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)],
        check=False,
        capture_output=True,
    )
    if mount.returncode:
        pytest.skip("a small filesystem can only be mounted by root")
    try:
        store = open_store(f"sqlite:///{disk / 'fleet.db'}")
        done = fill_up(store)
        assert done > 10
        store.close()
        copy = tmp_path / "copy.db"
        for suffix in ("", "-wal"):
            if (disk / f"fleet.db{suffix}").exists():
                shutil.copy(disk / f"fleet.db{suffix}", f"{copy}{suffix}")
        assert len(open_store(f"sqlite:///{copy}").tasks(TaskQuery(limit=10_000))) == done
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_place_that_cannot_be_written_is_said_so(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises((Unavailable, OSError)):
        open_store(f"sqlite:///{tmp_path / 'file' / 'fleet.db'}")


def test_one_stale_write_among_several_writes_nothing(url):
    store, other = open_store(url), open_store(url)
    fill(store, 2)
    one, two = store.task("t-1"), store.task("t-2")
    other.commit([Put(replace(two, title="Theirs"))], [])
    with pytest.raises(Conflict):
        store.commit([Put(replace(one, title="Mine")), Put(replace(two, title="Mine"))], [])
    assert store.task("t-1").title == "Do it"
