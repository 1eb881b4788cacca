"""Runs: what they said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fleet.domain.access import Permission
from fleet.domain.errors import NotFound, Refused
from fleet.operations.catalogue import Operation, Request
from fleet.operations.naming import the_task

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context


@dataclass(frozen=True, slots=True)
class Spoken:
    """Lines of a transcript as the coder wrote them, and where the next ones start."""

    run: str
    coder: str
    lines: tuple[str, ...]
    offset: int
    live: bool


@dataclass(frozen=True, slots=True)
class ReadTranscript(Request[Spoken]):
    """`name` is a run, or a task: then its newest run."""

    name: str
    offset: int = 0
    limit: int = 1 << 20


def read(context: Context, request: ReadTranscript) -> Spoken:
    task = the_task(context, request.name, Permission.READ)
    run_id = request.name if "." in request.name else task.run_id
    if not run_id:
        raise Refused(f"{task.id} has not run yet.", fix=f"fleet show {task.id} says why.")
    try:
        run = context.store.run(run_id)
    except NotFound as error:
        raise NotFound(f"{task.id} has no run '{request.name}'.") from error
    chunk = context.transcripts.read(
        run_id, request.offset, limit=request.limit, final=not run.live
    )
    return Spoken(run_id, run.choice.coder, chunk.lines, chunk.offset, run.live)


OPERATIONS = (
    Operation(
        "run.transcript", ReadTranscript, Spoken, Permission.READ, read, "Read what a run said."
    ),
)
