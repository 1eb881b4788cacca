"""The relay's traces: to which node each request went, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.limits import Name, Whole
from fleet.domain.nodes.trace import SECOND, TraceFilter
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.names import team_in_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.nodes.route import Estimate
    from fleet.domain.nodes.trace import Trace
    from fleet.operations.catalogue import Context
    from fleet.ports import Store

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
    of each node that could have answered, the chosen one first.
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
    project: str = ""  # the directory of its fleet.yaml


@dataclass(frozen=True, slots=True)
class ListTraces(Request[tuple[TraceRow, ...]]):
    """The newest by their end, oldest first, of the last 2 MB that the relay wrote. `after`: only those that ended later.

    A coordinator sees all. Others see what runs of their team asked for, of the newest 500.
    """

    agent: Name = ""
    node: Name = ""
    after: Time = 0
    limit: Annotated[int, Whole(1, MAX_TRACES)] = 100


def list_traces(context: Context, request: ListTraces) -> tuple[TraceRow, ...]:
    query, team = TraceFilter(request.agent, request.node), team_in_view(context)
    most = MAX_TRACES if team else request.limit
    traces = context.machines().traces(query, after=request.after, limit=most)
    if team:
        traces = _of_team(context.store, traces, team)[-request.limit :]
    return tuple(map(trace_row, traces))


def _of_team(store: Store, traces: Sequence[Trace], team: str) -> list[Trace]:
    """The traces of requests that a run of the team sent."""
    tasks = store.tasks_by_id(sorted({_task_of(trace) for trace in traces} - {""}))
    return [t for t in traces if (task := tasks.get(_task_of(t))) and task.team == team]


def _task_of(trace: Trace) -> str:
    """The task whose run sent the request; empty when it is unknown."""
    return trace.source.run.rpartition(".")[0]


def trace_row(trace: Trace) -> TraceRow:
    return TraceRow(
        at=trace.at,
        ended_at=trace.ended_at,
        agent=trace.agent,
        session=trace.session,
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
        project=trace.source.project,
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
        "List the requests that the relay answered, and why each went to its node.", outside=True,
    ),
)  # fmt: skip
