"""Work that goes on beside the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Job(Protocol):
    """Something slow that was begun beside everything else."""

    def done(self) -> bool: ...

    def result(self) -> None:
        """Raise what it raised."""


class Jobs(Protocol):
    def begin(self, act: Callable[[], None]) -> Job: ...


class Beside(Protocol):
    """What goes on in threads of its own while we serve."""

    def begin(self) -> None: ...

    def end(self) -> None: ...
