"""A store at its beginning and its worst: made by many at once, killed while it is made, unusable."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from fleet.adapters.stores.sqlite import Sqlite
from fleet.app import open_store
from fleet.domain.errors import BadStore, Unavailable
from fleet.domain.event import Event
from fleet.domain.task import Task, TaskState
from fleet.ports import Put, TaskQuery
from tests.wait import LIMIT, until

OPEN = """
import sys
from fleet.app import open_store
from fleet.domain.event import Event
print("ready", flush=True)
sys.stdin.readline()
for url in sys.argv[1:]:
    open_store(url).commit([], [Event("x", "t-1", "me", 1)])
"""


def opener(*urls: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", OPEN, *urls], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def url_of(file: Path) -> str:
    return f"sqlite:///{file}"


def filled(file: Path, count: int = 200) -> None:
    store = open_store(url_of(file))
    tasks = [
        Task(f"t-{n}", 0, TaskState.OPEN, "Do it", "x" * 500, "/p", "me", n)
        for n in range(1, count + 1)
    ]
    store.commit([Put(t) for t in tasks], [])
    store.close()


def test_a_store_that_many_open_at_once_for_the_first_time_is_made_once(tmp_path):
    urls = [url_of(tmp_path / f"{n}.db") for n in range(30)]
    openers = [opener(*urls) for _ in range(6)]
    for each in openers:
        assert each.stdout.readline() == "ready\n"
    for each in openers:
        each.stdin.write("\n")
        each.stdin.flush()
    for each in openers:
        _, complaint = each.communicate(timeout=LIMIT)
        assert each.returncode == 0, complaint
    for url in urls:
        assert len(open_store(url).events()) == 6


def test_a_store_whose_making_was_killed_is_made_by_the_next(tmp_path):
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    rng = random.Random(seed)
    unfinished = 0
    for number in range(25):
        file = tmp_path / f"{number}.db"
        maker = opener(url_of(file))
        maker.stdin.write("\n")
        maker.stdin.flush()
        while not file.exists():
            assert maker.poll() is None or file.exists()
        time.sleep(rng.uniform(0, 0.006))
        maker.kill()
        maker.communicate()
        unfinished += not has_tables(file)
        store = open_store(url_of(file))
        assert len(store.events()) <= 1
        store.commit([], [Event("y", "t-1", "me", 1)])
        store.close()
        with contextlib.closing(sqlite3.connect(file)) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    print(f"{unfinished} were killed before they were whole")


def has_tables(file: Path) -> bool:
    """Looked at in a copy, so that what the kill left is left for the next to open."""
    with tempfile.TemporaryDirectory() as folder:
        for beside in file.parent.glob(f"{file.name}*"):
            shutil.copy(beside, folder)
        with contextlib.closing(sqlite3.connect(Path(folder) / file.name)) as db:
            return bool(db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def test_every_commit_is_on_the_disk_before_it_is_acknowledged(tmp_path):
    dialect = Sqlite(tmp_path / "fleet.db")
    assert dialect.rows("PRAGMA journal_mode", {}) == [("wal",)]
    assert dialect.rows("PRAGMA synchronous", {}) == [(2,)], "FULL: the log is synced each time"


def test_a_newer_store_is_refused_with_its_log_untouched_too(tmp_path):
    file = tmp_path / "fleet.db"
    filled(file)
    newer = sqlite3.connect(file, isolation_level=None)
    newer.execute("PRAGMA user_version = 99")
    newer.execute("DELETE FROM meta WHERE key IN ('writes', 'reads')")  # for no older fleet
    newer.execute("PRAGMA wal_checkpoint")
    newer.execute("CREATE TABLE of_tomorrow (x)")
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for name in ("fleet.db", "fleet.db-wal"):
        shutil.copy(tmp_path / name, crashed)  # as a crash leaves it: the log not written back
    newer.close()
    before = {p.name: p.read_bytes() for p in crashed.iterdir()}
    with pytest.raises(BadStore, match="newer fleet"):
        open_store(url_of(crashed / "fleet.db"))
    assert {p.name: p.read_bytes() for p in crashed.iterdir()} == before


def test_an_empty_file_with_a_log_is_damage_and_not_a_new_store(tmp_path):
    file = tmp_path / "fleet.db"
    filled(file)
    holder = open_store(url_of(file))
    holder.commit([], [Event("x", "t-1", "me", 1)])
    log = (tmp_path / "fleet.db-wal").read_bytes()
    lost = tmp_path / "lost"
    lost.mkdir()
    (lost / "fleet.db").touch()
    (lost / "fleet.db-wal").write_bytes(log)
    with pytest.raises(BadStore, match="damaged"):
        open_store(url_of(lost / "fleet.db"))
    assert (lost / "fleet.db-wal").read_bytes() == log
    assert not (lost / "fleet.db").read_bytes()


def test_damage_found_in_the_middle_of_work_ends_all_writing(tmp_path):
    file = tmp_path / "fleet.db"
    filled(file)
    data = bytearray(file.read_bytes())
    sound = len(data) * 3 // 4  # what is read when it is opened, too
    data[sound:] = os.urandom(len(data) - sound)
    file.write_bytes(data)
    store = open_store(url_of(file))
    with pytest.raises(BadStore, match="damaged"):
        store.tasks(TaskQuery(limit=1000))
    with pytest.raises(BadStore, match="damaged"):
        store.commit([], [Event("x", "t-1", "me", 1)])
    store.close()
    assert file.read_bytes() == bytes(data)
    assert len(list(tmp_path.glob("*.damaged-*"))) == 1


def test_a_record_that_cannot_be_read_is_named(tmp_path):
    file = tmp_path / "fleet.db"
    filled(file, 2)
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as db:
        db.execute("""UPDATE task SET body = '{"id": "t-1", "colour": "red"}' WHERE id = 't-1'""")
    store = open_store(url_of(file))
    with pytest.raises(BadStore, match="colour") as caught:
        store.task("t-1")
    assert "newer fleet" in caught.value.fix
    assert store.task("t-2").id == "t-2"


@contextlib.contextmanager
def small_disk(where: Path, size: str):
    where.mkdir()
    argv = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(where)]
    if subprocess.run(argv, check=False, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk")
    try:
        yield where
    finally:
        until(lambda: subprocess.run(["umount", str(where)], check=False).returncode == 0)


def test_a_damaged_store_on_a_full_disk_is_named_and_left(tmp_path):
    with small_disk(tmp_path / "disk", "200k") as disk:
        file = disk / "fleet.db"
        file.write_bytes(b"not a database " * 8000)
        before = file.read_bytes()
        with pytest.raises(BadStore, match="could not be copied"):
            open_store(url_of(file))
        assert [p.name for p in disk.iterdir()] == ["fleet.db"]
        assert file.read_bytes() == before


@pytest.mark.parametrize("free", [0, 4_096, 8_192, 36_864, 100_000])
def test_no_store_can_be_made_on_a_full_disk_and_one_can_once_there_is_room(tmp_path, free):
    with small_disk(tmp_path / "disk", "2m") as disk:
        fill(disk / "other", leave=free)
        with pytest.raises(Unavailable) as refused:
            open_store(url_of(disk / "fleet.db"))
        assert refused.value.code == "disk_full"
        (disk / "other").unlink()
        open_store(url_of(disk / "fleet.db")).close()


def fill(file: Path, *, leave: int) -> None:
    """What fits on a disk differs with its kernel, so we ask how much is left."""
    disk = os.statvfs(file.parent)
    with file.open("wb", buffering=0) as other, contextlib.suppress(OSError):
        for _ in range(disk.f_bavail - leave // disk.f_frsize):
            other.write(bytes(disk.f_frsize))


def test_a_full_disk_is_named_and_the_work_goes_on_when_there_is_room(tmp_path):
    with small_disk(tmp_path / "disk", "2m") as disk:
        store = open_store(url_of(disk / "fleet.db"))
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 1_000_000)
        done, refusal = write_until_refused(store)
        assert refusal.exit_status == 3
        assert len(store.events(limit=10_000)) == done
        ballast.unlink()
        store.commit([], [Event("more", "t-1", "me", 0)])
        assert len(store.events(limit=10_000)) == done + 1
        store.close()


def write_until_refused(store) -> tuple[int, Unavailable]:
    for done in range(10_000):
        try:
            store.commit([], [Event("x" * 10_000, "t-1", "me", done)])
        except Unavailable as error:
            return done, error
    raise AssertionError("the disk is never full")


READ = """
import os, sys
import fleet.adapters.stores.sqlite
from fleet.app import open_store
from fleet.domain.errors import FleetError
from fleet.domain.event import Event
if os.getuid() == 0:  # whom no folder refuses
    os.setgid(65534); os.setuid(65534)
try:
    store = open_store(sys.argv[1])
    store.commit([], [Event("x", "t-1", "me", 1)])
except FleetError as error:
    print(error.code, error.message)
"""


def test_a_folder_that_may_not_be_written_is_named(tmp_path):
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        filled(folder / "fleet.db")
        (folder / "fleet.db").chmod(0o444)
        folder.chmod(0o555)
        try:
            for file in (folder / "fleet.db", folder / "new.db", folder / "deeper" / "new.db"):
                told = subprocess.run(
                    [sys.executable, "-c", READ, url_of(file)],
                    capture_output=True, text=True, check=False, cwd="/",
                )  # fmt: skip
                assert told.stdout.startswith("unavailable "), told
                assert str(file) in told.stdout
        finally:
            folder.chmod(0o755)
