"""PostgreSQL: a supervisor that is stopped leaves its agents a day; one that is killed does not."""

from __future__ import annotations

import os
import signal
import time

import pytest

from fleet.app import open_store
from fleet.base.machine import since_boot
from tests.e2e.scratch import Scratch
from tests.postgres import private_postgres
from tests.wait import until

pytestmark = pytest.mark.real
DAY = 24 * 3600


@pytest.fixture(scope="module")
def url():
    with private_postgres() as found:
        yield found


def lease(scratch, task: str) -> float:
    """Seconds that the keeper gives its coder."""
    return float((scratch.home / "runs" / f"{task}.1" / "lease").read_text()) - since_boot()


def test_stopping_extends_the_lease_before_nobody_renews_it(url, tmp_path):
    scratch = Scratch(tmp_path)
    scratch.env["FLEET_STORE_URL"] = url
    task, other = (
        scratch.add("First", script="say begun\nsleep 60"),
        scratch.add("Second", script="sleep 60"),
    )
    pid = scratch.data("run", "start")["pid"]
    try:
        for each in (task, other):
            scratch.wait_for(each, "running")
        assert lease(scratch, task) < 300
        store = open_store(url)
        scratch("run", "stop")
        (row,) = store.hosts().values()
        left = (row.lease_until - store.now()) / 1_000_000
        assert row.holder == ""
        assert DAY - 60 < lease(scratch, task) < left <= DAY
        scratch("cancel", other)  # by this command itself, under the host's lock
        assert lease(scratch, task) > DAY - 60
        pid = scratch.data("run", "restart")["pid"]
        until(lambda: lease(scratch, task) < 300, "a short lease again")
        os.kill(pid, signal.SIGKILL)
        time.sleep(0.2)
        assert lease(scratch, task) < 300
        store.close()
    finally:
        assert scratch.type("run", "stop", "--agents").returncode == 0
    assert scratch.status(task) == "ready"
