"""On a shared store: save the commits of runs in it, and fetch those that a task starts from."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.domain.errors import Conflict, FleetError
from fleet.domain.hosts.piece import MAX_BYTES, MOST_ROWS, in_order, unknown
from fleet.ports import Put

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.hosts.piece import Piece
    from fleet.domain.run import Workspace
    from fleet.domain.task import Task
    from fleet.ports import Change, Checkout, Job, Store
    from fleet.supervisor.parts import Parts

LOOK_SECONDS = 30.0  # seconds between looks for new commits of a run
AGAIN = (
    30.0  # seconds after which we look again for commits that were neither here nor in the store
)
DEEPEST = 50  # how many pieces may depend on one another in a row
LACKS = (
    "The commit {} that it starts from is neither on this host nor in the store, which takes at most"
    f" {MAX_BYTES * MOST_ROWS >> 20} MB of a run's commits. Push its branch to a remote that both hosts have."
)


class Bringing:
    """Fetches the commits that tasks start from to this host, in jobs beside the loop."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._known: set[tuple[str, str]] = (
            set()
        )  # (project, commit) of commits that are on this host
        self._jobs: dict[
            str, tuple[Job, list[str]]
        ] = {}  # by task: the job, and what it cannot fetch
        self._lacking: dict[
            str, tuple[float, str]
        ] = {}  # by task: when we looked, and a missing commit

    def why_not(self, task: Task) -> str:
        """Why the task cannot start here now; empty when all commits it starts from are here."""
        commits = self._wanted(task)
        if not commits:
            return ""
        now = self._parts.clock.since_boot()
        looked_at, commit = self._lacking.get(task.id, (-math.inf, ""))
        if now - looked_at < AGAIN and commit in commits:
            return LACKS.format(commit[:12])
        missing = self._bring(task, commits)
        if missing is None:
            return "The work that it starts from is on its way to this host."
        self._known |= {(task.project, commit) for commit in commits if commit not in missing}
        self._lacking.pop(task.id, None)
        if missing:
            self._lacking[task.id] = now, missing[0]
        return LACKS.format(missing[0][:12]) if missing else ""

    def _wanted(self, task: Task) -> list[str]:
        """The commits that the task starts from, without those known to be here."""
        if task.spec.in_place:
            return []
        needs = self._parts.store.tasks_by_id(task.after).values() if task.after else ()
        starts = [need for need in needs if need.project == task.project]
        points = [each.tally.checkpoint for each in (*starts, *([task] if task.tally.runs else []))]
        commits = dict.fromkeys(point.commit for point in points if point and point.commit)
        return [commit for commit in commits if (task.project, commit) not in self._known]

    def _bring(self, task: Task, wanted: Sequence[str]) -> list[str] | None:
        """Fetch these commits; return those that are missing, or None while the job runs."""
        if task.id not in self._jobs:
            checkout = self._parts.checkout(task.project)
            try:
                missing = checkout.missing(task, wanted)
            except (FleetError, OSError):
                return []  # the task's run will report what is wrong
            if not missing:
                return []
            pieces, left = pieces_of(self._parts.store, missing), [*missing]

            def bring() -> None:
                left[:] = checkout.bring(task, pieces, missing)

            self._jobs[task.id] = self._parts.jobs.begin(bring), left
        job, left = self._jobs[task.id]
        if not job.done():
            return None
        del self._jobs[task.id]
        with suppress(FleetError, OSError):  # then the commits stay in `left`
            job.result()
        return left


def pieces_of(store: Store, commits: Sequence[str]) -> list[Piece]:
    """The pieces of these commits and of all they depend on, as far as the store has them, in order."""
    return in_order(commits, _closure(store, commits))


def _closure(store: Store, commits: Sequence[str]) -> dict[str, Piece]:
    """The pieces of these commits and of all they depend on, by commit."""
    pieces: dict[str, Piece] = {}
    commits_known, more = set(commits), [*commits]
    for _ in range(DEEPEST):
        if not more:
            break
        pieces |= store.pieces(more)
        more = unknown(pieces, commits_known)
        commits_known |= {*more}
    return pieces


class Packing:
    """Packs the commits of one run for other hosts: while it works, and when it has ended."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._job: Job | None = None
        self._looked_at = -math.inf
        self._packed: dict[str, Piece | None] = {}  # by commit
        self._parts_of: list[
            Piece
        ] = []  # parts of large pieces, which go to the store before the last
        self.saved = ""  # the commit that is in the store

    def look(self, checkout: Checkout, workspace: Workspace) -> tuple[str, list[Change]] | None:
        """A new commit of the run and the changes that save it, or None; called in every step."""
        now = self._parts.clock.since_boot()
        if self._job is None and now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            self._begin(checkout, workspace, "")
        if not self._is_over():
            return None
        commit = next(reversed(self._packed), "")
        if commit in {"", self.saved}:
            return None
        self.saved = commit
        return commit, self.changes(commit)

    def is_packed(self, checkout: Checkout, workspace: Workspace, commit: str) -> bool:
        """Whether the run's last commit is packed, so that `changes` can save it; begins the packing."""
        if not self._is_over() or not commit or commit in self._packed:
            return self._is_over()
        self._begin(checkout, workspace, commit)
        return self._is_over()

    def changes(self, commit: str) -> list[Change]:
        """The changes that put the commit into the store, unless it is there."""
        piece = self._packed.get(commit)
        return [Put(piece)] if piece and not self._parts.store.pieces([commit]) else []

    def _begin(self, checkout: Checkout, workspace: Workspace, commit: str) -> None:
        def pack() -> None:
            tip = commit or checkout.commit(workspace)
            if tip and tip not in self._packed and (commit or tip != workspace.base):
                self._packed[tip] = None
                *parts, last = checkout.pack(workspace, tip) or (None,)
                self._parts_of += parts
                self._packed[tip] = last

        self._job = self._parts.jobs.begin(pack)

    def _is_over(self) -> bool:
        if self._job is not None and not self._job.done():
            return False
        job, self._job = self._job, None
        with suppress(FleetError, OSError):  # a damaged repository: the run reports it
            if job is not None:
                job.result()
        while self._parts_of:
            with suppress(Conflict):  # another run made the same commit
                self._parts.store.commit([Put(self._parts_of[0])], [])
            del self._parts_of[0]
        return True
