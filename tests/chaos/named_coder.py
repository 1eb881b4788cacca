"""The scripted coder, which dies at a named step, and keeps a ledger of every line it has said.

    python named_coder.py ARMS [--resume SESSION]

With a file `lingers` in its task's folder it ends when its input does, as some programs do.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # a run's environment names no path

from fleet.testing import scripted
from tests.chaos.named_steps import KillSwitch, arms_of


class Tongue:
    """Its standard output."""

    def __init__(self, kill_switch: KillSwitch, ledger: Path) -> None:
        self._out = sys.stdout
        self._kill_switch = kill_switch
        self._ledger = ledger

    def write(self, line: str) -> None:
        kind = json.loads(line)["kind"]
        self._kill_switch.reach("before saying")
        half = len(line) // 2
        self._say(line[:half])
        self._kill_switch.reach(f"within {kind}")
        self._say(line[half:])
        with self._ledger.open("a") as ledger:
            ledger.write(line)
        self._kill_switch.reach(f"after {kind}")
        if kind == "tool":
            for arm in self._kill_switch.armed("during tool"):
                threading.Timer(0.05, self._kill_switch.strike, [arm]).start()

    def _say(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def flush(self) -> None:
        """Every line has been."""


def main() -> int:
    run, folder = os.environ["FLEET_RUN_ID"], Path(os.environ["FLEET_TASK_DIR"])
    kill_switch = KillSwitch(arms_of(json.loads(sys.argv[1])), "coder", run)
    sys.stdout = Tongue(kill_switch, folder / f"ledger {run}")
    prompt = scripted._prompt()
    if not prompt or prompt.startswith('{"prompt"'):
        return 1  # its keeper died before it had told all
    resume = "--resume" in sys.argv
    status = scripted.ScriptedAgent(folder / "scripted.json", prompt, resume=resume).work()
    if (folder / "lingers").exists():
        while os.read(0, 1):
            pass
    return status


if __name__ == "__main__":
    sys.exit(main())
