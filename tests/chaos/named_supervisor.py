"""The real supervisor, which dies at a named step.

    python named_supervisor.py

loads everything once, and forks a supervisor for each line that asks for one: its keepers and
coders are the named ones. Each line of its input is a JSON object, and so is each answer:

    {"start": {"repo": …, "env": …, "log": …, "arms": […]}}  →  {"pid": 4711}
    {"ask": 4711}  →  {"status": null | an exit status, -9 for a SIGKILL}
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from fleet.adapters.coders.plain.scripted import ScriptedCoder
from fleet.adapters.processes.clock import SystemClock
from fleet.adapters.processes.keepers import Keepers
from fleet.app import App, preload
from fleet.app.supervise import Options, supervise
from fleet.base import machine
from fleet.cli.supervisor.report import TerminalReport
from fleet.domain.errors import FleetError
from fleet.domain.run import Host, Progress
from tests.chaos.named_steps import HERE, ROOT, Arm, KillSwitch, arms_of

BOOT = "import sys; sys.path[:0] = {paths!r}; from tests.chaos import named_keeper; named_keeper.main({arms!r})"
METHODS = {"commit": "tip", "finish": "tip"}  # of a checkout; the others are called as they are


class Named:
    """A port. The moments before and after each of its calls have names."""

    def __init__(self, port: Any, kill_switch: KillSwitch) -> None:
        self._port = port
        self._kill_switch = kill_switch

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._port, name)
        if not callable(real):
            return real

        return partial(self._call, name, real)

    def _call(self, name: str, real: Any, *args: Any, **more: Any) -> Any:
        what = self._called(name, *args)
        self._kill_switch.reach(f"before {what}")
        result = real(*args, **more)
        self._kill_switch.reach(f"after {what}{self._about(name, result)}")
        return result

    def _called(self, name: str, *args: Any) -> str:
        return name

    def _about(self, name: str, result: Any) -> str:
        return " lines" if name == "read" and result.lines else ""


class NamedLauncher(Named):
    """`lease`: seconds that are to be left of a keeper's lease when it is renewed."""

    lease = 0.0

    def renew(self, run_ids: Any, *, until: float) -> None:
        left = machine.since_boot() + self.lease if self.lease else until
        self._call("renew", self._port.renew, run_ids, until=left)

    def _called(self, name: str, *args: Any) -> str:
        return f"{name} gate" if args and str(args[0]).endswith(".gate") else name


class NamedCheckout(Named):
    def _called(self, name: str, *args: Any) -> str:
        return METHODS.get(name, name)


class NamedStore(Named):
    """Commits go by what they write. `moved`: a file with the seconds by which its clock is off."""

    moved: Path | None = None

    def now(self) -> int:
        return self._port.now() + shift(self.moved)

    def _called(self, name: str, *args: Any) -> str:
        if name == "claim":
            return "commit claim"
        return f"commit {self._written(*args)}" if name == "commit" else name

    def _written(self, changes: Any, events: Any) -> str:
        facts = {event.type: event.data for event in events}
        first = changes[0].record if changes else None
        if "run.ended" in facts:
            return "settle asked" if facts["run.ended"]["ending"] == "asked" else "settle"
        if "message.heard" in facts:
            return f"heard {first.kind}"
        if facts:
            return next(iter(facts)).removeprefix("run.").replace("claimed", "claim")
        if isinstance(first, Host | Progress):
            return type(first).__name__.lower()
        return "adopt"


class NamedClock(SystemClock):
    """The machine's wall clock can be moved; the time since its boot cannot."""

    def __init__(self, moved: Path | None) -> None:
        self._moved = moved

    def now(self) -> int:
        return super().now() + shift(self._moved)


def shift(moved: Path | None) -> int:
    """In microseconds."""
    if moved is None:
        return 0
    try:
        return int(float(moved.read_text()) * 1_000_000)
    except (FileNotFoundError, ValueError):
        return 0


class NamedKeepers(Keepers):
    """Starts named keepers. A few moments are in the middle of what it does."""

    def __init__(self, app: App, kill_switch: KillSwitch, arms: list[Arm]) -> None:
        root = app.daemon.keep_code()
        super().__init__(app.home.runs, bell=app.home.bell, root=root)
        self._boot = BOOT.format(paths=[str(root), str(ROOT)], arms=[list(a) for a in arms])
        self._kill_switch = kill_switch

    def _order(self, *args: Any) -> dict[str, Any]:
        self._kill_switch.reach("within launch")
        return super()._order(*args)

    def _append(self, run_id: str, record: dict[str, Any], *, key: str = "") -> None:
        if "text" in record and self._kill_switch.armed("within tell"):
            with (self.folder(run_id) / "input").open("a") as file:
                file.write(json.dumps({"n": 99, "key": key, **record})[:-9])
            self._kill_switch.reach("within tell")
        super()._append(run_id, record, key=key)


class NamedCoder(ScriptedCoder):
    def __init__(self, arms: list[Arm]) -> None:
        self._arms = arms

    def launch(self, brief: Any) -> Any:
        real = super().launch(brief)
        python, _, _, *rest = real.argv
        program = str(HERE / "named_coder.py")
        return real._replace(argv=(python, program, json.dumps(self._arms), *rest))


class NamedApp(App):
    def __init__(self, spec: dict[str, Any]) -> None:
        super().__init__(Path(spec["repo"]), spec["env"], listening=True)
        self.arms = arms_of(spec.get("arms", []))
        self.kill_switch = KillSwitch(self.arms, "supervisor")
        self.moved = Path(spec["moved"]) if spec.get("moved") else None
        self.lease = float(spec.get("lease", 0))

    @cached_property
    def keepers(self) -> Keepers:
        return NamedKeepers(self, self.kill_switch, self.arms)

    @cached_property
    def files(self) -> Any:
        return Named(super().files, self.kill_switch)

    def coder(self, name: str, project: str = "") -> Any:
        return NamedCoder(self.arms) if name == "scripted" else super().coder(name, project)

    def checkout(self, project: str) -> Any:
        return NamedCheckout(super().checkout(project), self.kill_switch)

    def supervisor(self, **given: Any) -> Any:
        made = super().supervisor(**given)
        store = NamedStore(self.store, self.kill_switch)
        store.moved = self.moved
        launcher = NamedLauncher(self.keepers, self.kill_switch)
        launcher.lease = self.lease * 2 / 3
        made._parts = replace(
            made._parts,
            store=store,
            launcher=launcher,
            transcripts=launcher,
            clock=NamedClock(self.moved),
        )
        if self.lease:
            made._here = made.here = replace(made.here, lease=round(self.lease))
        self._watch_hooks()
        return made

    def _watch_hooks(self) -> None:
        """A hook of git's, or the set-up, says that it is at work in a file, if one asks for it."""
        for name in ("post-checkout", "post-merge", "set-up"):
            for arm in self.kill_switch.armed(f"within {name}"):
                (self.home.path / f"ask {name}").touch()
                threading.Thread(target=self._when_there, args=[name, arm], daemon=True).start()

    def _when_there(self, name: str, arm: Arm) -> None:
        there = self.home.path / f"in {name}"
        while not there.exists():
            time.sleep(0.002)
        there.unlink()
        self.kill_switch.strike(arm)


def become_supervisor(spec: dict[str, Any]) -> int:
    os.environ.clear()
    os.environ.update(spec["env"])
    os.chdir(spec["repo"])
    log = os.open(spec["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(log, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    options = Options(cwd=spec["repo"], most=spec.get("most", 6))
    try:
        supervise(NamedApp(spec), options, TerminalReport())
    except FleetError as error:
        print(f"fleet: {error.message} ({error.code})", file=sys.stderr, flush=True)
        return error.exit_status
    except BaseException:
        traceback.print_exc()
        return 70
    return 0


class SupervisorForker:
    def __init__(self) -> None:
        self._ended: dict[int, int] = {}
        self._living: set[int] = set()

    def serve(self) -> None:
        for line in sys.stdin:
            asked = json.loads(line)
            answer = {"pid": self._start(asked["start"])} if "start" in asked else self._ask(asked)
            print(json.dumps(answer), flush=True)
        for pid in self._living:
            os.kill(pid, signal.SIGKILL)

    def _start(self, spec: dict[str, Any]) -> int:
        pid = os.fork()
        if pid == 0:
            status = become_supervisor(spec)
            sys.stdout.flush()
            os._exit(status)
        self._living.add(pid)
        self._ended.pop(pid, None)  # of another that had this number before
        return pid

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        while self._living:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                break
            self._living.discard(pid)
            self._ended[pid] = os.waitstatus_to_exitcode(status)
        return {"status": self._ended.get(asked["ask"])}


if __name__ == "__main__":
    preload()
    SupervisorForker().serve()
