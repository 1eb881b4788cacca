"""Commits on their way from one host to another, in the store that they share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.data import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_BYTES = 4 << 20  # of a bundle in one row of the store
MOST_ROWS = 8  # of one bundle; larger ones do not go through the store


@dataclass(frozen=True, slots=True)
class Piece:
    """A git bundle, in base64. Its id is the commit that it ends with.

    `needs`: commits that must be in a repository before it, and the ids of its other parts if it is
    a large one: `COMMIT/1` and so on. `roots`: the first commits of its repository.
    """

    id: str
    version: int
    data: str
    needs: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    at: int = 0

    @property
    def is_part(self) -> bool:
        return "/" in self.id

    @property
    def commits(self) -> tuple[str, ...]:
        """What must be in a repository before it."""
        return tuple(need for need in self.needs if "/" not in need)


def split(
    commit: str, bundle: bytes, needs: Iterable[str], roots: tuple[str, ...]
) -> tuple[Piece, ...]:
    """The commit's piece after all its other parts; empty: the bundle is too large."""
    first, *rest = [bundle[at : at + MAX_BYTES] for at in range(0, len(bundle), MAX_BYTES)]
    if len(rest) >= MOST_ROWS:
        return ()
    parts = [Piece(f"{commit}/{n}", 0, _text(data)) for n, data in enumerate(rest, 1)]
    names = (part.id for part in parts)
    return (*parts, Piece(commit, 0, _text(first), (*needs, *names), roots))


def whole(piece: Piece, pieces: Mapping[str, Piece]) -> bytes | None:
    """The bundle; None: a part is missing."""
    from base64 import b64decode  # noqa: PLC0415  # every command loads this module

    rest = [pieces.get(need) for need in piece.needs if "/" in need]
    if None in rest:
        return None
    return b"".join(b64decode(part.data, validate=True) for part in (piece, *rest) if part)


def _text(data: bytes) -> str:
    from base64 import b64encode  # noqa: PLC0415  # likewise

    return b64encode(data).decode("ascii")


def in_order(wanted: Sequence[str], pieces: Mapping[str, Piece]) -> list[Piece]:
    """The pieces that bring these commits, each after those that it needs."""
    ordered: dict[str, Piece] = {}
    begun: set[str] = set()
    queue = [(name, False) for name in reversed(wanted)]
    while queue:
        name, is_ready = queue.pop()
        piece = pieces.get(name)
        if piece is None or name in ordered:
            continue
        if is_ready:
            ordered[name] = piece
        elif name not in begun:
            begun.add(name)
            queue.append((name, True))
            queue += [(need, False) for need in piece.needs]
    return [*ordered.values()]


def unknown(pieces: Mapping[str, Piece], known: Iterable[str]) -> list[str]:
    """What these pieces need, and nobody has asked for yet."""
    needed = (need for piece in pieces.values() for need in piece.needs)
    return [*dict.fromkeys(need for need in needed if need not in {*known})]
