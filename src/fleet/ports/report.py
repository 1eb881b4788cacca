"""Where the supervisor says what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fleet.domain.event import Event


class Report(Protocol):
    """A terminal, or the log that stands in for one."""

    def line(self, text: str) -> None: ...

    def warning(self, text: str, at: int) -> None: ...

    def event(self, event: Event) -> None: ...
