"""Commits on their way from one host to another, in the store that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.data import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_BYTES = 4 << 20  # of one bundle; larger ones do not go through the store


@dataclass(frozen=True, slots=True)
class Piece:
    """A git bundle, in base64. Its id is the commit that it ends with.

    `needs`: commits that must be in a repository before it. `roots`: the first commits of its
    repository, by which that is known on every host, whatever its path.
    """

    id: str
    version: int
    data: str
    needs: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    at: int = 0


def in_order(wanted: Sequence[str], pieces: Mapping[str, Piece]) -> list[Piece]:
    """The pieces that bring these commits, each after those that it needs."""
    ordered: dict[str, Piece] = {}
    begun: set[str] = set()
    left = [(name, False) for name in reversed(wanted)]
    while left:
        name, is_ready = left.pop()
        piece = pieces.get(name)
        if piece is None or name in ordered:
            continue
        if is_ready:
            ordered[name] = piece
        elif name not in begun:
            begun.add(name)
            left.append((name, True))
            left += [(need, False) for need in piece.needs]
    return [*ordered.values()]


def unknown(pieces: Mapping[str, Piece], known: Iterable[str]) -> list[str]:
    """What these pieces need, and nobody has asked for yet."""
    needed = (need for piece in pieces.values() for need in piece.needs)
    return [*dict.fromkeys(need for need in needed if need not in {*known})]
