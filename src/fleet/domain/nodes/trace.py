"""The relay's record of one request, and how it is written to and read from a line."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput
from fleet.domain.nodes.route import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

SECOND = 1_000_000
SERVER_ERROR = 500  # the first status that blames the server
WRONG_KEY = 401  # the gateway was restarted with another key after the run had begun
NOT_SERVED = {401, 402, 404, 429}  # because of the key, the credit, the model or the quota
FARTHEST = 2.5e17  # microseconds: the year 9892; NaN is not below it either
WORDS = ("agent", "session", "model", "wire", "node", "upstream")
TIMES = ("wait", "ttft", "total")  # the keys of `Times` in a line, in their order
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
AGO = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
OF_THE_DAY = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")


class TraceSource(NamedTuple):
    """The run that sent a request, and the directory of its fleet.yaml; empty: unknown."""

    run: str = ""
    project: str = ""


class TokenCounts(NamedTuple):
    prompt: int = 0
    output: int = 0
    cached: int = 0


class Times(NamedTuple):
    """Seconds: in the queue, to the first piece of the reply, and in total."""

    wait: float = 0.0
    first: float = 0.0
    total: float = 0.0


@dataclass(slots=True)
class Trace:
    """The relay fills it in as it goes. It holds no prompt, no reply and no key.

    `at` is in UTC microseconds. `cost` is in dollars; None when the node does not report it. `why`
    holds the estimates, and what went wrong.
    """

    at: int
    agent: str = ""
    session: str = ""
    model: str = ""
    wire: str = ""
    node: str = ""
    upstream: str = ""
    source: TraceSource = field(default_factory=TraceSource)
    tokens: TokenCounts = field(default_factory=TokenCounts)
    times: Times = field(default_factory=Times)
    cost: float | None = None
    retries: int = 0
    outcome: str = "failed"  # ok, cancelled, failed or refused
    status: int = 0
    why: dict[str, Any] = field(default_factory=dict)

    @property
    def ended_at(self) -> int:
        """When the request ended, in UTC microseconds; traces are written in this order."""
        return self.at + round(self.times.total * SECOND)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """How long each node would have taken, the chosen one first."""
        values = self.why.get("estimates")
        rows = [row for row in values if isinstance(row, dict)] if isinstance(values, list) else []
        estimates = [_estimate(row) for row in rows]
        return tuple(sorted(estimates, key=lambda each: each.node != self.node))

    @property
    def tried(self) -> tuple[str, ...]:
        """The nodes that failed before, each with its reason."""
        failures = self.why.get("failed")
        return tuple(str(each) for each in failures) if isinstance(failures, list) else ()

    @property
    def error(self) -> str:
        return _word(self.why.get("error"))

    def is_of(self, run: str, agent: str) -> bool:
        """Whether this run sent the request; if its run is unknown, whether this agent did."""
        return self.source.run == run or (not self.source.run and self.agent == agent)

    @property
    def is_fault_of_nodes(self) -> bool:
        """Whether a valid request got no reply, or an incomplete one."""
        refused = self.outcome == "refused" and (
            self.status >= SERVER_ERROR or self.status == WRONG_KEY
        )
        bad_request = 400 <= self.status < SERVER_ERROR and self.status not in NOT_SERVED
        broken = self.outcome == "failed" and not bad_request
        late = self.outcome == "cancelled" and bool(self.error)  # its client gave up waiting
        return refused or broken or late


class TraceFilter(NamedTuple):
    """A filter of traces; empty and 0: any."""

    agent: str = ""
    node: str = ""
    since: int = 0
    project: str = ""

    def takes(self, trace: Trace) -> bool:
        return (
            self.agent in {"", trace.agent}
            and self.node in {"", trace.node}
            and self.project in {"", trace.source.project}
            and trace.at >= self.since
        )


def written(trace: Trace) -> str:
    """The line without its newline; `read` reads it."""
    fields: dict[str, Any] = {"at": trace.at}
    fields |= {name: getattr(trace, name) for name in WORDS}
    fields |= {f"{name}_tokens": count for name, count in trace.tokens._asdict().items()}
    fields |= {name: round(took, 6) for name, took in zip(TIMES, trace.times, strict=True)}
    fields["cost"] = None if trace.cost is None else round(trace.cost, 6)
    fields |= {name: getattr(trace, name) for name in ("retries", "outcome", "status", "why")}
    fields |= {name: value for name, value in trace.source._asdict().items() if value}
    return json.dumps(fields, ensure_ascii=False)


def read(line: str | bytes) -> Trace | None:
    """The trace in this line; None when the line is incomplete or not a trace."""
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    if not isinstance(fields, dict) or not isinstance(fields.get("at"), int):
        return None
    if not 0 <= fields["at"] < FARTHEST:
        return None
    why, cost = fields.get("why"), fields.get("cost")
    return Trace(
        at=fields["at"],
        **{name: _word(fields.get(name)) for name in WORDS},
        source=TraceSource(*(_word(fields.get(name)) for name in TraceSource._fields)),
        tokens=TokenCounts(*(_whole(fields.get(f"{name}_tokens")) for name in TokenCounts._fields)),
        times=Times(*(_number(fields.get(name)) for name in TIMES)),
        cost=_number(cost) if isinstance(cost, (int, float)) else None,
        retries=_whole(fields.get("retries")),
        outcome=_word(fields.get("outcome")),
        status=_whole(fields.get("status")),
        why=why if isinstance(why, dict) else {},
    )


def chosen(lines: Iterable[str | bytes], wanted: TraceFilter) -> Iterator[Trace]:
    for line in lines:
        trace = read(line)
        if trace is not None and wanted.takes(trace):
            yield trace


def since(text: str, now: datetime) -> int:
    """The moment that `90s`, `15m`, `2h`, `3d`, `14:30` or `2026-11-02T14:30` means, in UTC µs.

    `now` has a time zone, which also counts for a text without one.
    """
    if match := AGO.fullmatch(text):
        try:
            return _micros(now - timedelta(seconds=float(match[1]) * UNITS[match[2]]))
        except OverflowError:  # before the calendar begins
            return 0
    if match := OF_THE_DAY.fullmatch(text):
        hour, minute, second = (int(part or 0) for part in match.groups())
        if hour < 24 and minute < 60 and second < 60:
            then = now.replace(hour=hour, minute=minute, second=second, microsecond=0)
            return _micros(then if then <= now else then - timedelta(days=1))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BadInput(
            f"'{text}' is not a time.",
            fix="Give how long ago (90s, 15m, 2h, 3d), a time (14:30) or a date (2026-11-02T14:30).",
        ) from None
    return _micros(moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo))


def _micros(moment: datetime) -> int:
    return int(moment.timestamp() * SECOND)


def _estimate(row: Mapping[str, Any]) -> Estimate:
    names = ("wait", "load", "prefill", "decode", "evict")
    terms = {name: _number(row.get(name)) for name in names}
    weight = _number(row.get("weight")) or 1.0
    return Estimate(
        _word(row.get("node")), **terms, cached=_whole(row.get("cached")), weight=weight
    )


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int:
    return int(_number(value))


def _number(value: object) -> float:
    """Zero for what is not a number: another program or a person may have written the line."""
    if not isinstance(value, (int, float)) or not abs(value) < FARTHEST:
        return 0.0
    return float(value)
