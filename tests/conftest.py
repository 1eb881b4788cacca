from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.postgres import private_postgres


def pytest_configure() -> None:
    """Tests send signals to the programs they start, also under `nohup` or a script's `make test &`.

    Those ignore SIGHUP, or SIGINT and SIGQUIT, and every child would inherit that. A signal that is
    caught is not ignored by children, and does not end us either.
    """
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


class FailuresAtOnce:
    """Name each test when it fails, and not after all others."""

    def __init__(self, terminal) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report) -> None:
        if report.failed:
            self._terminal.ensure_newline()
            self._terminal.write_line(f"FAILED {report.nodeid} ({report.when})")


def pytest_sessionstart(session) -> None:
    if not hasattr(session.config, "workerinput"):
        terminal = session.config.pluginmanager.getplugin("terminalreporter")
        session.config.pluginmanager.register(FailuresAtOnce(terminal))


@pytest.fixture(scope="session")
def postgres_server():
    with private_postgres() as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server, request):
    """A database of its own for each test."""
    import psycopg

    name = f"t{abs(hash(request.node.nodeid)):x}"
    with psycopg.connect(postgres_server, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    return postgres_server.replace("/postgres?", f"/{name}?")


def pytest_sessionfinish(session) -> None:
    """Servers of terminals outlive their last session; those of this very run are ended."""
    mark = os.environ.get("FLEET_CI_MARK", "")
    if not mark or hasattr(session.config, "workerinput"):
        return
    for file in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError, ProcessLookupError):
            ours = f"FLEET_CI_MARK={mark}".encode() in file.read_bytes().split(b"\0")
            if ours and (file.parent / "comm").read_text().startswith("tmux"):
                os.kill(int(file.parent.name), signal.SIGTERM)
