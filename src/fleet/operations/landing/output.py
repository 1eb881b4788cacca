"""What the gate of a landing prints, also while it still runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fleet.domain.access import Permission
from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.errors import NotFound
from fleet.domain.landing.landing import gate_name
from fleet.domain.limits import TextLimit, Whole
from fleet.operations.catalogue import Operation, Request
from fleet.operations.landing.landing import LandingName, plan_of, the_landing
from fleet.operations.shared.elsewhere import must_be_on

if TYPE_CHECKING:
    from fleet.domain.landing.landing import Landing
    from fleet.operations.catalogue import Context
    from fleet.ports import Chunk

MAX_BYTES = 1 << 20
LONGEST = 4000  # characters of a line


@dataclass(frozen=True, slots=True)
class GateOutput:
    """Lines that a gate has printed, and where the next ones start.

    `gate`: its name, which the next request sends along; empty: none has tested this landing yet.
    `commit`: what it tests, while it does. `live`: it runs. Of a longer line the first 4000
    characters.
    """

    landing: str
    gate: str
    commit: str
    lines: tuple[str, ...]
    offset: int
    live: bool


@dataclass(frozen=True, slots=True)
class ReadGateOutput(Request[GateOutput]):
    """`landing`: its id, or a task's. `gate`, `offset`: those of the last reply; `limit`: in bytes.

    Without `gate`: of the one that runs now, else of the last one; a candidate names its own. Once
    all is read of a gate that has ended, the reply is of the next one, from its beginning.

    A negative `offset`: from the first line that begins within so many bytes of the end.
    """

    landing: LandingName
    gate: Annotated[str, TextLimit(250, what="gate")] = ""
    offset: int = 0
    limit: Annotated[int, Whole(1, MAX_BYTES)] = 1 << 16


class _Gate(NamedTuple):
    name: str
    commit: str = ""
    live: bool = False


def read(context: Context, request: ReadGateOutput) -> GateOutput:
    landing = the_landing(context, request.landing)
    known = _gates(context, landing)
    gate = next((one for one in known if one.name == request.gate), None)
    offset = request.offset if gate or not request.gate else 0
    newest = next((one for one in known if one.live), known[0] if known else _Gate(""))
    gate = gate or newest
    chunk = _chunk(context, landing, gate, offset, request.limit)
    if not chunk.lines and not gate.live and newest != gate:
        gate, chunk = newest, _chunk(context, landing, newest, 0, request.limit)
    lines = tuple(line[:LONGEST] for line in chunk.lines)
    return GateOutput(landing.id, gate.name, gate.commit, lines, chunk.offset, gate.live)


def _gates(context: Context, landing: Landing) -> list[_Gate]:
    """Those of the trees that it is tested in, the smallest first, or was tested in last."""
    plan = sorted(plan_of(context.store, landing), key=lambda one: len(one.members))
    last = landing.evidence.result
    results = context.store.gate_results([*(one.result for one in plan), *([last] if last else [])])
    known = []
    for planned in plan:
        result = results.get(planned.result)
        ended = result.ended if result else 0
        if planned.tests(result):
            known.append(_Gate(gate_name(planned.result, ended + 1), planned.commit, live=True))
        known += [_Gate(gate_name(planned.result, n)) for n in range(ended, 0, -1)]
    if last in results:
        known += [_Gate(gate_name(last, n)) for n in range(results[last].ended, 0, -1)]
    return known


def _chunk(context: Context, landing: Landing, gate: _Gate, offset: int, limit: int) -> Chunk:
    from fleet.ports import Chunk  # noqa: PLC0415  # start-up time

    if not gate.name:
        return Chunk((), 0)
    final = not gate.live
    try:
        chunk = context.transcripts().read(gate.name, offset, limit=limit, final=final)
    except NotFound:  # it was removed by its age
        return Chunk((), 0)
    if not chunk.lines and not chunk.offset:
        train = context.store.trains()[landing.train]
        subject = f"The gate of {landing.id} {'runs' if gate.live else 'ran'}"
        command = f"fleet land show {landing.id} --follow"
        must_be_on(context, train.host, subject, "and its output is there.", command)
    return chunk


OPERATIONS = (
    Operation(
        "land.output",
        ReadGateOutput,
        Permission.READ,
        read,
        "Read what the gate of a landing prints, also while it runs.",
    ),
)
