"""`fleet create` and its kin, typed by a person, with a real program at a scripted model."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING

from fleet.adapters.tmux.terminals import Terminals
from fleet.adapters.tmux.tmux import Tmux
from fleet.ports import ScreenState
from tests.real.model_scratch import FLEET, ModelScratch
from tests.real.terminal_world import at_home
from tests.wait import LIMIT, until

if TYPE_CHECKING:
    from pathlib import Path

RUN = "t-1.1"


class TerminalScratch(ModelScratch):
    """One agent, on the branch `seat`."""

    def __init__(self, coder: str, place: Path, script) -> None:
        super().__init__(coder, place, script)
        at_home(coder, place / "home", self.repo)
        fleet = place / "fleet"
        self.terminals = Terminals(fleet / "runs", Tmux(fleet))

    def __exit__(self, *error) -> None:
        try:
            subprocess.run(
                [FLEET, "kill", "seat", "--force"],
                cwd=self.repo, env=self.env, capture_output=True, timeout=2 * LIMIT, check=False,
            )  # fmt: skip
        finally:
            self.tmux("kill-server", check=False)
            super().__exit__(*error)

    def tmux(self, *words: str, check: bool = True) -> None:
        """As somebody who sits at the agent's terminal."""
        argv = ["tmux", "-L", self.terminals.tmux.socket, *words]
        subprocess.run(argv, check=check, capture_output=True, timeout=20)

    def key(self, *names: str) -> None:
        pane = json.loads((self.place / "fleet" / "runs" / RUN / "keeper.json").read_text())["pane"]
        self.tmux("send-keys", "-t", pane, *names)

    def answer(self, key: str) -> None:
        """Until it is taken: a dialog is told of before it is drawn, and takes no keys at first."""
        end = time.monotonic() + 30
        while self.terminals.screen(RUN).state is not ScreenState.WANTS:
            assert time.monotonic() < end, self.shown()
            time.sleep(0.1)
        while self.terminals.screen(RUN).state is ScreenState.WANTS:
            assert time.monotonic() < end, self.shown()
            self.key(key)
            time.sleep(0.5)

    def interrupt(self, times: int) -> None:
        for _ in range(times):
            time.sleep(0.5)
            self.key("Escape")

    def typing(self, *words: str) -> subprocess.Popen[bytes]:
        """In another window."""
        return subprocess.Popen([FLEET, *words], cwd=self.repo, env=self.env)

    def refused(self, *words: str) -> str:
        ran = subprocess.run(
            [FLEET, *words],
            cwd=self.repo, env=self.env, capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip
        assert ran.returncode == 1, ran.stdout + ran.stderr
        return ran.stderr

    def agent(self) -> dict:
        (found,) = self.data("list")
        return found

    def until_doing(self, doing: str) -> dict:
        until(lambda: self.agent()["doing"] == doing, why=lambda: f"{self.agent()}\n{self.shown()}")
        return self.agent()

    def story(self) -> str:
        return self.shown()

    def shown(self) -> str:
        return self.terminals.screen(RUN).text
