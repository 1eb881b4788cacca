"""LiteLLM and the relay: whether they answer, and what LiteLLM wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.limits import OneOf, Whole
from fleet.domain.nodes.litellm_log import read
from fleet.operations.catalogue import Operation, Request

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context

MAX_LINES = 1000
LONGEST_ENTRY = 4000  # characters of an entry
SEVERITIES = ("quiet", "plain", "good", "warning", "error")


@dataclass(frozen=True, slots=True)
class ServiceRow:
    name: str
    running: bool
    answers: bool
    port: int
    since: Time | None
    restarts: int


@dataclass(frozen=True, slots=True)
class GatewayRow:
    """`stale`: they run with another fleet.yaml; `fleet gateway start` reloads them."""

    url: str
    version: str
    services: tuple[ServiceRow, ...]
    stale: bool


@dataclass(frozen=True, slots=True)
class LogRow:
    """`severity`: quiet, plain, good, warning or error. `detail`: a traceback."""

    severity: str
    text: str
    at: str
    level: str
    detail: str


@dataclass(frozen=True, slots=True)
class ShowGateway(Request[GatewayRow]):
    pass


@dataclass(frozen=True, slots=True)
class ReadGatewayLog(Request[tuple[LogRow, ...]]):
    """Of the last `lines`, those of this severity; empty: all. Oldest first."""

    severity: Annotated[str, OneOf(("", *SEVERITIES), "severity")] = ""
    lines: Annotated[int, Whole(1, MAX_LINES)] = 200


def show_gateway(context: Context, _request: ShowGateway) -> GatewayRow:
    seen = context.machines().gateway()
    services = tuple(
        ServiceRow(s.name, s.running, s.answers, s.port, s.since or None, s.restarts)
        for s in seen.services
    )
    return GatewayRow(seen.url, seen.version, services, seen.stale)


def read_log(context: Context, request: ReadGatewayLog) -> tuple[LogRow, ...]:
    entries = map(read, context.machines().gateway_log(limit=request.lines))
    return tuple(
        LogRow(e.grave, e.text[:LONGEST_ENTRY], e.at, e.level, e.detail[:LONGEST_ENTRY])
        for e in entries
        if request.severity in {"", e.grave} and e.text.strip()
    )


_P = Permission
OPERATIONS = (
    Operation("gateway.show", ShowGateway, _P.READ, show_gateway,
              "Show whether LiteLLM and the relay answer.", outside=True),
    Operation("gateway.log", ReadGatewayLog, _P.ADMIN, read_log,
              "Read what LiteLLM wrote, by severity.", outside=True, reads=True),
)  # fmt: skip
