"""A PostgreSQL that stops in the middle: nobody waits for it but those who need it, and not for long."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.integration.listeners import Sse
from tests.postgres import private_postgres
from tests.wait import until

pytestmark = pytest.mark.real


@pytest.fixture
def postgres():
    with private_postgres() as url:
        yield url


@pytest.fixture
def served(tmp_path, postgres):
    made = Served(Scratch(tmp_path), "--no-run", env={"FLEET_STORE_URL": postgres})
    made.scratch.env = made.env
    yield made
    made.end()


@contextlib.contextmanager
def stopped(url: str):
    """The server, and then all that it has started."""
    data = Path(url.partition("host=")[2]) / "data"
    pids = [int((data / "postmaster.pid").read_text().split()[0])]
    os.kill(pids[0], signal.SIGSTOP)
    words = ["pgrep", "-P", str(pids[0])]
    pids += map(int, subprocess.run(words, capture_output=True, check=True).stdout.split())
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def titles(served, token: str) -> list[str]:
    return [t["title"] for t in served.ask("GET", "/v1/task/list", token=token)[1]["data"]]


def test_a_stalled_store_stalls_nobody_else_and_loses_and_doubles_nothing(served, postgres):
    token = served.token()
    assert served.ask("POST", "/v1/task/add", {"title": "Before"}, token=token)[0] == 201
    stream = Sse(served.port, token)
    assert stream.next()[0] == "ready"
    key = {"Idempotency-Key": "one"}
    with stopped(postgres):
        lines = [
            subprocess.Popen(
                ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", *words, "-H", f"Authorization: Bearer {token}"],
                stdout=subprocess.PIPE, text=True,
            )
            for words in (
                [f"{served.url}/v1/task/list"],
                [f"{served.url}/v1/task/add", "-d", '{"title": "Within"}', "-H", "Idempotency-Key: one",
                 "-H", "Content-Type: application/json"],
            )
        ]  # fmt: skip
        while any(line.poll() is None for line in lines):
            began = time.monotonic()
            assert served.ask("GET", "/health")[0] == 200
            assert time.monotonic() - began < 3, "somebody else waited"
            time.sleep(0.2)  # not to take the processor from those who are waited for
        assert [line.communicate()[0] for line in lines] == ["503", "503"]
    until(lambda: served.ask("GET", "/v1/task/list", token=token)[0] == 200, served.said)

    def again():
        return served.ask("POST", "/v1/task/add", {"title": "Within"}, token=token, headers=key)

    until(lambda: again()[0] == 201, served.said)
    assert titles(served, token) == ["Within", "Before"]
    until(lambda: stream.next()[0] == "task.added")  # of the one that was added within
    stream.close()
    assert "Traceback" not in served.said(), served.said()


def test_where_the_store_is_stays_with_who_runs_the_server(tmp_path):
    with private_postgres() as url:
        served = Served(Scratch(tmp_path), env={"FLEET_STORE_URL": url})
        served.scratch.env = served.env
        token = served.token()
        until(lambda: "Supervising" in served.said(), served.said)
        assert served.ask("GET", "/v1/task/list", token=token)[0] == 200
    folder = url.partition("host=")[2]

    def refused() -> str:
        status, _, text = served.raw("GET", "/v1/task/list", token=token)
        return text if status == 503 else ""

    text = until(refused, served.said)
    assert folder not in text
    assert "cannot be reached" in text or "did not answer" in text
    until(lambda: folder in served.said(), served.said)  # who runs it is told
    log = until(lambda: list((tmp_path / "home" / "logs").glob("*.jsonl")))
    warned = [line for line in log[0].read_text().splitlines() if "supervisor.warned" in line]
    assert not any(folder in line for line in warned), warned
    served.end()
