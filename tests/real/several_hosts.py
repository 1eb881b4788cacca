"""Several hosts on one PostgreSQL: each with a home and a clone of its own, on this machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.base import machine
from tests.e2e.scratch import Scratch
from tests.wait import LIMIT, until

if TYPE_CHECKING:
    from pathlib import Path

LEASE = 20  # the shortest that the settings allow


class RealHost(Scratch):
    """`clone`: of which repository it has a clone; else it has one of its own."""

    def __init__(self, root: Path, url: str, *, clone: Path | None = None) -> None:
        super().__init__(root)
        self.env |= {"FLEET_STORE_URL": url, "FLEET_STORE_LEASE": str(LEASE)}
        # Repositories that were made in the same second would else have the same first commit.
        self.git("commit", "-q", "--amend", "--allow-empty", "-m", f"Begin {root}")
        if clone is not None:
            shutil.rmtree(self.repo)
            self.git("clone", "-q", str(clone), str(self.repo), cwd=root)
        self.log = root / "supervisor.log"
        self.process: subprocess.Popen | None = None

    def supervise(self, *words: str, cwd: Path | None = None) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [f"{self.env['PATH'].split(':')[0]}/fleet", "run", *words],
                cwd=cwd or self.repo,
                env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        until(lambda: "Supervising" in self.log.read_text(), why=self.log.read_text)

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(number)
            self.process.wait(LIMIT)
            self.process = None

    def kill_all(self) -> None:
        """As when the power goes: the supervisor, its keepers and their coders."""
        self.end(signal.SIGKILL)
        self.kill_keepers()

    def kill_keepers(self) -> None:
        for file in self.home.glob("runs/*/keeper.json"):
            record = json.loads(file.read_text())
            pids = machine.marked(record["mark"]) if record.get("mark") else set()
            for pid in {record.get("pid", 0), *pids} - {0}:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    @property
    def host_id(self) -> str:
        return (self.home / "host").read_text().strip()
