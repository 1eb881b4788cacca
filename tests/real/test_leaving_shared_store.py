"""PostgreSQL: a supervisor that is stopped leaves its agents a day; one that is killed does not."""

from __future__ import annotations

import os
import signal
import time

import pytest

from e2e.desk import Desk, until
from fleet.app import open_store
from fleet.base.machine import since_boot
from postgres import private_postgres

pytestmark = pytest.mark.real
DAY = 24 * 3600


@pytest.fixture(scope="module")
def url():
    with private_postgres() as found:
        yield found


def lease(desk, task: str) -> float:
    """Seconds that the keeper gives its coder."""
    return float((desk.home / "runs" / f"{task}.1" / "lease").read_text()) - since_boot()


def test_stopping_extends_the_lease_before_nobody_renews_it(url, tmp_path):
    desk = Desk(tmp_path)
    desk.env["FLEET_STORE_URL"] = url
    task, other = (
        desk.add("First", script="say begun\nsleep 60"),
        desk.add("Second", script="sleep 60"),
    )
    pid = desk.data("run", "start")["pid"]
    try:
        for each in (task, other):
            desk.wait_for(each, "running")
        assert lease(desk, task) < 90
        store = open_store(url)
        desk("run", "stop")
        (row,) = store.hosts().values()
        left = (row.lease_until - store.now()) / 1_000_000
        assert row.holder == ""
        assert DAY - 60 < lease(desk, task) < left <= DAY
        desk("cancel", other)  # by this command itself, under the host's lock
        assert lease(desk, task) > DAY - 60
        pid = desk.data("run", "restart")["pid"]
        until(lambda: lease(desk, task) < 90, "a short lease again")
        os.kill(pid, signal.SIGKILL)
        time.sleep(0.2)
        assert lease(desk, task) < 90
        store.close()
    finally:
        assert desk.type("run", "stop", "--agents").returncode == 0
    assert desk.status(task) == "ready"
