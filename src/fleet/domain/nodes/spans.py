"""Tasks, runs and requests as spans of a trace, with OpenTelemetry's names for attributes.

A span contains no title, prompt or reply: the collector may belong to somebody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple
from fleet.domain.run import Ending
from fleet.domain.task import TaskState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.domain.nodes.trace import Trace
    from fleet.domain.run import Run
    from fleet.domain.task import Task

Value = str | int | float | bool
GOOD = frozenset({Ending.SUCCEEDED, Ending.ASKED, Ending.YIELDED})


class TraceSpan(NamedTuple):
    """Times are UTC microseconds. `error`: why it failed; empty: it did not.

    `trace`, `id` and `parent` are names, from which the exporter makes ids.
    """

    name: str
    trace: str
    id: str
    parent: str
    begun: int
    ended: int
    attributes: Mapping[str, Value]
    error: str = ""
    outgoing: bool = False  # a request to another program


def trace_of(task: Task) -> str:
    """The name of the task's trace, which also contains its runs and their requests."""
    return f"{task.project}\n{task.id}\n{task.created_at}"


def of_task(task: Task) -> TraceSpan:
    failed = task.state in {TaskState.FAILED, TaskState.CANCELLED}
    return TraceSpan(
        f"task {task.id}",
        trace_of(task),
        task.id,
        "",
        task.created_at,
        max(task.created_at, task.tally.ended_at),
        _given(
            {
                "fleet.task.id": task.id,
                "fleet.task.state": str(task.state),
                "fleet.task.runs": task.tally.runs,
                "fleet.team": task.team,
                "fleet.route": task.choice.route if task.choice else "",
            }
        ),
        error=str(task.state) if failed else "",
    )


def of_run(task: Task, run: Run) -> TraceSpan:
    outcome, choice = run.outcome, run.choice
    ending = outcome.ending if outcome else Ending.LOST
    usage = outcome.usage if outcome else None
    return TraceSpan(
        f"invoke_agent {choice.agent}",
        trace_of(task),
        run.id,
        task.id,
        run.claimed_at,
        max(run.claimed_at, run.ended_at),
        _given(
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": choice.agent,
                "gen_ai.provider.name": choice.coder,
                "gen_ai.request.model": choice.model,
                "gen_ai.usage.input_tokens": usage.input if usage else 0,
                "gen_ai.usage.output_tokens": usage.output if usage else 0,
                "fleet.cost.usd": usage.usd if usage else 0.0,
                "fleet.task.id": task.id,
                "fleet.run.id": run.id,
                "fleet.run.ending": str(ending),
                "host.name": run.host,
            }
        ),
        error="" if ending in GOOD else str(ending),
    )


def of_request(trace: Trace, task: Task | None) -> TraceSpan:
    """`task`: that of the run that sent it; None: a person's program did."""
    name = f"{trace.at}\n{trace.agent}\n{trace.session}\n{trace.node}"
    return TraceSpan(
        f"chat {trace.model}",
        trace_of(task) if task else f"{trace.source.project}\n{name}",
        name,
        trace.source.run if task else "",
        trace.at,
        trace.ended_at,
        _given(
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.agent.name": trace.agent,
                "gen_ai.provider.name": trace.wire,
                "gen_ai.request.model": trace.model,
                "gen_ai.response.model": trace.upstream,
                "gen_ai.conversation.id": trace.session,
                "gen_ai.usage.input_tokens": trace.tokens.prompt,
                "gen_ai.usage.output_tokens": trace.tokens.output,
                "gen_ai.usage.cache_read.input_tokens": trace.tokens.cached,
                "gen_ai.response.time_to_first_chunk": trace.times.first,
                "fleet.wait_seconds": trace.times.wait,
                "fleet.cost.usd": trace.cost or 0.0,
                "fleet.node": trace.node,
                "fleet.retries": trace.retries,
                "fleet.run.id": trace.source.run,
                "http.response.status_code": trace.status,
            }
        ),
        error="" if trace.outcome in {"ok", "cancelled"} else str(trace.status or trace.outcome),
        outgoing=True,
    )


def _given(attributes: dict[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in attributes.items() if value not in ("", 0, 0.0)}
