"""A blob in a service whose things have a limit: an index names the parts that it consists of.

Each writer gives its parts a mark of its own, so nobody ever reads a mixture of two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple
from fleet.domain.errors import StoreAway

if TYPE_CHECKING:
    from collections.abc import Callable


class BlobParts(NamedTuple):
    mark: str = ""
    total: int = 0


NO_PARTS = BlobParts()


def whole(index: Callable[[], BlobParts], read: Callable[[BlobParts], list[bytes]]) -> bytes | None:
    """The blob; None: there is none. While it is read a writer may replace it: then once more."""
    parts = index()
    while parts.total:
        bodies = read(parts)
        if len(bodies) == parts.total:
            return b"".join(bodies)
        before, parts = parts, index()
        if parts == before:
            raise StoreAway(
                f"A part of {parts.mark} is missing.",
                fix="Restore it from the service's own backup.",
            )
    return None
