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
    assert "cannot be written" in scratch.fails("backup", str(nowhere), status=3)
    env = {"FLEET_STORE_URL": "postgresql://nobody@127.0.0.1:1/x"}
    assert "pg_dump" in scratch.fails("backup", str(tmp_path / "b"), status=1, env=env)
