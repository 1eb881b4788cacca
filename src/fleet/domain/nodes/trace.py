"""What the relay records of a request, as one line that is written and read here."""

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
FARTHEST = 2.5e17  # microseconds: the year 9892, and a number that is none is not below it
WORDS = ("agent", "session", "model", "wire", "node", "upstream")
TIMES = ("wait", "ttft", "total")  # what a line calls the times, in their order
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
AGO = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")
OF_THE_DAY = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")


class Tokens(NamedTuple):
    prompt: int = 0
    output: int = 0
    cached: int = 0


class Times(NamedTuple):
    """Seconds: in the line, to the first piece of the reply, and all of it."""

    wait: float = 0.0
    first: float = 0.0
    total: float = 0.0


@dataclass(slots=True)
class Trace:
    """The relay fills it in as it goes. No prompt, no reply and no key is in it.

    `at` in UTC microseconds. `cost` in dollars; None where the node does not say it. `why`: the
    estimates, and what went wrong.
    """

    at: int
    agent: str = ""
    session: str = ""
    model: str = ""
    wire: str = ""
    node: str = ""
    upstream: str = ""
    tokens: Tokens = field(default_factory=Tokens)
    times: Times = field(default_factory=Times)
    cost: float | None = None
    retries: int = 0
    outcome: str = "failed"  # ok, cancelled, failed or refused
    status: int = 0
    why: dict[str, Any] = field(default_factory=dict)

    @property
    def estimates(self) -> tuple[Estimate, ...]:
        """What each node would have taken, the chosen one first."""
        held = self.why.get("estimates")
        rows = [row for row in held if isinstance(row, dict)] if isinstance(held, list) else []
        found = [_estimate(row) for row in rows]
        return tuple(sorted(found, key=lambda each: each.node != self.node))

    @property
    def tried(self) -> tuple[str, ...]:
        """Which nodes failed before, each with its reason."""
        held = self.why.get("failed")
        return tuple(str(each) for each in held) if isinstance(held, list) else ()

    @property
    def error(self) -> str:
        return _word(self.why.get("error"))


class Wanted(NamedTuple):
    """Which traces; empty and 0: any."""

    agent: str = ""
    node: str = ""
    since: int = 0

    def takes(self, trace: Trace) -> bool:
        return (
            self.agent in {"", trace.agent}
            and self.node in {"", trace.node}
            and trace.at >= self.since
        )


def written(trace: Trace) -> str:
    """The line without its end; `read` reads it."""
    held: dict[str, Any] = {"at": trace.at}
    held |= {name: getattr(trace, name) for name in WORDS}
    held |= {f"{name}_tokens": count for name, count in trace.tokens._asdict().items()}
    held |= {name: round(took, 6) for name, took in zip(TIMES, trace.times, strict=True)}
    held["cost"] = None if trace.cost is None else round(trace.cost, 6)
    held |= {name: getattr(trace, name) for name in ("retries", "outcome", "status", "why")}
    return json.dumps(held, ensure_ascii=False)


def read(line: str | bytes) -> Trace | None:
    """None for what is no trace: a line that was torn, or that somebody wrote into the file."""
    try:
        held = json.loads(line)
    except ValueError:
        return None
    if not isinstance(held, dict) or not isinstance(held.get("at"), int):
        return None
    if not 0 <= held["at"] < FARTHEST:
        return None
    why, cost = held.get("why"), held.get("cost")
    return Trace(
        at=held["at"],
        **{name: _word(held.get(name)) for name in WORDS},
        tokens=Tokens(*(_whole(held.get(f"{name}_tokens")) for name in Tokens._fields)),
        times=Times(*(_number(held.get(name)) for name in TIMES)),
        cost=_number(cost) if isinstance(cost, (int, float)) else None,
        retries=_whole(held.get("retries")),
        outcome=_word(held.get("outcome")),
        status=_whole(held.get("status")),
        why=why if isinstance(why, dict) else {},
    )


def chosen(lines: Iterable[str | bytes], wanted: Wanted) -> Iterator[Trace]:
    for line in lines:
        trace = read(line)
        if trace is not None and wanted.takes(trace):
            yield trace


def since(text: str, now: datetime) -> int:
    """The moment that `90s`, `15m`, `2h`, `3d`, `14:30` or `2026-11-02T14:30` means, in UTC µs.

    `now` has a time zone, and what is said without one is said in it.
    """
    if found := AGO.fullmatch(text):
        try:
            return _micros(now - timedelta(seconds=float(found[1]) * UNITS[found[2]]))
        except OverflowError:  # before the calendar begins
            return 0
    if found := OF_THE_DAY.fullmatch(text):
        hour, minute, second = (int(part or 0) for part in found.groups())
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
    terms = {name: _number(row.get(name)) for name in ("wait", "load", "prefill", "decode")}
    return Estimate(_word(row.get("node")), **terms, cached=_whole(row.get("cached")))


def _word(said: object) -> str:
    return said if isinstance(said, str) else ""


def _whole(said: object) -> int:
    return int(_number(said))


def _number(said: object) -> float:
    """Zero for what is none: a line may be of another program, or of another hand."""
    if not isinstance(said, (int, float)) or not abs(said) < FARTHEST:
        return 0.0
    return float(said)
