"""What a machine has that joins a queue, and whether it works there afterwards."""

from __future__ import annotations

import shlex
import sys
import time
from typing import TYPE_CHECKING

from fleet.adapters.hosts.bundle import TAG
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Refused, Unavailable
from fleet.domain.findings import is_old
from fleet.domain.hosts.state import UP, state_of
from fleet.domain.task import Limits, Spec, TaskState

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.adapters.hosts.shell import HereShell, SshShell
    from fleet.app.app import App

ROW_SECONDS = 60.0  # for its supervisor to write its row
TASK_SECONDS = 60.0  # for the first task to be done there
LEAST_DISK = 1 << 30  # bytes
SKEW = 2.0  # seconds by which its clock may differ before we mention it
OLDEST = {"python": "3.11", "git": "2.38", "tmux": "3.2"}
LOOK = """
for each in python3.14 python3.13 python3.12 python3.11 python3; do
  at=$(command -v "$each") || continue
  version=$("$at" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) || continue
  echo "python $version $at"
done
echo "git $(git --version 2>/dev/null | grep -o '[0-9][0-9.]*' | head -1)"
echo "tmux $(tmux -V 2>/dev/null | grep -o '[0-9][0-9.]*[a-z]*' | head -1)"
echo "disk $(df -Pk "$HOME" | awk 'NR==2 {print $4}')"
echo "clock $(date +%s)"
echo "user $HOME"
"""


class SetUpStep(NamedTuple):
    """`done`: false in a dry run."""

    name: str
    words: str
    done: bool = True


class HostTools(NamedTuple):
    """What a machine has. `lib`: where packages are below an environment of its Python."""

    python: str
    lib: str
    home: str
    tag: str


def look(shell: SshShell | HereShell) -> tuple[HostTools, list[str]]:
    """Raise `Refused` when something is missing there that Fleet cannot do without."""
    began = time.time()
    done = shell(LOOK)
    known: dict[str, str] = {}
    pythons = []
    for line in done.out.splitlines():
        name, _, value = line.partition(" ")
        pythons += [value.split()] if name == "python" else []
        known[name] = value.strip()
    good = [each for each in pythons if not is_old(each[0], OLDEST["python"])]
    _check_has_all(shell.name, known, good)
    python = _best(good)
    notes = [f"Python {python[0]}, git {known['git']}, tmux {known['tmux']}"]
    notes += _warnings(known, began, time.time())
    where = shell(f"{shlex.quote(python[1])} -c {shlex.quote(TAG)}").out.strip()
    lib = f"lib/python{'.'.join(python[0].split('.')[:2])}/site-packages"
    return HostTools(python[1], lib, known["user"], where), notes


def _check_has_all(name: str, known: dict[str, str], pythons: list[list[str]]) -> None:
    missing = [] if pythons else [f"Python {OLDEST['python']} or newer"]
    missing += [
        f"{program} {OLDEST[program]} or newer"
        for program in ("git", "tmux")
        if not known.get(program) or is_old(known[program], OLDEST[program])
    ]
    if missing:
        raise Refused(
            f"{name} lacks {', '.join(missing)}.",
            fix="Install it there, then repeat this command.",
            code="host_lacks",
        )


def _best(pythons: list[list[str]]) -> list[str]:
    """The one that can run what is compiled here, else the newest."""
    own = f"{sys.version_info[0]}.{sys.version_info[1]}."
    return next((each for each in pythons if each[0].startswith(own)), pythons[0])


def _warnings(known: dict[str, str], before: float, after: float) -> Iterator[str]:
    free = int(known.get("disk") or 0) * 1024
    if free < LEAST_DISK:
        yield f"only {free / 1e9:.1f} GB are free there"
    clock = float(known.get("clock") or 0)
    skew = before - clock if clock < before else clock - after
    if skew > SKEW + 1:
        yield f"its clock is {skew:.0f} s off"


def wait_for_row(app: App, host: str, where: str) -> float:
    """The seconds until its supervisor has written to the store. `where`: its log is."""
    began = time.monotonic()
    while time.monotonic() - began < ROW_SECONDS:
        row = app.store.hosts().get(host)
        if row is not None and state_of(row, now=app.store.now()) in UP:
            return time.monotonic() - began
        app.store.wait(0.5)
    raise Unavailable(
        f"{host} has not written to the store within {ROW_SECONDS:.0f} s.",
        fix=f"Its log is on {where}, in logs/supervisor.log of its home.",
        code="no_row",
    )


def try_host(app: App, host: str) -> str:
    """Run a task there that needs no project and no model."""
    from fleet.operations.catalogue import perform
    from fleet.operations.tasks.change import AddTask

    spec = Spec(coder="scripted", in_place=True, cwd="/", limits=Limits(needs=(host,)))
    task = perform(app.context, AddTask(f"Try {host}", "say It works.", "/", spec)).id
    until = time.monotonic() + TASK_SECONDS
    while time.monotonic() < until:
        row = app.store.task(task)
        if row.state is TaskState.DONE:
            return f"{task} is done there"
        if row.state is TaskState.FAILED:
            break
        app.store.wait(0.5)
    raise Unavailable(
        f"{task}, which was to try {host}, is not done. {row.tally.why}".strip(),
        fix=f"`fleet show {task}` says more.",
        code="not_tried",
    )
