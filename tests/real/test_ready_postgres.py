"""`/ready` and `/health` over a PostgreSQL that stalls, goes away and comes back."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.postgres import private_postgres
from tests.wait import until

pytestmark = pytest.mark.real


@pytest.fixture
def postgres():
    with private_postgres() as url:
        yield url


def processes(url: str) -> list[int]:
    """The postmaster and its children."""
    first = int(
        (Path(url.partition("host=")[2]) / "data" / "postmaster.pid").read_text().split()[0]
    )
    found = [first]
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == first:
            found.append(int(stat.parent.name))
    return found


def send(number: signal.Signals, pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):  # a worker of PostgreSQL that has just ended
            os.kill(pid, number)


def test_a_postgres_that_stalls_makes_it_unready_and_the_server_stays_alive(tmp_path, postgres):
    served = Served(Scratch(tmp_path), "--no-run", env={"FLEET_STORE_URL": postgres})
    stopped = []
    try:
        assert served.ask("GET", "/health")[1]["persistence"] == "postgresql"
        assert served.ask("GET", "/ready")[0] == 200
        stopped = processes(postgres)
        send(signal.SIGSTOP, stopped)
        until(lambda: served.ask("GET", "/ready")[0] == 503, "it to be unready")
        assert "did not answer" in served.ask("GET", "/ready")[1]["detail"]
        status, health = served.ask("GET", "/health")
        assert (status, health["status"]) == (200, "degraded")
        send(signal.SIGCONT, stopped)
        until(lambda: served.ask("GET", "/ready")[0] == 200, "it to be ready again")
    finally:
        send(signal.SIGCONT, stopped)
        served.end()


def test_a_postgres_that_is_gone_makes_it_unready(tmp_path):
    with private_postgres() as url:
        served = Served(Scratch(tmp_path), "--no-run", env={"FLEET_STORE_URL": url})
        assert served.ask("GET", "/ready")[0] == 200
    try:
        until(lambda: served.ask("GET", "/ready")[0] == 503, "it to be unready")
        assert "store" in served.ask("GET", "/ready")[1]["problems"]
        assert "host=" not in str(served.ask("GET", "/ready")[1])
        until(lambda: served.ask("GET", "/health")[1]["status"] == "degraded", "its health")
    finally:
        served.end()
