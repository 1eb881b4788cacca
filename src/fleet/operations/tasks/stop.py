"""Stop all runs of one host. Their tasks do not fail by that."""

from __future__ import annotations

from dataclasses import replace

from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.event import Kind
from fleet.domain.run import Wanted
from fleet.operations.catalogue import Context, Operation, Request
from fleet.ports import Put


@dataclass(frozen=True, slots=True)
class Stopping:
    run: str
    task: str


@dataclass(frozen=True, slots=True)
class StopRuns(Request[tuple[Stopping, ...]]):
    """Ends every run of the host; their tasks continue when a supervisor runs again."""

    host: str


def stop(context: Context, request: StopRuns) -> tuple[Stopping, ...]:
    """All in one commit. A run that is being cancelled or stopped already stays so."""
    live = context.store.live_runs(host=request.host)
    fresh = [run for run in live if not run.wanted]
    if fresh:
        events = [context.event(Kind.RUN_STOP_WANTED, run.task, run=run.id) for run in fresh]
        context.commit([Put(replace(run, wanted=Wanted.YIELD)) for run in fresh], *events)
    return tuple(Stopping(run.id, run.task) for run in live)


OPERATIONS = (
    Operation("run.stop_all", StopRuns, Permission.ADMIN, stop, "End all runs of a host."),
)
