"""A store that several machines share, seen from one of them: with the paths of its own clones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from fleet.domain.hosts.clone import moved
from fleet.domain.landing.landing import Landing
from fleet.domain.run import Host
from fleet.domain.task import Task

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.domain.event import Event
    from fleet.domain.run import Run
    from fleet.domain.schedule import Claim
    from fleet.ports import Change, ProjectPaths, Store
    from fleet.ports.store import LandingQuery, Offer, Record, TaskQuery, TaskSearch

Of = TypeVar("Of")


class PlacedStore:
    """Everything else is as the store has it. A run's workspace is a path of its own host."""

    def __init__(self, store: Store, paths: ProjectPaths) -> None:
        self._store, self._paths = store, paths

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, changes: Sequence[Change], events: Sequence[Event]) -> list[Record]:
        named = [type(change)(self._named(change.record)) for change in changes]
        return [self._placed(record) for record in self._store.commit(named, events)]

    def claim(self, claims: Sequence[Claim]) -> list[Run]:
        return self._store.claim([one._replace(task=self._named(one.task)) for one in claims])

    def task(self, task_id: str) -> Task:
        return self._placed(self._store.task(task_id))

    def tasks(self, query: TaskQuery) -> list[Task]:
        return [*map(self._placed, self._store.tasks(self._query_of(query)))]

    def search_tasks(self, query: TaskSearch) -> list[Task]:
        return [*map(self._placed, self._store.search_tasks(self._query_of(query)))]

    def tasks_by_id(self, ids: Sequence[str]) -> dict[str, Task]:
        return {key: self._placed(task) for key, task in self._store.tasks_by_id(ids).items()}

    def counts(self, *, team: str = "", project: str = "") -> dict[str, int]:
        return self._store.counts(team=team, project=project and self._paths.name(project))

    def candidates(self, *, now: int, limit: int) -> list[Task]:
        return [*map(self._placed, self._store.candidates(now=now, limit=limit))]

    def offer(self, host: str, *, now: int, limit: int, names: Sequence[str] = ()) -> Offer:
        offer = self._store.offer(host, now=now, limit=limit, names=names)
        return offer._replace(tasks=[*map(self._placed, offer.tasks)])

    def candidates_after(
        self, after: Task | None, *, team: str = "", now: int, limit: int
    ) -> list[Task]:
        page = self._store.candidates_after(after, team=team, now=now, limit=limit)
        return [*map(self._placed, page)]

    def landing(self, landing_id: str) -> Landing:
        return self._placed(self._store.landing(landing_id))

    def landings(self, query: LandingQuery) -> list[Landing]:
        return [*map(self._placed, self._store.landings(query))]

    def hosts(self) -> dict[str, Host]:
        return {key: self._placed(host) for key, host in self._store.hosts().items()}

    def _query_of(self, query: Any) -> Any:
        return query._replace(project=self._paths.name(query.project)) if query.project else query

    def _placed(self, record: Of) -> Of:
        return _with_paths(record, self._paths.here)

    def _named(self, record: Of) -> Of:
        """A new task makes its project known."""
        is_new = isinstance(record, Task) and not record.version
        return _with_paths(record, self._paths.register if is_new else self._paths.name)


def _with_paths(given: Of, path_of: Callable[[str], str]) -> Of:
    record: Any = given
    made: Any
    match record:
        case Task() if record.project:
            project = path_of(record.project)
            cwd = moved(record.spec.cwd, record.project, project)
            if project == record.project:
                return given
            made = replace(record, project=project, spec=replace(record.spec, cwd=cwd))
        case Landing() if record.project:
            made = replace(record, project=path_of(record.project))
        case Host() if record.without:
            pairs = [line.partition(" ") for line in record.without]
            made = replace(record, without=tuple(f"{why} {path_of(at)}" for why, _, at in pairs))
        case _:
            made = record
    same: Of = made
    return same
