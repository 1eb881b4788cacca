"""Find what a coder left in its workspace when it ended, and commit what it did not commit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.errors import FleetError
from fleet.domain.run import Checkpoint, Ending
from fleet.ports import Tip

if TYPE_CHECKING:
    from fleet.domain.run import Outcome, Workspace
    from fleet.ports import Checkout, Job, Site
    from fleet.supervisor.parts import Parts

AUTO, HOLD = "auto", "hold"  # values of the setting `run.commit`


class Finishing:
    """Reading a large tree takes a while, so a job beside the loop does it."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._job: Job | None = None
        self._tip: Tip | None = None

    def tip(
        self, checkout: Checkout, workspace: Workspace, site: Site, ending: Ending, how: str
    ) -> Tip | None:
        """The state of the workspace; None while a job reads it.

        Uncommitted changes are committed only when the run succeeded and `how` is `auto`.
        """
        if self._tip is None and ending is not Ending.SUCCEEDED:
            self._tip = Tip(checkout.commit(workspace))
        if self._tip is not None:
            return self._tip
        if self._job is None:

            def look() -> None:
                self._tip = checkout.finish(workspace, site, gather=how == AUTO)

            self._job = self._parts.jobs.begin(look)
        if not self._job.done():
            return None
        try:
            self._job.result()
        except (FleetError, OSError) as error:  # a full disk, a damaged repository
            self._tip = Tip(checkout.commit(workspace), 1, str(error))
        return self._tip


def with_tip(outcome: Outcome, tip: Tip, how: str) -> Outcome:
    """Add the changed lines and uncommitted files to an outcome that succeeded.

    With uncommitted files, `look` asks a person to look before the task is done.
    """
    if outcome.ending is not Ending.SUCCEEDED:
        return outcome
    added, removed = tip.lines or (None, None)
    checkpoint = replace(outcome.checkpoint or Checkpoint(), added=added, removed=removed)
    if not tip.left:
        return replace(outcome, checkpoint=checkpoint)
    checkpoint = replace(checkpoint, uncommitted=tip.left)
    because = f": {tip.why}" if tip.why else ""
    files = "1 changed file is" if tip.left == 1 else f"{tip.left} changed files are"
    look = f"{files} not committed{because}." if how in {AUTO, HOLD} else ""
    return replace(outcome, checkpoint=checkpoint, look=look)
