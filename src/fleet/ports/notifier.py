"""Send notices to a person, and remember up to which event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Notifier(Protocol):
    name: str

    def send(self, notice: Mapping[str, Any]) -> None:
        """Send a notice; raise `Unavailable` when that failed."""


class Mark(Protocol):
    """Keeps the number of the last event that a notice was sent for; None: none yet."""

    def read(self) -> int | None: ...

    def write(self, number: int | None) -> None: ...
