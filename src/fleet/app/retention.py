"""Remove what is old by the settings `retention.*`."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.data import dataclass
from fleet.domain.errors import FleetError
from fleet.domain.landing.landing import GATE_PREFIX
from fleet.domain.limits.retention import TaskTies, keeps
from fleet.domain.task import ENDED
from fleet.ports import LandingQuery, TaskQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fleet.adapters.git.kept.refs import KeptRef
    from fleet.adapters.processes.keepers import Keepers
    from fleet.app.app import App
    from fleet.domain.task import Task
    from fleet.ports import Store

DAY = 86_400.0
FOLDERS_A_ROUND = 50
EVENTS_A_ROUND = 500
TASKS_A_ROUND = 50
TASKS_LOOKED_AT = 1000  # the newest, for their projects
RUN = re.compile(r"(t-[0-9]+)\.[0-9]+")
GATE = re.compile(rf"{GATE_PREFIX}[0-9a-f-]+\.[0-9]+")  # the store keeps the end of a failed one


@dataclass(frozen=True, slots=True)
class RemovedHistory:
    runs: tuple[str, ...] = ()
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was removed. `events`: those before this number; 0: none."""

    tasks: tuple[str, ...] = ()
    events: int = 0


def reasons(store: Store, tasks: Sequence[Task], *, before: int) -> dict[str, str]:
    """Return, by task, the reason to keep it; empty: it may be removed from the store."""
    parents = store.tasks_by_id([task.parent for task in tasks if task.parent])
    runs = store.runs_by_id([task.run_id for task in tasks if task.run_id])
    asking = {question.task for question in store.open_questions([task.id for task in tasks])}
    why: dict[str, str] = {}
    for task in tasks:
        known = TaskTies(
            parent=parents.get(task.parent),
            newest_run=runs.get(task.run_id),
            has_question=task.id in asking,
        )
        why[task.id] = keeps(task, known, before=before) or keeps(
            task, _with_others(store, task, known), before=before
        )
    return why


def _with_others(store: Store, task: Task, known: TaskTies) -> TaskTies:
    """Add the ties that cost a query each; asked only of tasks that would otherwise be removed."""
    return known._replace(
        has_dependents=bool(store.dependents(task.id)),
        has_children=bool(store.tasks(TaskQuery(parent=task.id, limit=1))),
        is_landing=bool(store.landings(LandingQuery(task=task.id, open_only=True, limit=1))),
    )


class OldHistory:
    """Removes old events and old tasks from the store, in small steps; None days: never."""

    def __init__(self, store: Store, *, events: float | None, tasks: float | None) -> None:
        self._store, self._events, self._tasks = store, events, tasks
        self._upto = 0  # the number up to which events are being removed
        self._pages: Iterator[list[Task]] = iter(())
        self._next = 0.0  # when it is looked at again

    def step(self) -> None:
        """A few in each round of a supervisor, and all of them once a day."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + DAY
            self._upto = self.last_old()
            self._pages = self.old_tasks()
        if self._upto and not self._store.forget_events(upto=self._upto, limit=EVENTS_A_ROUND):
            self._upto = 0
        self._store.forget_tasks(next(self._pages, []))

    def forget_all(self, *, dry_run: bool = False) -> Forgotten:
        upto, tasks = self.last_old(), list[str]()
        first = self._store.first_event()
        if dry_run:
            old = tuple(task.id for page in self.old_tasks() for task in page)
            return Forgotten(old, upto + 1 if upto >= first else 0)
        while upto and self._store.forget_events(upto=upto, limit=EVENTS_A_ROUND):
            pass
        oldest = self._store.first_event()
        while some := [i for page in self.old_tasks() for i in self._store.forget_tasks(page)]:
            tasks += some  # then others may go, to which nothing refers any more
        return Forgotten(tuple(tasks), oldest if oldest > first else 0)

    def last_old(self) -> int:
        """Return the number of the newest event that is old; 0: there is none."""
        days = self._events
        return 0 if days is None else self._store.number_before(self._before(days))

    def _before(self, days: float) -> int:
        return self._store.now() - int(days * DAY * 1_000_000)

    def old_tasks(self) -> Iterator[list[Task]]:
        """Return the tasks to remove, in pages; stop at the first that is not old, as ids grow."""
        if self._tasks is None:
            return
        before, last = self._before(self._tasks), ""
        states = tuple(str(state) for state in ENDED)
        while True:
            query = TaskQuery(states=states, before=last, limit=TASKS_A_ROUND, oldest_first=True)
            page = self._store.tasks(query)
            why = reasons(self._store, page, before=before)
            yield [task for task in page if not why[task.id]]
            if len(page) < TASKS_A_ROUND or page[-1].created_at > before:
                return
            last = page[-1].id


class OldKept:
    """Drops kept work of ended tasks that is older than `days`; 0: never.

    Only work from this home's worktrees: another home may use the repository, with the same ids.
    """

    def __init__(self, store: Store, days: float, worktrees: Path) -> None:
        self._store, self._days, self._worktrees = store, days, worktrees
        self._left: Iterator[str] = iter(())
        self._next = 0.0

    def step(self) -> None:
        """One repository in each round of a supervisor, and all of them once a day."""
        if self._days and time.monotonic() >= self._next:
            self._left, self._next = iter(self._projects()), time.monotonic() + DAY
        self._drop_in(next(self._left, ""))

    def drop_all(self, *, dry_run: bool = False) -> tuple[str, ...]:
        projects = self._projects() if self._days else []
        return tuple(name for p in projects for name in self._drop_in(p, dry_run=dry_run))

    def _projects(self) -> list[str]:
        tasks = self._store.tasks(TaskQuery(limit=TASKS_LOOKED_AT))
        return sorted({task.project for task in tasks if task.project})

    def sizes(self) -> Iterator[int]:
        """The bytes that only kept work of this home takes, a repository at a time."""
        from fleet.adapters.git.kept.refs import bytes_of, list_kept
        from fleet.adapters.git.repo import Repo

        seen = set[Path]()
        for project in self._projects():
            with suppress(FleetError, OSError):  # likewise
                repo = Repo.of(Path(project))
                if repo.common not in seen:
                    seen.add(repo.common)
                    yield bytes_of(repo, [kept for kept in list_kept(repo) if self._is_ours(kept)])

    def _drop_in(self, project: str, *, dry_run: bool = False) -> list[str]:
        """Drop old kept work, also of tasks that are no longer in the store, as these had ended."""
        if not project:
            return []
        from fleet.adapters.git.kept.refs import drop, list_kept
        from fleet.adapters.git.repo import Repo

        with suppress(FleetError, OSError):  # it may have been moved
            repo = Repo.of(Path(project))
            before = time.time() - self._days * DAY
            ours = (kept for kept in list_kept(repo) if self._is_ours(kept))
            old = [kept for kept in ours if kept.at < before]
            tasks = self._store.tasks_by_id(sorted({kept.task for kept in old}))
            ended = [k for k in old if k.task not in tasks or tasks[k.task].state in ENDED]
            for kept in [] if dry_run else ended:
                drop(repo, kept)
            return [kept.id for kept in ended]
        return []

    def _is_ours(self, kept: KeptRef) -> bool:
        return Path(kept.snapshot.root).is_relative_to(self._worktrees)


class OldTranscripts:
    """Removes the transcripts of ended tasks' runs and of gates.

    It removes those older than `days`, and the oldest while all take more than `most` bytes; 0: no
    limit. What is in git, in the store and in the task's own folder stays.
    """

    def __init__(
        self, keepers: Keepers, runs: Path, store: Store, days: float, most: int = 0
    ) -> None:
        self._keepers, self._folder, self._store = keepers, runs, store
        self._days, self._most = days, most
        self._left: Iterator[tuple[str, str]] = iter(())
        self._next = 0.0  # when the folders are looked at again

    def step(self) -> None:
        """A few in each round of a supervisor, and all of them once a day."""
        if time.monotonic() >= self._next:
            self._left, self._next = self._old(), time.monotonic() + DAY
        self._remove(list(islice(self._left, FOLDERS_A_ROUND)))

    def remove_all(self, *, dry_run: bool = False) -> RemovedHistory:
        return self._remove(list(self._old()), dry_run=dry_run)

    def _old(self) -> Iterator[tuple[str, str]]:
        """Return the runs whose transcripts are to be removed, oldest first, with the reasons."""
        if not self._days and not self._most:
            return
        before = time.time() - self._days * DAY if self._days else 0.0
        old = f"it was older than {self._days:g} days (`retention.transcripts`)"
        large = f"all transcripts together took more than {self._most / 1e6:g} MB (`retention.transcripts_mb`)"
        printed = sorted(self._printed())
        over = sum(size for _, size, _ in printed) - self._most if self._most else 0
        for start in range(0, len(printed), FOLDERS_A_ROUND):
            page = printed[start : start + FOLDERS_A_ROUND]
            if page[0][0] >= before and over <= 0:
                return
            ended = self._ended([run for _, _, run in page])
            for at, size, run in page:
                if run in ended and (at < before or over > 0):
                    over -= size
                    yield run, old if at < before else large

    def _printed(self) -> Iterator[tuple[float, int, str]]:
        """Return each run's last output's time, the bytes of all its output, and its id."""
        for path in self._folder.glob("*/transcript"):
            name = path.parent.name
            if RUN.fullmatch(name) or GATE.fullmatch(name):
                with suppress(FileNotFoundError):  # another removed it just now
                    yield path.stat().st_mtime, self._keepers.transcript_bytes(name), name

    def _ended(self, runs: Sequence[str]) -> set[str]:
        """Return the runs of tasks that are known to have ended, and those of gates."""
        tasks = self._store.tasks_by_id(sorted({run.partition(".")[0] for run in runs}))
        ended = {task.id for task in tasks.values() if task.state in ENDED}
        return {run for run in runs if run.partition(".")[0] in ended or GATE.fullmatch(run)}

    def _remove(self, runs: Sequence[tuple[str, str]], *, dry_run: bool = False) -> RemovedHistory:
        """Remove transcripts, except of tasks that have been reopened meanwhile."""
        ended = self._ended([run for run, _ in runs])
        removed = [(run, why) for run, why in runs if run in ended]
        sizes = [self._keepers.remove_transcript(run, why, dry_run=dry_run) for run, why in removed]
        return RemovedHistory(tuple(run for run, _ in removed), sum(sizes))


def old_transcripts(app: App) -> OldTranscripts:
    keep = app.loaded.settings.retention
    most = keep.transcripts_mb * 1_000_000
    return OldTranscripts(app.keepers, app.home.runs, app.store, keep.transcripts, most)


def old_history(app: App) -> OldHistory:
    days = app.loaded.settings.retention
    return OldHistory(app.store, events=days.events or None, tasks=days.tasks or None)


def old_kept(app: App) -> OldKept:
    return OldKept(app.store, app.loaded.settings.retention.kept, app.home.worktrees)
