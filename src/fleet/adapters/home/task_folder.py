"""The folder of a task, `tasks/<id>/`, and the supervisor's log of the day.

People and agents read these. Fleet reads back only people's edits of `task.json`. So a full disk
stops no run, and is only noted in `trouble`.
"""

from __future__ import annotations

import os
from collections import Counter
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

from fleet.adapters.home.append import AppendLimits
from fleet.adapters.home.task_json import TaskJson
from fleet.domain.errors import FleetError, NotFound
from fleet.domain.event import FOLDER_MESSAGES, TASK
from fleet.domain.redaction import Redactor, secret_values
from fleet.ports import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fleet.adapters.home.artifacts import Artifacts
    from fleet.adapters.home.event_log import DayLog, TaskLog
    from fleet.adapters.home.stderr_log import StderrLog
    from fleet.adapters.home.transcript_index import TranscriptIndex
    from fleet.adapters.home.transcript_log import SaidLog
    from fleet.domain.event import Event
    from fleet.domain.run import Run
    from fleet.domain.task import Spec, Task
    from fleet.domain.transcript import Said
    from fleet.ports import Clock, QaText, Store

LATEST = 3
INDEXED_AT = 400_000  # unindexed characters of a transcript that are then indexed; see `TAIL`


class FolderFiles:
    """Writes the folders and logs. `home`: the home's folder; secrets of `env` are redacted."""

    def __init__(
        self,
        home: Path,
        store: Store,
        clock: Clock,
        *,
        coder: Callable[[str], object],
        qa: QaText,
        env: Mapping[str, str] = NOTHING,
        limits: AppendLimits = AppendLimits(),  # noqa: B008  # a tuple of numbers
        index: Callable[[], TranscriptIndex] | None = None,
    ) -> None:
        self._limits = limits
        self._index = index
        self._not_indexed: Counter[str] = Counter()  # characters not indexed yet, by task
        self._home = home
        self._store = store
        self._clock = clock
        self._coder = coder
        self._qa = qa
        self._redactor = Redactor(secret_values(env))
        self._trouble: dict[str, str] = {}

    def folder(self, task_id: str) -> Path:
        return self._home / "tasks" / task_id

    @property
    def trouble(self) -> str:
        """What could not be written, or the empty string."""
        if not self._trouble:
            return ""
        first = next(iter(self._trouble.values()))
        more = len(self._trouble) - 1
        return f"{first} (and {more} more)" if more else first

    @cached_property
    def _transcript(self) -> SaidLog:
        from fleet.adapters.home.transcript_log import SaidLog  # noqa: PLC0415  # `fleet add` needs none

        return SaidLog(self.folder, self._redactor, self._moment, self._limits)

    def _moment(self) -> str:
        from fleet.adapters.home.event_log import moment  # noqa: PLC0415  # start-up time

        return moment(self._clock.now())

    @cached_property
    def _log(self) -> TaskLog:
        from fleet.adapters.home.event_log import TaskLog  # noqa: PLC0415  # start-up time

        return TaskLog(self.folder, self._store, self._redactor, self._limits)

    @cached_property
    def _days(self) -> DayLog:
        from fleet.adapters.home.event_log import DayLog  # noqa: PLC0415  # start-up time

        logs, now = self._home / "logs", self._clock.now
        return DayLog(logs, self._store, self._redactor, now, self._limits)

    @cached_property
    def _stderr(self) -> StderrLog:
        from fleet.adapters.home.stderr_log import StderrLog  # noqa: PLC0415  # start-up time

        return StderrLog(self.folder, self._home / "runs", self._redactor, self._limits)

    @cached_property
    def _json(self) -> TaskJson:
        return TaskJson(self.folder, self._redactor, self._coder)

    @cached_property
    def _artifacts(self) -> Artifacts:
        from fleet.adapters.home.artifacts import Artifacts  # noqa: PLC0415  # start-up time

        return Artifacts(self.folder, self._store, self._qa)

    @contextmanager
    def _noting(self, name: str) -> Iterator[None]:
        try:
            yield
        except (OSError, FleetError) as error:
            self._trouble[name] = f"{name} could not be written: {error}"
        else:
            self._trouble.pop(name, None)

    def is_there(self, task_id: str) -> bool:
        return os.path.exists(f"{self._home}/tasks/{task_id}/task.json")  # noqa: PTH110  # of every task

    def begin(self, task: Task, run: Run) -> None:
        del run
        self._bring_up_to_date(task)

    def refresh(self, task_id: str) -> None:
        """Bring a task's folder up to date for a reader."""
        with self._noting(f"tasks/{task_id}"):
            try:
                task = self._store.task(task_id)
            except NotFound:
                return
            self._bring_up_to_date(task)
        with self._noting(f"tasks/{task_id}/log.jsonl"):
            self._log.catch_up(task_id)

    def _bring_up_to_date(self, task: Task) -> None:
        self._show_state(task)
        with self._noting(f"tasks/{task.id}/artifacts"):
            self._artifacts.follow(task.id)
        if task.tally.runs:
            for run in self._store.runs(task.id)[-LATEST:]:
                if not run.live:  # the supervisor may have died before it wrote the end down
                    self.ended(run)

    def _show_state(self, task: Task) -> None:
        with self._noting(f"tasks/{task.id}/task.json"):
            self._json.write(task)
        with self._noting(f"tasks/{task.id}/artifacts"):
            self._artifacts.begin(task.id)

    def add_to_transcript(self, run: Run, events: Sequence[tuple[int, Said]]) -> None:
        name = f"tasks/{run.task}/events.jsonl"
        try:
            self._transcript.add_to_transcript(run, events)
        except OSError as error:
            self._trouble[name] = f"{name} could not be written: {error}"
        else:
            if self._trouble:
                self._trouble.pop(name, None)
        self._not_indexed[run.task] += sum(len(item.text) for _, item in events)
        if self._not_indexed[run.task] > INDEXED_AT:
            self._add_to_index(run.task)

    def _add_to_index(self, task_id: str) -> None:
        self._not_indexed.pop(task_id, None)
        if self._index is not None:
            with self._noting("search"), suppress(NotFound):
                self._index().add(self._store.task(task_id))

    def note(self, event: Event) -> None:
        with self._noting("logs"):
            self._days.note(event)
        if not event.task:
            return
        with self._noting(f"tasks/{event.task}/log.jsonl"):
            self._log.note(event)
        if event.type in FOLDER_MESSAGES:
            with self._noting(f"tasks/{event.task}/artifacts"):
                self._artifacts.follow(event.task)
        elif event.type.startswith(TASK):
            with suppress(NotFound):
                self._show_state(self._store.task(event.task))

    def warn(self, text: str) -> None:
        """Write a warning into the log of the day."""
        with self._noting("logs"):
            self._days.warn(text)

    def ended(self, run: Run) -> None:
        with self._noting(f"tasks/{run.task}/events.jsonl"):
            if self._transcript.ended(run):
                self._add_to_index(run.task)
        with self._noting(f"tasks/{run.task}/log.stderr"):
            self._stderr.ended(run)

    def edited(self, task: Task) -> Spec:
        return self._json.edited(task)
