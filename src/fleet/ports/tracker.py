"""Issues of another program, beads, that become tasks."""

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
    """The program `bd`. All methods raise `Unavailable` when it cannot be run or refuses."""

    def ready(self, limit: int) -> Sequence[Bead]: ...

    def held(self) -> Sequence[Bead]:
        """Return the beads in progress that this Fleet has claimed."""

    def claim(self, bead: str) -> bool:
        """Claim a bead; return False if that is refused, most likely as it is claimed already."""

    def tell(self, bead: str, act: str, text: str) -> None:
        """Update a bead. `act`: comment, close, block, release or resume."""

    def wanted(self, bead: str) -> Mapping[str, str]:
        """Return where to work on the bead: cwd, project, and perhaps coder and model."""
