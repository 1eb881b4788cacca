"""Runs in real terminals, on a tmux server of their own, and how to look at them from outside."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path

from fleet.adapters.processes.keepers import Keepers
from fleet.adapters.tmux.terminals import Terminals
from fleet.adapters.tmux.tmux import Tmux
from fleet.ports import Launch, ScreenState
from tests.contract.launching import ENV, Rig
from tests.wait import until

RUN = "t-1.1"


class Panes(Rig):
    """A rig whose keepers can start in terminals."""

    def __init__(self, place: Path) -> None:
        super().__init__(place)
        self.tmux = Tmux(place)
        self.terminals = Terminals(self.runs, self.tmux)
        self.keepers = Keepers(self.runs, terminals=self.terminals)

    def program(self, *options: str, title: str = "") -> Launch:
        """The scripted program with a screen; it records what it got."""
        argv = (sys.executable, "-m", "fleet.testing.full_screen", *options)
        argv += ("--record", str(self.place / "record"))
        return Launch(argv, str(self.place), ENV, terminal=True, title=title)

    def in_terminal(self, script: str, **rest) -> Launch:
        return Launch(("sh", "-c", script), str(self.place), ENV, terminal=True, **rest)

    def ready(self, run: str = RUN, *options: str) -> None:
        self.start(run, self.program(*options))
        self.until_state(ScreenState.READY, run)

    def until_state(self, state: ScreenState, run: str = RUN):
        until(lambda: self.terminals.screen(run).state is state, why=f"{run} {state}")

    def got(self, what: str = "prompt") -> list[str]:
        """What the program recorded, of this kind; it may be writing the last line of it."""
        with suppress(FileNotFoundError):
            lines = (self.place / "record").read_text().rpartition("\n")[0].splitlines()
            return [held[what] for line in lines if what in (held := json.loads(line))]
        return []

    def hooks(self, run: str = RUN) -> list[dict]:
        return [json.loads(line) for line in self.said(run).decode().splitlines()]

    def server_pid(self) -> int:
        return int(self.tmux._ask(["display-message", "-p", "#{pid}"]))

    def close(self) -> None:
        super().close()
        with suppress(Exception):
            self.tmux._ask(["kill-server"])
        Path(f"/tmp/tmux-{os.getuid()}", self.tmux.socket).unlink(missing_ok=True)
