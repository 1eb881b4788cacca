"""Another program's issues, which become tasks: beads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Bead(NamedTuple):
    id: str
    title: str
    description: str = ""
    priority: int = 2


class Tracker(Protocol):
    """The program `bd`. All raise `Unavailable` when it cannot be asked, or says no."""

    def ready(self, limit: int) -> Sequence[Bead]: ...

    def held(self) -> Sequence[Bead]:
        """The beads in progress that are ours."""

    def claim(self, bead: str) -> bool:
        """False: it was refused, most likely because somebody else has it."""

    def tell(self, bead: str, act: str, text: str) -> None:
        """`act`: comment, close, block, release or resume."""

    def wanted(self, bead: str) -> Mapping[str, str]:
        """Where it is to be done: cwd, project, and perhaps coder and model."""
