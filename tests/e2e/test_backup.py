"""`fleet backup`, and the way back that the page describes."""

from __future__ import annotations

import shutil
import sqlite3
import stat
import threading
from contextlib import closing

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.wait import until


def test_a_backup_made_under_load_has_everything_that_was_acknowledged_before(tmp_path):
    served = Served(Scratch(tmp_path), "--no-run")
    token, over, ids = served.token("ann"), threading.Event(), []

    def write() -> None:
        while not over.is_set():
            reply = served.ask("POST", "/v1/task/add", {"title": "x"}, token=token)[1]
            ids.append(reply["data"]["id"])

    writer = threading.Thread(target=write)
    writer.start()
    try:
        until(lambda: len(ids) > 20)
        before = list(ids)
        copy = tmp_path / "copy.db"
        made = served.scratch.data("backup", str(copy))
        assert made["bytes"] == copy.stat().st_size
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert not copy.with_name("copy.db-wal").exists()
    finally:
        over.set()
        writer.join()
        served.close()
    home = tmp_path / "restored"
    home.mkdir()
    shutil.copy(copy, home / "fleet.db")
    rows = served.scratch.data("tasks", "--all", "--limit", "10000", env={"FLEET_HOME": str(home)})
    assert set(before) <= {row["id"] for row in rows} <= set(ids)
    with closing(sqlite3.connect(home / "fleet.db")) as db:  # else readers would hold up writers
        assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_backup_replaces_nothing_and_says_what_to_do_instead(tmp_path):
    scratch = Scratch(tmp_path)
    copy = tmp_path / "copy.db"
    assert "no store" in scratch.fails("backup", str(copy), status=2)
    scratch("add", "x", "--prompt", "y")
    copy.write_text("mine")
    assert "Name a new file" in scratch.fails("backup", str(copy), status=1)
    assert copy.read_text() == "mine"
    nowhere = tmp_path / "no" / "copy.db"
    refused = scratch.fails("backup", str(nowhere), status=3)
    assert "cannot be written" in refused
    assert f"mkdir -p {nowhere.parent}" in refused
    env = {"FLEET_STORE_URL": "postgresql://nobody@127.0.0.1:1/x"}
    assert "pg_dump" in scratch.fails("backup", str(tmp_path / "b"), status=1, env=env)


def test_a_run_of_a_store_that_was_put_back_really_runs(tmp_path):
    scratch = Scratch(tmp_path)
    scratch("add", "Count", "--prompt", "say once")
    scratch("run", "--once")
    copy = tmp_path / "copy.db"
    scratch("backup", str(copy))
    scratch("retry", "t-1")
    scratch("run", "--once")
    for end in ("", "-wal", "-shm"):
        (scratch.home / f"fleet.db{end}").unlink(missing_ok=True)
    copy.rename(scratch.home / "fleet.db")
    scratch("retry", "t-1")
    scratch("run", "--once")
    assert scratch.status("t-1") == "done"
    assert [run["id"] for run in scratch.data("show", "t-1")["runs"]] == ["t-1.1", "t-1.3"]
    assert (scratch.home / "runs" / "t-1.3" / "transcript").stat().st_size > 0


def titles(scratch) -> set[str]:
    return {row["title"] for row in scratch.data("tasks", "--all")}


def test_a_restored_store_is_as_the_copy_was_and_the_one_before_can_be_put_back(tmp_path):
    scratch = Scratch(tmp_path)
    scratch("add", "Early", "--prompt", "say once")
    copy = tmp_path / "copy.db"
    scratch("backup", str(copy))
    scratch("add", "Late", "--prompt", "say once")
    with closing(sqlite3.connect(scratch.home / "fleet.db")) as reader:  # others may look meanwhile
        reader.execute("SELECT * FROM task").fetchall()
        before = scratch.data("restore", str(copy))["before"]
        assert len(reader.execute("SELECT * FROM task").fetchall()) == 1
        assert reader.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert titles(scratch) == {"Early"}
    scratch("run", "--once")
    assert scratch.status("t-1") == "done"
    scratch("restore", before)
    scratch("restore", before)  # at once again: each keeps what it replaces under a name of its own
    assert len(list(scratch.home.glob("*.before-restore.db"))) == 3
    assert titles(scratch) == {"Early", "Late"}
    assert scratch.status("t-1") == "ready"


def test_a_file_that_is_no_copy_changes_nothing(tmp_path):
    scratch = Scratch(tmp_path)
    scratch("add", "Mine", "--prompt", "say once")
    wrong = tmp_path / "wrong.db"
    assert "There is no file" in scratch.fails("restore", str(wrong), status=2)
    wrong.write_text("This is a letter, and no database at all.")
    assert "is not a copy of a store" in scratch.fails("restore", str(wrong), status=2)
    with closing(sqlite3.connect(other := tmp_path / "other.db")) as db, db:
        db.execute("CREATE TABLE song (title)")
    assert "another program's database" in scratch.fails("restore", str(other), status=2)
    copy = tmp_path / "copy.db"
    scratch("backup", str(copy))
    with closing(sqlite3.connect(copy)) as db, db:
        db.execute("PRAGMA user_version = 999")
    assert "newer fleet" in scratch.fails("restore", str(copy), status=3)
    env = {"FLEET_STORE_URL": "postgresql://nobody@127.0.0.1:1/x"}
    assert "pg_restore" in scratch.fails("restore", str(copy), status=1, env=env)
    assert titles(scratch) == {"Mine"}
    assert not list(scratch.home.glob("*before-restore*"))


def test_nothing_is_restored_below_a_server_or_a_supervisor(tmp_path):
    scratch = Scratch(tmp_path)
    scratch("add", "Mine", "--prompt", "say once")
    copy = tmp_path / "copy.db"
    scratch("backup", str(copy))
    served = Served(scratch, "--no-run")
    try:
        assert "fleet serve --stop" in scratch.fails("restore", str(copy), status=1)
    finally:
        served.close()
    scratch("run", "--detach")
    try:
        assert "fleet run stop" in scratch.fails("restore", str(copy), status=1)
    finally:
        scratch("run", "stop")


def test_migrate_says_what_it_would_do_and_does_it(tmp_path):
    from tests.contract.old_stores import old_sqlite

    scratch = Scratch(tmp_path)
    scratch.home.mkdir(exist_ok=True)
    assert "no store yet" in scratch("store", "migrate", "--check")
    old_sqlite(scratch.home / "fleet.db", more=0)
    behind = scratch.type("store", "migrate", "--check")
    assert (behind.returncode, "Its schema is 2" in behind.stdout) == (1, True)
    assert scratch.data("store", "migrate")["schema"] > 2
    assert "reads and writes" in scratch("store", "migrate", "--check")
    with closing(sqlite3.connect(scratch.home / "fleet.db")) as db:
        db.execute("PRAGMA user_version = 99")
        db.execute("DELETE FROM meta WHERE key IN ('writes', 'reads')")  # for no older fleet
        db.commit()
    newer = scratch.type("store", "migrate", "--check")
    assert (newer.returncode, "cannot use it" in newer.stdout) == (1, True)
