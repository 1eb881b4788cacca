"""Start a run: make its workspace, then launch its coder there."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fleet.supervisor.attempt.launch import launch_of

if TYPE_CHECKING:
    from fleet.domain.run import Run, Workspace
    from fleet.ports import Job, Launch, Site
    from fleet.supervisor.parts import Parts


class Starting:
    """Makes the workspace and launches the coder, in jobs beside the loop: both may be slow.

    `ready`: the workspace was made ahead, so only the launch is left.
    """

    def __init__(self, parts: Parts, project: str, *, ready: bool = False) -> None:
        self._parts = parts
        self._project = project
        self._ready = ready
        self._job: Job | None = None
        self._order: Launch | None = None
        self._interruption: Job | None = None

    @property
    def busy(self) -> bool:
        return self._job is not None and not self._job.done()

    @property
    def prepared(self) -> bool:
        """Whether the workspace was made, or could not be; the launch is next."""
        made = self._ready or (self._job is not None and self._job.done())
        return made and self._order is None

    def plan(self, site: Site) -> Workspace:
        """Choose the workspace without making it."""
        return site.run.workspace or self._parts.checkout(self._project).plan(site)

    def go_on(self, site: Site, last: Run | None, workspace: Workspace) -> None:
        """Begin the next job. Launching twice is harmless: only one keeper can claim the run."""
        if self._job is None and not self._ready:
            checkout = self._parts.checkout(self._project)
            self._job = self._parts.jobs.begin(partial(checkout.prepare, workspace, site))
        elif not self.busy:
            self._launch(site, last, workspace)

    def interrupt(self, site: Site) -> None:
        """Stop making the workspace: a person wants the run to end."""
        if self._order is not None or site.run.workspace is None:
            return
        if self._interruption is None or self._interruption.done():
            checkout = self._parts.checkout(self._project)
            self._interruption = self._parts.quick.begin(
                partial(checkout.interrupt, site.run.workspace, site)
            )

    def _launch(self, site: Site, last: Run | None, workspace: Workspace) -> None:
        run = site.run
        if self._job is not None:
            self._job.result()
        if self._order is not None:
            self._parts.launcher.launch(run.id, self._order)
            return
        order = launch_of(self._parts, run, site.task, last, workspace)
        self._job = self._parts.quick.begin(partial(self._parts.launcher.launch, run.id, order))
        self._order = order
