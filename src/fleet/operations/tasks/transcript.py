"""Read the transcript of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.access import Permission
from fleet.domain.addressing import without_private
from fleet.domain.data import dataclass
from fleet.domain.errors import BadInput
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.addresses import reader_of
from fleet.operations.shared.names import the_run

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context

MAX_BYTES = 1 << 24


@dataclass(frozen=True, slots=True)
class Spoken:
    """Lines of a transcript as the coder wrote them, and where the next ones start.

    Messages to the agent that the caller may not read are replaced.
    """

    run: str
    coder: str
    lines: tuple[str, ...]
    offset: int
    live: bool


@dataclass(frozen=True, slots=True)
class ReadTranscript(Request[Spoken]):
    """`name` is a run, or a task for its newest run. `limit` is in bytes."""

    name: str
    offset: int = 0
    limit: int = 1 << 20


def read(context: Context, request: ReadTranscript) -> Spoken:
    if request.offset < 0 or not 1 <= request.limit <= MAX_BYTES:
        raise BadInput(
            f"Cannot read {request.limit} bytes at offset {request.offset}.",
            fix=f"Start at 0 or later, and read 1 to {MAX_BYTES} bytes.",
        )
    run = the_run(context, request.name, Permission.READ)
    chunk = context.transcripts().read(
        run.id, request.offset, limit=request.limit, final=not run.live
    )
    lines, reader = chunk.lines, reader_of(context.store, context.actor)
    if lines and not reader.leads:
        lines = without_private(lines, context.store.messages(run.task), reader)
    return Spoken(run.id, run.choice.coder, lines, chunk.offset, run.live)


OPERATIONS = (
    Operation("run.transcript", ReadTranscript, Permission.READ, read, "Read a run's transcript."),
)
