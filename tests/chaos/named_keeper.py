"""The real keeper, which dies at a named step. Started by `named_supervisor`, as the real one is."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

from named_steps import Blade, arms_of

from fleet import keeper


class NamedKeeper(keeper.Keeper):
    def __init__(self, folder: str, arms: list) -> None:
        super().__init__(folder)
        run = Path(folder).name
        gate = run.endswith(".gate")
        self.blade = Blade(arms, "gate's keeper" if gate else "keeper", run)
        self.coder = Blade([] if gate else arms, "coder", run)

    def claim(self) -> bool:
        self.blade.reach("before take")
        mine = super().claim()
        self.blade.reach("after take")
        return mine

    def _spawn(self) -> None:
        self.blade.reach("before spawn")
        super()._spawn()
        self.blade.reach("after spawn")
        for arm in self.blade.armed("after begun"):
            self._strike_when(arm, self._has_begun)
        for arm in self.blade.armed("within clean"):
            home = Path(self.launch["env"]["FLEET_HOME"])
            (home / "ask clean").touch()
            self._strike_when(arm, (home / "in clean").exists)

    def _strike_when(self, arm, seen) -> None:
        def look() -> None:
            while not seen():
                time.sleep(0.005)
            self.blade.strike(arm)

        threading.Thread(target=look, daemon=True).start()

    def _has_begun(self) -> bool:
        return b"begun" in Path(self.path("transcript")).read_bytes()

    def _become_coder(self, feed: int, out: int, err: int) -> None:
        self.coder.reach("before exec")
        super()._become_coder(feed, out, err)

    def _feed(self) -> None:
        for arm in self.blade.armed("within feed") if self.pending and self.stdin >= 0 else ():
            if not Path(arm.token).exists():
                os.write(self.stdin, self.pending[: len(self.pending) // 2])
                self.blade.strike(arm)
        super()._feed()

    def _note(self) -> None:
        if self.done == self.noted:
            return
        self.blade.reach("before note")
        super()._note()
        self.blade.reach("after note")

    def stop(self, grace: float) -> None:
        self.blade.reach("before stop")
        super().stop(grace)
        self.blade.reach("after stop")

    def sweep(self) -> None:
        self.blade.reach("before sweep")
        super().sweep()
        self.blade.reach("after sweep")

    def finish(self) -> None:
        self.blade.reach("before finish")
        super().finish()
        self.blade.reach("after finish")


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
