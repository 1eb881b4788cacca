"""A queue of work that is ready to land, and landers that die while they land it.

    python landing_process.py

loads everything once, and forks a lander for each line that asks for one, as `named_supervisor` does
for supervisors. The lander, its git and its gates are the real ones; it ends when nothing can go on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from fleet.app import App, preload, supervisor_parts
from fleet.supervisor.landing.lander import Lander

ROOT = Path(__file__).parents[2]  # what `tests` is imported from
READS = frozenset({"trains", "landings", "tasks_by_id", "gate_results", "task", "runs", "landing",
                   "now", "hosts", "events", "look", "read", "busy", "folder"})  # fmt: skip


class Countdown:
    """Kills this process with a real SIGKILL at the so-manieth effect; 0: never.

    `log`: gets the seconds from the start of this process to its first effect.
    """

    def __init__(self, effects: int, log: Path) -> None:
        self._left = effects
        self._log = log
        self._began = time.monotonic()
        self._first = True

    def tick(self) -> None:
        if self._first:
            self._first = False
            with self._log.open("a") as file:
                file.write(f"{time.monotonic() - self._began:.3f}\n")
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


class Deadly:
    """A port: the moments before and after each of its effects count."""

    def __init__(self, port: Any, countdown: Countdown) -> None:
        self._port = port
        self._countdown = countdown

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._port, name)
        return partial(self._call, real) if callable(real) and name not in READS else real

    def _call(self, real: Any, *args: Any, **more: Any) -> Any:
        self._countdown.tick()
        result = real(*args, **more)
        self._countdown.tick()
        return result


def make_lander(app: App, countdown: Countdown) -> Lander:
    supervisor = app.supervisor()
    lander = supervisor_parts.make_lander(app, supervisor)
    parts = replace(
        supervisor.parts,
        store=Deadly(supervisor.parts.store, countdown),
        launcher=Deadly(supervisor.parts.launcher, countdown),
    )
    more = lander._more
    return Lander(
        parts,
        supervisor.here,
        replace(
            more,
            branches=lambda *where: Deadly(more.branches(*where), countdown),
            gate_worktrees=lambda project: Deadly(more.gate_worktrees(project), countdown),
        ),
    )


def land_all(spec: dict[str, Any]) -> int:
    os.environ.clear()
    os.environ.update(spec["env"])
    log = os.open(spec["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(log, number)
    countdown = Countdown(spec["effects"], Path(f"{spec['log']}.began"))
    try:
        app = App(Path(spec["repo"]), spec["env"], listening=True)
        lander = make_lander(app, countdown)
        quiet = 0
        while quiet < 3:
            lander.step()
            quiet = quiet + 1 if lander.idle and not lander.trouble else 0
            time.sleep(0.005)
    except BaseException:
        traceback.print_exc()
        return 70
    return 0


class LanderForker:
    """As the parent sees it: one process that forks landers."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    def start(self, **spec: Any) -> int:
        return self._ask({"start": spec})

    def status(self, pid: int) -> int | None:
        """None while it runs; -9 after a SIGKILL."""
        return self._ask({"ask": pid})

    def _ask(self, what: dict[str, Any]) -> Any:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        with self._process as process:
            assert process.stdin
            process.stdin.close()


def serve() -> None:
    ended: dict[int, int] = {}
    for line in sys.stdin:
        asked = json.loads(line)
        if "start" in asked:
            answer = os.fork()
            if answer == 0:
                os._exit(land_all(asked["start"]))
        else:
            answer = ended.get(asked["ask"])
            pid, status = os.waitpid(asked["ask"], os.WNOHANG) if answer is None else (0, 0)
            if pid:
                answer = ended[pid] = os.waitstatus_to_exitcode(status)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    preload()
    serve()
