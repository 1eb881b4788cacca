"""Which clones on different hosts are of one project: not by their paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping


class Clone(NamedTuple):
    """What a project is recognised by on every host.

    `roots`: the first commits of its repository. `remote`: its address as every host sees it; empty:
    it has none. `inside`: where the project is in the repository.
    """

    roots: tuple[str, ...]
    remote: str = ""
    inside: str = ""

    def is_same(self, other: Clone) -> bool:
        """A fork has the same first commits, and another remote."""
        if (self.roots, self.inside) != (other.roots, other.inside):
            return False
        return self.remote == other.remote or not (self.remote and other.remote)

    @staticmethod
    def of(body: Mapping[str, Any]) -> Clone:
        return Clone(tuple(body["roots"]), str(body["remote"]), str(body["inside"]))


def moved(path: str, old: str, new: str) -> str:
    """The path when the directory `old`, in which it may be, is at `new`."""
    if path == old:
        return new
    return new + path[len(old) :] if path.startswith(f"{old.rstrip('/')}/") else path
