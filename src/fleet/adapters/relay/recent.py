"""A dictionary of limited size, for names that clients choose."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")
MOST_REMEMBERED = 4096


class Recent(OrderedDict[K, V]):
    """Drops the least recently noted keys; Claude Code, for one, uses new names all the time."""

    def note(self, key: K, value: V) -> None:
        self[key] = value
        self.move_to_end(key)
        while len(self) > MOST_REMEMBERED:
            self.popitem(last=False)
