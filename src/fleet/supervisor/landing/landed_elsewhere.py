"""Notice work that came to its branch without us: merged or rebased by hand, or with another task."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from fleet.domain.access import SUPERVISOR
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Conflict, FleetError
from fleet.domain.event import Event, Kind
from fleet.domain.landing.landing import landed
from fleet.domain.task import TaskState
from fleet.ports import Put, TaskQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleet.ports import Branches, Job, Store
    from fleet.supervisor.landing.parts import LandingParts
    from fleet.supervisor.parts import Parts, ThisSupervisor

LOOK_SECONDS = 10.0
MOST_TASKS = 200  # the newest that are done are looked at


class AwayWork(NamedTuple):
    """`base`: the commit of its branch that the work began at."""

    tip: str
    base: str


Away: TypeAlias = dict[tuple[str, str], dict[str, AwayWork]]  # by repository and branch, then task


class Noticing:
    def __init__(self, parts: Parts, here: ThisSupervisor, more: LandingParts) -> None:
        self._parts = parts
        self._here = here
        self._more = more
        self._job: Job | None = None
        self._looked_at = -LOOK_SECONDS
        self._has_looked = False
        self._seen: dict[tuple[str, str], tuple[str, frozenset[str]]] = {}  # by branch
        self._home: dict[str, tuple[str, str]] = {}  # by task: the branch, and where it is

    def step(self) -> None:
        if self._job is not None:
            if self._job.done():
                self._finish(self._job)
            return
        now = self._parts.clock.since_boot()
        if now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            if away := work_away(self._parts.store, self._here.host):
                self._job = self._parts.jobs.begin(partial(self._look, away))
            else:
                self._has_looked = True

    @property
    def idle(self) -> bool:
        """Whether it has looked at least once: `fleet run --once` sees what was merged before."""
        return self._has_looked and self._job is None

    def _finish(self, job: Job) -> None:
        self._job = None
        home, self._home = self._home, {}
        job.result()
        for task_id, (onto, commit) in home.items():
            note_landed(self._parts.store, task_id, onto, commit)
        self._has_looked = True

    def _look(self, away: Away) -> None:
        for (repository, onto), works in away.items():
            if not self._more.is_here(repository):
                continue
            with suppress(FleetError, OSError):  # what cannot be read now is read again later
                self._look_at(self._more.branches(repository, ""), repository, onto, works)

    def _look_at(
        self, git: Branches, repository: str, onto: str, works: Mapping[str, AwayWork]
    ) -> None:
        """Git compares patches only for work whose branch has moved on since it began."""
        target = git.target(onto).commit
        seen, known = self._seen.get((repository, onto), ("", frozenset()))
        new = {t: w for t, w in works.items() if seen != target or t not in known}
        inside = git.within(target, [work.tip for work in new.values()]) if new else set()
        for task_id, (tip, base) in new.items():
            if tip in inside or (base != target and git.came_home(onto, tip)):
                self._home[task_id] = (onto, target)
        self._seen[repository, onto] = (target, frozenset(works))


def work_away(store: Store, host: str) -> Away:
    """The tasks of this host whose work is not known to be on its branch."""
    tasks = store.tasks(TaskQuery((TaskState.DONE,), limit=MOST_TASKS))
    away = [t for t in tasks if t.run_id and not (t.tally.landed or t.tally.landing)]
    runs = store.runs_by_id([task.run_id for task in away])
    by_branch: Away = {}
    for task in away:
        run, checkpoint = runs.get(task.run_id), task.tally.checkpoint
        space = run.workspace if run and run.host == host else None
        if space is None or checkpoint is None or checkpoint.commit in {"", space.base}:
            continue  # elsewhere, or without work
        if space.repository and space.onto:
            key = (space.repository, space.onto)
            by_branch.setdefault(key, {})[task.id] = AwayWork(checkpoint.commit, space.base)
    return by_branch


def note_merged(store: Store, host: str, branches: Callable[[str, str], Branches]) -> None:
    """Where no supervisor looks: note work that was merged. One that looks knows equal patches, too."""
    for (repository, onto), works in work_away(store, host).items():
        with suppress(FleetError, OSError):
            git = branches(repository, "")
            target = git.target(onto).commit
            inside = git.within(target, [work.tip for work in works.values()])
            for task_id in [task for task, work in works.items() if work.tip in inside]:
                note_landed(store, task_id, onto, target)


def note_landed(store: Store, task_id: str, onto: str, commit: str) -> None:
    task = store.task(task_id)
    if task.state is not TaskState.DONE or task.tally.landed or task.tally.landing:
        return
    now, about = store.now(), {"onto": onto, "commit": commit}
    event = Event(Kind.TASK_LANDED, task_id, SUPERVISOR, now, "", about)
    with suppress(Conflict):  # the next look finds it again
        store.commit([Put(landed(task, commit, now=now))], [event])
