"""The whole path in a scratch repository: queue, run in parallel, fail, ask, answer, build on."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fleet.cli.frame import command, wants_json
from fleet.cli.render import Column, Result, Stack, Table, Text, say

if TYPE_CHECKING:
    from fleet.cli.view import View
    from fleet.client import Client
    from fleet.operations.views import TaskDetail, TaskRow

DEADLINE = 60.0
ANSWER = "MIT"
TASKS: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "Read prices from a file",
        (),
        (
            "say Reading the code.\nsleep 0.8\nwrite prices.py PRICES = {'tea': 3, 'cake': 4}\n"
            "usage 1800 60\nsleep 0.6\ncommit Read prices from a file"
        ),
    ),
    (
        "Add up a bill",
        (),
        (
            "say Reading the code.\nsleep 0.7\nfail 1 the model server went away\n"
            "write bill.py def total(items, prices): return sum(prices[i] for i in items)\n"
            "usage 2100 90\nsleep 0.5\ncommit Add up a bill"
        ),
    ),
    (
        "Choose a licence",
        (),
        (
            "sleep 0.5\nask Which licence shall this have?\nwrite LICENSE {answer}\n"
            "usage 700 20\ncommit Choose a licence"
        ),
    ),
    (
        "Print a bill",
        ("t-1", "t-2"),
        (
            "run cat prices.py bill.py\nsleep 0.6\n"
            "write main.py from bill import total\\nfrom prices import PRICES\\n"
            "print(total(['tea', 'cake'], PRICES))\nrun python3 main.py\nusage 3900 110\n"
            "sleep 0.4\ncommit Print a bill"
        ),
    ),
    (
        "Write the README",
        ("t-3", "t-4"),
        (
            "run cat LICENSE main.py\nsleep 0.5\nwrite README.md Run main.py.\n"
            "usage 4200 80\ncommit Write the README"
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Scratch:
    root: Path

    @property
    def repo(self) -> Path:
        return self.root / "shop"

    @property
    def home(self) -> Path:
        return self.root / "home"

    def env(self) -> dict[str, str]:
        """Nothing of the user's settings, and quick retries."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("FLEET_", "GIT_"))}
        return env | {
            "FLEET_HOME": str(self.home),
            "FLEET_CODER": "scripted",
            "FLEET_RUN_BACKOFF": "0.5",
        }

    def git(self, *args: str) -> str:
        who = ("-c", "user.name=demo", "-c", "user.email=demo@localhost")
        argv = ["git", *who, *args]
        done = subprocess.run(
            argv, cwd=self.repo, env=self.env(), check=True, capture_output=True, text=True
        )
        return done.stdout

    def fleet(self, *args: str) -> None:
        """A public command, as a person would type it."""
        _note("$ fleet " + shlex.join(args).replace("\n", "; ")[:100])
        argv = [sys.executable, "-m", "fleet", *args]
        subprocess.run(
            argv, cwd=self.repo, env=self.env(), check=True, stdout=sys.stderr, stderr=sys.stderr
        )


@command()
@click.option("--keep", is_flag=True, help="Keep the scratch repository and its home.")
def demo(keep: bool) -> Result:  # noqa: FBT001  # click passes by name
    """Run the whole path in a scratch repository, with a built-in coder and no model."""
    scratch = Scratch(Path(tempfile.mkdtemp(prefix="fleet-demo-")).resolve())
    started = time.monotonic()
    try:
        _make_repo(scratch)
        details = _run(scratch)
        _check(scratch, details)
        return _story(scratch, details, time.monotonic() - started, keep=keep)
    finally:
        if not keep:
            shutil.rmtree(scratch.root, ignore_errors=True)


def _make_repo(scratch: Scratch) -> None:
    scratch.repo.mkdir()
    scratch.git("init", "--quiet", "--initial-branch=main")
    (scratch.repo / "shop.md").write_text("A shop that sells tea and cake.\n")
    scratch.git("add", ".")
    scratch.git("commit", "--quiet", "-m", "A shop")
    _note(f"A scratch repository: {scratch.repo}")


def _run(scratch: Scratch) -> list[TaskDetail]:
    from fleet.bootstrap import App
    from fleet.client import Client
    from fleet.operations.tasks import ShowTask

    _note("$ fleet run &")
    with (scratch.root / "supervisor.log").open("wb") as log:
        argv = [sys.executable, "-m", "fleet", "run", "--max", "4"]
        supervisor = subprocess.Popen(
            argv, cwd=scratch.repo, env=scratch.env(), stdout=log, stderr=log
        )
    client = Client(App(scratch.repo, scratch.env()))
    try:
        for title, after, script in TASKS:
            waits = [word for need in after for word in ("--after", need)]
            scratch.fleet("add", title, *waits, "--prompt", script)
        ids = [t.id for t in _watch(client, scratch)]
        return [client.call(ShowTask(i)) for i in ids]
    finally:
        _stop(client, supervisor)


def _watch(client: Client, scratch: Scratch) -> list[TaskRow]:
    """Show what happens while it happens, and answer what is asked."""
    from fleet.cli.live import Live
    from fleet.domain.errors import Unavailable
    from fleet.operations.messages import ListQuestions
    from fleet.operations.tasks import ListTasks

    until = time.monotonic() + DEADLINE
    with Live() as live:
        while True:
            rows: tuple[TaskRow, ...] = client.call(ListTasks(all=True))
            found = sorted(rows, key=lambda t: t.created_at)
            if not wants_json():
                now = client.app.store.now()
                live.update(_table(found, now) if live.redraws else _plain_table(found))
            if all(t.status in {"done", "failed"} for t in found):
                return found
            for question in client.call(ListQuestions()):
                time.sleep(0.5)  # a person reads it first
                live.drawn = []  # what follows is printed below the table, which is drawn anew
                _note(f"{question.task} asks: {question.text}")
                scratch.fleet("answer", question.task, ANSWER)
            if time.monotonic() > until:
                raise Unavailable(
                    f"The demo did not end within {DEADLINE:.0f} s.",
                    fix=f"Its supervisor's log: {scratch.root / 'supervisor.log'} (with --keep).",
                )
            client.app.store.wait(0.2)


def _table(found: list[TaskRow], now: int) -> View:
    from fleet.cli.task_views import TASK_COLUMNS, task_cells

    shown = [c for c in TASK_COLUMNS if _name(c) not in {"cwd", "model", "cost"}]
    keep = [n for n, c in enumerate(TASK_COLUMNS) if c in shown]
    return Table(shown, [[task_cells(t, now)[n] for n in keep] for t in found])


def _plain_table(found: list[TaskRow]) -> View:
    """Into a pipe: only what changes for good."""
    return Table(("task", "status", "title"), [(t.id, t.status, t.title) for t in found])


def _name(column: Column | str) -> str:
    return column if isinstance(column, str) else column.title


def _stop(client: Client, supervisor: subprocess.Popen[bytes]) -> None:
    """Leave no process: the supervisor, and any run that an error left going."""
    supervisor.terminate()
    supervisor.wait(timeout=20)
    for run in client.app.store.live_runs():
        until = time.monotonic() + 10
        while not client.app.keepers.end(run.id) and time.monotonic() < until:
            time.sleep(0.05)


def _check(scratch: Scratch, details: list[TaskDetail]) -> None:
    """The demo is a test too: it fails when the system did not do what it shows."""
    from fleet.domain.errors import Refused

    wrong = [f"{d.task.id} is {d.task.status}: {d.why}" for d in details if d.task.status != "done"]
    endings = [[r.ending for r in d.runs] for d in details]
    if endings[1] != ["failed", "succeeded"]:
        wrong.append(f"t-2 should have failed once, but its runs {endings[1]}")
    if endings[2] != ["asked", "succeeded"]:
        wrong.append(f"t-3 should have asked once, but its runs {endings[2]}")
    files = set(scratch.git("ls-tree", "--name-only", details[4].runs[-1].branch).split())
    lacking = {"prices.py", "bill.py", "main.py", "LICENSE", "README.md"} - files
    if lacking:
        wrong.append(f"the last branch lacks {', '.join(sorted(lacking))}")
    if wrong:
        raise Refused("The demo went wrong: " + "; ".join(wrong), code="demo_failed")


def _story(scratch: Scratch, details: list[TaskDetail], took: float, *, keep: bool) -> Result:
    rows = [
        (d.task.id, d.task.title, " → ".join(r.ending for r in d.runs), d.runs[-1].branch)
        for d in details
    ]
    last = details[-1].runs[-1].branch
    log = scratch.git("log", "--oneline", "--graph", last)
    data = {
        "seconds": round(took, 1),
        "repository": str(scratch.repo),
        "home": str(scratch.home),
        "kept": keep,
        "tasks": details,
    }
    columns = ("task", "title", "runs", "branch")
    view = Stack(
        (
            (f"Five tasks in {took:.1f} s", Table(columns, rows)),
            (f"What {last} was built from", Text(log.rstrip())),
            ("Where it is", Text(_places(scratch, keep=keep))),
            ("Try next", Text(_next(scratch, keep=keep))),
        )
    )
    return Result("demo", data, view)


def _places(scratch: Scratch, *, keep: bool) -> str:
    lines = [
        f"branches      git -C {scratch.repo} branch",
        f"worktrees     {scratch.home}/worktrees",
        f"transcripts   {scratch.home}/runs/<run>/transcript",
    ]
    if not keep:
        lines.append("(removed again; `fleet demo --keep` keeps all of it)")
    return "\n".join(lines)


def _next(scratch: Scratch, *, keep: bool) -> str:
    if keep:
        home = f"FLEET_HOME={scratch.home}"
        return f"{home} fleet show t-2\n{home} fleet logs t-4\n{home} fleet tasks --all"
    return 'fleet init\nfleet add "Fix the login" --prompt "…"\nfleet run'


def _note(text: str) -> None:
    say(text, "dim")
