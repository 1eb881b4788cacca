"""The whole path in a scratch repository: queue, run in parallel, fail, ask, answer, build on."""

from __future__ import annotations

import shlex
import signal
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, NoReturn

import click

from fleet.cli.terminal.frame import command, wants_json
from fleet.cli.terminal.render import Column, Result, Stack, Table, Text
from fleet.domain.errors import Refused, Unavailable
from fleet.domain.event import Kind

if TYPE_CHECKING:
    import subprocess
    from types import FrameType

    from fleet.cli.demo.scratch import Scratch
    from fleet.cli.terminal.live import Live
    from fleet.cli.terminal.view import View
    from fleet.client import LocalClient
    from fleet.domain.event import Event
    from fleet.operations.tasks.rows import TaskRow
    from fleet.operations.tasks.show import TaskDetail

DEMO_SECONDS = 60.0
READING = 1.0  # seconds that a question stands before it is answered: a person reads it first


@command()
@click.option("--keep", is_flag=True, help="Keep the scratch repository and its home.")
@click.option(
    "--compute", is_flag=True, help="Show three agents on three nodes, through the gateway."
)
@click.option("--ui", is_flag=True, help="Show the dashboard of a shop at work, until Ctrl-C.")
@click.option("--no-open", is_flag=True, help="With --ui: print the address, open no browser.")
def demo(*, keep: bool, compute: bool, ui: bool, no_open: bool) -> Result:
    """Run a demo in a scratch repository, with a built-in coder and no model.

    With --ui, tasks in every state, two simulated nodes and a landing queue go on until Ctrl-C, and
    the dashboard that shows them opens in the browser.

    With --compute, a planner, an implementer and a reviewer work on one Claude Code task, each on a
    node of its own, as the nodes' logs prove. The nodes are simulated on this machine; the gateway,
    the relay and Claude Code (if it is on PATH) are real.
    """
    from fleet.cli.demo.scratch import Scratch

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)  # else they would end us before we have cleaned up
    if compute:
        from fleet.cli.demo.compute import demo_compute

        return demo_compute(keep=keep)
    if ui:
        from fleet.cli.demo.dashboard import demo_ui

        return demo_ui(keep=keep, browse=not no_open)
    scratch = Scratch.make()
    started = time.monotonic()
    try:
        scratch.fill()
        details = _play(scratch)
        _check(scratch, details)
        return _story(scratch, details, time.monotonic() - started, keep=keep)
    finally:
        if not keep:
            scratch.remove()


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _play(scratch: Scratch) -> list[TaskDetail]:
    from fleet.app import App
    from fleet.cli.demo.scratch import stop
    from fleet.cli.terminal.live import Live
    from fleet.client import LocalClient
    from fleet.operations.tasks.show import ShowTask

    client = LocalClient(App(scratch.repo, scratch.env()))
    client.now()  # it is made before anyone else opens it
    supervisor = scratch.supervise()
    try:
        with nullcontext() if wants_json() else Live() as live:
            stage = QueueStage(scratch, client, supervisor, live)
            stage.queue()
            stage.watch()
        return [client.call(ShowTask(row.id)) for row in stage.rows()]
    finally:
        stop(client, supervisor)


class QueueStage:
    """What is typed and what happens, line by line, above a table that is drawn in place."""

    def __init__(
        self,
        scratch: Scratch,
        client: LocalClient,
        supervisor: subprocess.Popen[bytes],
        live: Live | None,
    ) -> None:
        self._scratch = scratch
        self._client = client
        self._supervisor = supervisor
        self._live = live
        self._seen = 0
        self._answer_at: dict[str, float] = {}

    def tell(self, text: str) -> None:
        if self._live is not None:
            self._live.above(text)

    def type(self, *args: str) -> None:
        """A public command, as a person would type it."""
        self.tell(f"$ fleet {shlex.join(args)}")
        self._scratch.fleet(*args)

    def rows(self) -> list[TaskRow]:
        from fleet.operations.tasks.list import ListTasks

        newest_first = self._client.call(ListTasks(all=True))
        return list(newest_first[::-1])

    def queue(self) -> None:
        from fleet.cli.demo.scratch import JOBS

        self.tell(f"A scratch repository: {self._scratch.repo}")
        self.tell("Five tasks for a coder that follows a script: no model, no key, no network.")
        self.tell("")
        self.tell("$ fleet run --max 4 &")
        for number, job in enumerate(JOBS, 1):
            waits = [word for need in job.after for word in ("--after", need)]
            self.type("add", job.title, *waits, "--prompt-file", f"../todo/{number}")
            self.draw(self.rows())
        self.tell("")

    def watch(self) -> None:
        """Watch until all tasks are done, and answer the questions that they ask."""
        until = time.monotonic() + DEMO_SECONDS
        while True:
            tasks = self.rows()
            self._tell_events()
            self.draw(tasks)
            if all(t.status in {"done", "failed"} for t in tasks):
                break
            self._answer()
            self._mind(until)
            self._client.wait(0.2)
        if self._live is not None and self._live.redraws:
            self._live.update(Text(""))  # what follows says it better
        self.tell("")

    def draw(self, tasks: list[TaskRow]) -> None:
        if self._live is None:
            return
        if self._live.redraws:
            self._live.update(_table(tasks, self._client.now()))
        else:  # into a pipe: only what changes for good
            rows = [(t.id, t.status, t.title) for t in tasks]
            self._live.update(Table(("task", "status", "title"), rows))

    def _tell_events(self) -> None:
        for event in self._client.app.store.events(after=self._seen):
            self._seen = event.number
            if line := self._in_words(event):
                self.tell(line)

    def _in_words(self, event: Event) -> str:
        """Print the events that a person should see at once; the table shows the rest."""
        from fleet.cli.supervisor.sentences import sentence_of

        if event.type == Kind.MESSAGE_ASKED:
            self._answer_at[event.task] = time.monotonic() + READING
        sentence = sentence_of(event, self._client.app.store)
        worth = sentence is not None and sentence.style in {"yellow", "red"}
        return f"{sentence.head}: {sentence.about}" if sentence and worth else ""

    def _answer(self) -> None:
        from fleet.cli.demo.scratch import ANSWER

        for task, at in list(self._answer_at.items()):
            if time.monotonic() >= at:
                del self._answer_at[task]
                self.type("answer", task, ANSWER)

    def _mind(self, until: float) -> None:
        if self._supervisor.poll() is not None:
            log = self._scratch.log.read_text(errors="replace").strip()[-500:]
            raise Unavailable(f"The demo's supervisor ended: {log}")
        if time.monotonic() > until:
            raise Unavailable(
                f"The demo did not end within {DEMO_SECONDS:.0f} s.",
                fix="`fleet demo --keep` keeps its supervisor.log. Is the machine very busy?",
            )


def _table(tasks: list[TaskRow], now: int) -> View:
    from fleet.cli.tasks.views import elapsed, peak_context, status

    columns = (
        "task",
        "status",
        Column("elapsed", right=True),
        Column("context", right=True),
        Column("title", flexible=True, least=12),
        Column("now", flexible=True, least=12),
    )
    rows = [
        (t.id, status(t.status), elapsed(t, now), peak_context(t, now), t.title, _now(t))
        for t in tasks
    ]
    return Table(columns, rows)


def _now(task: TaskRow) -> str:
    from fleet.cli.demo.scratch import JOBS

    after = JOBS[int(task.id.removeprefix("t-")) - 1].after
    if task.status == "waiting":
        return f"waits for {' and '.join(after)}"
    return task.run.last if task.run and task.state == "running" else ""


def _check(scratch: Scratch, details: list[TaskDetail]) -> None:
    """The demo is a test too: it fails when the system did not do what it shows."""
    from fleet.cli.demo.scratch import FILES

    wrong = [f"{d.task.id} is {d.task.status}: {d.why}" for d in details if d.task.status != "done"]
    endings = [[r.ending for r in d.runs] for d in details]
    if endings[1] != ["failed", "succeeded"]:
        wrong.append(f"t-2 should have failed once, but its runs {endings[1]}")
    if endings[2] != ["asked", "succeeded"]:
        wrong.append(f"t-3 should have asked once, but its runs {endings[2]}")
    if not wrong:
        files = scratch.git("ls-tree", "--name-only", details[4].runs[-1].branch).split()
        if lacking := FILES - set(files):
            wrong.append(f"the last branch lacks {', '.join(sorted(lacking))}")
    if wrong:
        raise Refused(
            "The demo failed: " + "; ".join(wrong),
            fix="`fleet demo --keep` keeps all files, to see what happened.",
            code="demo_failed",
        )


def _story(scratch: Scratch, details: list[TaskDetail], took: float, *, keep: bool) -> Result:
    columns = ("task", Column("title", flexible=True), "runs", "branch")
    rows = [
        (d.task.id, d.task.title, " → ".join(r.ending for r in d.runs), d.runs[-1].branch)
        for d in details
    ]
    last = details[-1].runs[-1].branch
    log = scratch.git("log", "--oneline", "--graph", last)
    runs = sum(len(d.runs) for d in details)
    data = {
        "took": int(took * 1_000_000),
        "repository": str(scratch.repo),
        "home": str(scratch.home),
        "kept": keep,
        "tasks": details,
    }
    view = Stack(
        (
            (f"Five tasks in {took:.1f} s, in {runs} runs", Table(columns, rows)),
            (f"What {last} was built from", Text(log.rstrip())),
            ("Where it is" if keep else "Where it was (--keep keeps it)", Text(_places(scratch))),
            ("Try next", Text(_next(scratch, keep=keep))),
        )
    )
    return Result("demo", data, view)


def _places(scratch: Scratch) -> str:
    return (
        f"branches     git -C {shlex.quote(str(scratch.repo))} branch\n"
        f"worktrees    {scratch.home}/worktrees\n"
        f"transcripts  {scratch.home}/runs/RUN/transcript"
    )


def _next(scratch: Scratch, *, keep: bool) -> str:
    from fleet.cli.demo.scratch import is_installed, own_name

    fleet = own_name()
    if keep:
        fleet = f"FLEET_HOME={shlex.quote(str(scratch.home))} {fleet}"
        return f"{fleet} show t-2\n{fleet} logs t-4\n{fleet} tasks --all --everywhere"
    if not is_installed():
        return 'pipx install .\nfleet init\nfleet add "Fix the login" --prompt "…"\nfleet run'
    return f'{fleet} init\n{fleet} add "Fix the login" --prompt "…"\n{fleet} run'
