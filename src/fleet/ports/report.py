"""Where the supervisor reports what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.domain.event import Event
    from fleet.ports.store import Store


class Report(Protocol):
    """A terminal or a log. All methods are called in one thread."""

    def began(self, store: Store) -> None:
        """The supervisor has started; `store` has what its events are about."""

    def line(self, text: str) -> None: ...

    def warning(self, text: str, at: int) -> None: ...

    def event(self, event: Event) -> None: ...

    def step(self) -> None:
        """Called after every round."""

    def left(self, tasks: Mapping[str, str]) -> None:
        """Report unfinished tasks, each with why the ending supervisor does not wait for it."""

    def ended(self) -> None:
        """The supervisor has stopped; the store is still open."""
