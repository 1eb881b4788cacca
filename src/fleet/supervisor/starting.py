"""A run before its keeper has been seen: its workspace is made, and its coder launched there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fleet.supervisor.launching import launch_of
from fleet.supervisor.site import last_started, site_of

if TYPE_CHECKING:
    from fleet.domain.run import Run, Workspace
    from fleet.ports import Job, Launch
    from fleet.supervisor.parts import Here, Parts


class Starting:
    """Each part takes its time, so it is done beside the loop; any of them may fail."""

    def __init__(self, parts: Parts, here: Here, project: str) -> None:
        self._parts = parts
        self._here = here
        self._project = project
        self._job: Job | None = None
        self._order: Launch | None = None

    @property
    def busy(self) -> bool:
        return self._job is not None and not self._job.done()

    def plan(self, run: Run) -> Workspace:
        """Where it is to work; nothing is made yet."""
        site = site_of(self._parts.store, run, last_started(self._parts.store, run))
        return self._parts.checkout(self._project).plan(site)

    def go_on(self, run: Run, place: Workspace) -> None:
        """Up to the launch, which may be repeated: it counts once its keeper has been seen."""
        if self._job is None:
            self._job = self._prepare(run, place)
        if not self.busy:
            self._job.result()
            self._launch(run, place)

    def _prepare(self, run: Run, place: Workspace) -> Job:
        site = site_of(self._parts.store, run, last_started(self._parts.store, run))
        checkout = self._parts.checkout(self._project)
        return self._parts.jobs.begin(partial(checkout.prepare, place, site))

    def _launch(self, run: Run, place: Workspace) -> None:
        if self._order is not None:
            self._parts.launcher.launch(run.id, self._order)
            return
        task = self._parts.store.task(run.task)
        self._parts.files.begin(task, run)
        last = last_started(self._parts.store, run)
        order = launch_of(self._parts, self._here, run, task, last, place)
        self._job = self._parts.quick.begin(partial(self._parts.launcher.launch, run.id, order))
        self._order = order
