"""What is remembered of names that clients choose."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")
MOST_REMEMBERED = 4096


class Recent(OrderedDict[K, V]):
    """The least recently noted makes way: Claude Code, for one, names each of its agents anew."""

    def note(self, key: K, value: V) -> None:
        self[key] = value
        self.move_to_end(key)
        while len(self) > MOST_REMEMBERED:
            self.popitem(last=False)
