"""Work in the background of the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Job(Protocol):
    """Slow work that was begun in the background."""

    def done(self) -> bool: ...

    def result(self) -> None:
        """Raise the error with which the work ended, if any."""


class Jobs(Protocol):
    def begin(self, act: Callable[[], None]) -> Job: ...


class Beside(Protocol):
    """A service that has its own threads while the process runs."""

    def begin(self) -> None: ...

    def end(self) -> None: ...
