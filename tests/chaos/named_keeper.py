"""The real keeper, which dies at a named step. Started by `named_supervisor`, as the real one is."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from fleet import keeper
from tests.chaos.named_steps import KillSwitch, arms_of


class NamedKeeper(keeper.Keeper):
    def __init__(self, folder: str, arms: list) -> None:
        super().__init__(folder)
        run = Path(folder).name
        gate = run.endswith(".gate")
        self.kill_switch = KillSwitch(arms, "gate's keeper" if gate else "keeper", run)
        self.coder = KillSwitch([] if gate else arms, "coder", run)

    def claim(self) -> bool:
        self.kill_switch.reach("before take")
        mine = super().claim()
        self.kill_switch.reach("after take")
        return mine

    def _spawn(self) -> None:
        self.kill_switch.reach("before spawn")
        super()._spawn()
        self.kill_switch.reach("after spawn")
        for arm in self.kill_switch.armed("after begun"):
            self._strike_when(arm, self._has_begun)
        for arm in self.kill_switch.armed("within clean"):
            home = Path(self.launch["env"]["FLEET_HOME"])
            (home / "ask clean").touch()
            self._strike_when(arm, (home / "in clean").exists)

    def _strike_when(self, arm, seen) -> None:
        def look() -> None:
            while not seen():
                time.sleep(0.005)
            self.kill_switch.strike(arm)

        threading.Thread(target=look, daemon=True).start()

    def _has_begun(self) -> bool:
        return b"begun" in Path(self.path("transcript")).read_bytes()

    def _become_coder(self, feed: int, out: int, err: int) -> None:
        self.coder.reach("before exec")
        super()._become_coder(feed, out, err)

    def _feed(self) -> None:
        for arm in (
            self.kill_switch.armed("within feed") if self.pending and self.stdin >= 0 else ()
        ):
            if not Path(arm.token).exists():
                os.write(self.stdin, self.pending[: len(self.pending) // 2])
                self.kill_switch.strike(arm)
        super()._feed()

    def _note(self) -> None:
        if self.done == self.noted:
            return
        self.kill_switch.reach("before note")
        super()._note()
        self.kill_switch.reach("after note")

    def stop(self, grace: float) -> None:
        self.kill_switch.reach("before stop")
        super().stop(grace)
        self.kill_switch.reach("after stop")

    def sweep(self) -> None:
        self.kill_switch.reach("before sweep")
        super().sweep()
        self.kill_switch.reach("after sweep")

    def finish(self) -> None:
        self.kill_switch.reach("before finish")
        super().finish()
        self.kill_switch.reach("after finish")


def main(told: list) -> None:
    """As `fleet.keeper.main`."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    kept = NamedKeeper(sys.argv[1], arms_of(told))
    if kept.claim():
        kept.start()
        keeper._ring(kept.launch.get("bell", ""))
        kept.run()
        kept.sweep()
        kept.finish()
