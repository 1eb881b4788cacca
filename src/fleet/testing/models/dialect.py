"""What the three dialects have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fleet.domain.data import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fleet.testing.models.script import Asked, Fail, Reply, Wait


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One server-sent event; without a `name`, only its data is sent."""

    data: Mapping[str, Any] | str
    name: str = ""


class ProviderDialect(Protocol):
    """How a provider is asked, and how it replies."""

    name: str

    def read(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        """The fields of an `Asked` that this dialect knows."""

    def stream(self, reply: Reply, request: Asked) -> Iterator[ServerSentEvent | Wait]: ...

    def whole(self, reply: Reply, request: Asked) -> dict[str, Any]: ...

    def failure(self, failed: Fail) -> dict[str, Any]: ...


def texts(content: Any) -> str:
    """A message's content: a string, or blocks of which the textual ones count."""
    if isinstance(content, str):
        return content
    blocks = [b for b in content or () if isinstance(b, dict)]
    return "\n".join(b["text"] for b in blocks if isinstance(b.get("text"), str))


def header(headers: Mapping[str, str], *names: str) -> str:
    """The first of these that was sent."""
    return next((headers[name] for name in names if headers.get(name)), "")
