"""The nodes that serve models, the gateway in front of them, and what it did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.domain.evals.result import Evaluation
    from fleet.domain.fleet import Fleet, Serving
    from fleet.domain.nodes.inventory import SeenNode, Warmth
    from fleet.domain.nodes.trace import Trace, TraceFilter


class NodesSeen(NamedTuple):
    """`at`: when that was, in microseconds. `relay`: what it says of itself; None when none runs."""

    at: int
    seen: tuple[SeenNode, ...]
    relay: Mapping[str, Any] | None = None


class ServiceSeen(NamedTuple):
    """LiteLLM or the relay. `since`: when it was started, in microseconds; 0 when it does not run."""

    name: str
    running: bool
    answers: bool
    port: int
    since: int
    restarts: int = 0  # how often it was started again after it had died


class GatewaySeen(NamedTuple):
    """`stale`: it runs with another fleet.yaml. `version`: of LiteLLM; empty: not installed."""

    url: str
    version: str
    services: tuple[ServiceSeen, ...]
    stale: bool


class Machines(Protocol):
    """The machines of the fleet that this machine's settings declare."""

    @property
    def fleet(self) -> Fleet: ...

    def look(self) -> NodesSeen:
        """A look of a moment ago counts too: however many ask, the nodes are asked once."""

    def warm(self, wanted: Sequence[tuple[str, Serving]]) -> None:
        """Begin to load these models; those that are being loaded already are left alone."""

    def warming(self) -> tuple[Warmth, ...]:
        """How far the last such request has come."""

    def traces(self, wanted: TraceFilter, *, after: int, limit: int) -> list[Trace]:
        """The newest of them, oldest first, of those that ended after that time."""

    def gateway(self) -> GatewaySeen: ...

    def gateway_log(self, *, limit: int) -> list[str]:
        """The last lines that LiteLLM wrote."""

    def evals(self, *, limit: int) -> list[Evaluation]:
        """The kept results of evals, newest first."""

    def evaluation(self, evaluation_id: str) -> Evaluation | None: ...
