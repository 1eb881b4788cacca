"""Real coders under real keepers, and how to look at them from outside."""

from __future__ import annotations

import json
import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path

from fleet.adapters.processes.keepers import Keepers
from fleet.base import machine
from fleet.ports import Launch, Presence
from tests.wait import LIMIT, until

ENV = {"PATH": os.environ.get("PATH", os.defpath), "HOME": "/"}


def shell(script: str, cwd: Path | str = "/", **rest) -> Launch:
    return Launch(("sh", "-c", script), str(cwd), ENV, **rest)


def python(script: str, cwd: Path | str = "/", **rest) -> Launch:
    return Launch((sys.executable, "-I", "-S", "-c", script), str(cwd), ENV, **rest)


def sleeps(pid: int) -> bool:
    """Whether it has nothing to do but wait."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"S"


def is_alive(pid: int) -> bool:
    """Not so when it is dead and only not waited for yet."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not machine.is_zombie(pid)


def pid_in(file: Path) -> int:
    return int(until(lambda: file.exists() and file.read_text().strip(), why=f"a pid in {file}"))


class Rig:
    """Keepers in a folder of their own. What they leave is ended, run by run."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.runs = place / "runs"
        self.keepers = Keepers(self.runs)
        self.pids: list[int] = []

    def file(self, run: str, name: str) -> Path:
        return self.runs / run / name

    def start(self, run: str, launch: Launch) -> None:
        self.keepers.launch(run, launch)
        self.seen(run)

    def seen(self, run: str) -> None:
        until(lambda: self.keepers.look(run).presence is not Presence.NEVER, why=f"{run} started")

    def ended(self, run: str):
        """How it ended, once it has."""
        until(lambda: self.keepers.look(run).presence is Presence.EXITED, f"the end of {run}")
        return self.keepers.look(run)

    def said(self, run: str) -> bytes:
        with suppress(FileNotFoundError):
            return self.file(run, "transcript").read_bytes()
        return b""

    def keeper(self, run: str) -> int:
        return int(json.loads(self.file(run, "keeper.json").read_text())["pid"])

    def mark(self, run: str) -> str:
        return str(json.loads(self.file(run, "keeper.json").read_text())["mark"])

    def pid(self, name: str) -> int:
        """A pid that a coder wrote to this file of ours; it is ended with the rig, if need be."""
        pid = pid_in(self.place / name)
        self.pids.append(pid)
        return pid

    def note(self, name: str) -> str:
        return shlex.quote(str(self.place / name))

    def close(self) -> None:
        for run in (file.parent.name for file in sorted(self.runs.glob("*/launch.json"))):
            until(
                lambda run=run: self.keepers.end(run) or not machine.can_prove(), f"its end: {run}"
            )
        for process in self.keepers._spawned.values():
            process.wait(LIMIT)
        for pid in self.pids:
            with suppress(ProcessLookupError):
                os.kill(pid, 9)
