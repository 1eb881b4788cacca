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
    """The result of a look. `at`: when, in microseconds. `relay`: its status; None: none runs."""

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
    """`stale`: it runs with an older fleet.yaml. `version`: LiteLLM's; empty: not installed."""

    url: str
    version: str
    services: tuple[ServiceSeen, ...]
    stale: bool


class Machines(Protocol):
    """The machines of the fleet that this machine's settings declare."""

    @property
    def fleet(self) -> Fleet: ...

    def look(self) -> NodesSeen:
        """Look at the nodes, or return a look of a moment ago: concurrent callers share one."""

    def warm(self, wanted: Sequence[tuple[str, Serving]]) -> None:
        """Begin to load these models, except those that are being loaded already."""

    def warming(self) -> tuple[Warmth, ...]:
        """Return the progress of the last `warm`."""

    def traces(self, wanted: TraceFilter, *, after: int, limit: int) -> list[Trace]:
        """Return the newest traces of requests that ended after that time, oldest first."""

    def gateway(self) -> GatewaySeen: ...

    def gateway_log(self, *, limit: int) -> list[str]:
        """The last lines that LiteLLM wrote."""

    def evals(self, *, limit: int) -> list[Evaluation]:
        """The kept results of evals, newest first."""

    def evaluation(self, evaluation_id: str) -> Evaluation | None: ...
