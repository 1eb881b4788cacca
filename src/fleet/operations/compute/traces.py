"""What the relay did with each request, and why there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import GRANTS, Permission
from fleet.domain.data import dataclass
from fleet.domain.limits import Name, Whole
from fleet.domain.nodes.trace import SECOND, Wanted
from fleet.operations.catalogue import Operation, Request

if TYPE_CHECKING:
    from fleet.domain.nodes.route import Estimate
    from fleet.domain.nodes.trace import Trace
    from fleet.operations.catalogue import Context

MAX_TRACES = 500


@dataclass(frozen=True, slots=True)
class TermsRow:
    """What the relay expected of a node, in microseconds; `cached`: tokens of the prompt it held."""

    node: str
    wait: int
    load: int
    prefill: int
    decode: int
    total: int
    cached: int
    evict: int = 0  # of other conversations, which would be read again
    weight: float = 1.0  # how much the node is preferred


@dataclass(frozen=True, slots=True)
class TraceRow:
    """Durations are in microseconds, money in millionths of a dollar.

    `outcome`: ok, cancelled, failed or refused. `tried`: the nodes that failed before. `estimates`:
    of each node that could have answered, the chosen one first. `session` is for coordinators.
    """

    at: Time
    ended_at: Time
    agent: str
    session: str
    model: str
    node: str
    upstream: str
    wire: str
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    wait: int
    first: int
    total: int
    cost: int | None
    retries: int
    outcome: str
    status: int
    error: str | None
    tried: tuple[str, ...]
    estimates: tuple[TermsRow, ...]
    project: str = ""  # the directory of its fleet.yaml; for coordinators


@dataclass(frozen=True, slots=True)
class ListTraces(Request[tuple[TraceRow, ...]]):
    """The newest by their end, oldest first, of the last 2 MB that the relay wrote. `after`: only those that ended later."""

    agent: Name = ""
    node: Name = ""
    after: Time = 0
    limit: Annotated[int, Whole(1, MAX_TRACES)] = 100


def list_traces(context: Context, request: ListTraces) -> tuple[TraceRow, ...]:
    wanted = Wanted(request.agent, request.node)
    traces = context.machines().traces(wanted, after=request.after, limit=request.limit)
    is_admin = Permission.ADMIN in GRANTS[context.actor.role]
    return tuple(trace_row(trace, is_admin=is_admin) for trace in traces)


def trace_row(trace: Trace, *, is_admin: bool = True) -> TraceRow:
    """A session may be a run of another team."""
    return TraceRow(
        at=trace.at,
        ended_at=trace.ended_at,
        agent=trace.agent,
        session=trace.session if is_admin else "",
        model=trace.model,
        node=trace.node,
        upstream=trace.upstream,
        wire=trace.wire,
        prompt_tokens=trace.tokens.prompt,
        output_tokens=trace.tokens.output,
        cached_tokens=trace.tokens.cached,
        wait=_micros(trace.times.wait),
        first=_micros(trace.times.first),
        total=_micros(trace.times.total),
        cost=None if trace.cost is None else _micros(trace.cost),
        retries=trace.retries,
        outcome=trace.outcome,
        status=trace.status,
        error=trace.error or None,
        tried=trace.tried,
        estimates=tuple(map(_terms, trace.estimates)),
        project=trace.source.project if is_admin else "",
    )


def _terms(each: Estimate) -> TermsRow:
    return TermsRow(
        each.node,
        _micros(each.wait),
        _micros(each.load),
        _micros(each.prefill),
        _micros(each.decode),
        _micros(each.total),
        each.cached,
        _micros(each.evict),
        each.weight,
    )


def _micros(seconds: float) -> int:
    return round(seconds * SECOND)


OPERATIONS = (
    Operation(
        "trace.list", ListTraces, Permission.READ, list_traces,
        "List the requests that the relay answered, and why there.", outside=True,
    ),
)  # fmt: skip
