"""What a supervisor does, in sentences on stderr; `fleet run` adds a line that moves, and a summary."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from fleet.cli.supervisor.sentences import line_of, sentence_of
from fleet.cli.terminal.human import SECOND, clock, duration
from fleet.cli.terminal.output import colours, columns
from fleet.cli.terminal.progress import MovingLine
from fleet.cli.terminal.render import shown_lines
from fleet.domain.errors import NotFound
from fleet.domain.event import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleet.domain.event import Event
    from fleet.domain.run import Progress, Run
    from fleet.ports import Store

NOTED = frozenset({Kind.RUN_ENDED, Kind.TASK_SETTLED, Kind.TASK_LANDED})  # for the summary
LOOK_SECONDS = 0.5  # between two looks at the runs for the line that moves
MOST_RUNS = 100  # that the line counts by itself


class TerminalReport:
    """`heard` is called before each event is shown."""

    def __init__(self, heard: Callable[[], None] = lambda: None) -> None:
        self._heard = heard
        self._store: Store | None = None
        self._line = MovingLine(self.now)

    def now(self) -> str:
        """A summary of what is running, for the moving line."""
        return ""

    def began(self, store: Store) -> None:
        self._store = store

    def line(self, text: str) -> None:
        self._line.say(text)

    def warning(self, text: str, at: int) -> None:
        self._line.say(f"{clock(at)} {text}", "yellow")

    def event(self, event: Event) -> None:
        self._heard()
        if self._store is not None and (sentence := sentence_of(event, self._store)):
            err = sys.stderr
            line = line_of(sentence, event.at, colour=colours(err), room=columns(err))
            self._line.write(f"{line}\n")

    def step(self) -> None: ...

    def left(self, tasks: Mapping[str, str]) -> None:
        for task, why in tasks.items():
            self.line(f"{task} is left: {why}")

    def ended(self) -> None: ...


class RunReport(TerminalReport):
    """On a terminal, also shows a moving line and, at the end, a summary of the tasks."""

    def __init__(self) -> None:
        super().__init__()
        from fleet.cli.supervisor.summary import SupervisorSummary

        self._summary = SupervisorSummary()
        self._text = ""
        self._looked = 0.0

    def __enter__(self) -> Self:
        self._line.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._line.__exit__(kind, *rest)

    def now(self) -> str:
        return self._text

    def event(self, event: Event) -> None:
        super().event(event)
        if self._store is not None and event.type in NOTED:
            try:
                self._summary.note(event, self._store)
            except NotFound:  # pruned since
                return

    def step(self) -> None:
        """Read what the line shows; the store is this thread's alone."""
        at = time.monotonic()
        if not self._line.moves or self._store is None or at - self._looked < LOOK_SECONDS:
            return
        self._looked = at
        runs = self._store.live_runs()[:MOST_RUNS]
        progress = self._store.progress([run.id for run in runs])
        texts = [_doing(run, progress.get(run.id), self._store.now()) for run in runs]
        self._text = f"{len(runs)} running: {' · '.join(texts)}" if runs else ""

    def left(self, tasks: Mapping[str, str]) -> None:
        self._summary.left = dict(tasks)

    def ended(self) -> None:
        self._text = ""
        if self._store is not None:
            lines = shown_lines(self._summary.view(self._store), sys.stderr)
            self._line.write("".join(f"{line}\n" for line in ("", *lines)))


def _doing(run: Run, progress: Progress | None, now: int) -> str:
    took = duration(max(0, now - (run.started_at or run.claimed_at)) // SECOND * SECOND)
    if progress is not None and progress.setup:
        return f"{run.task} sets up: {progress.setup} ({took})"
    last = " ".join(progress.last.split()) if progress is not None else ""
    return f"{run.task} {last} ({took})" if last else f"{run.task} ({took})"
