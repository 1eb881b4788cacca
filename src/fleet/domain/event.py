"""One fact, numbered in the order it was recorded, never changed."""

from __future__ import annotations

from dataclasses import field
from typing import Any

from fleet.domain.data import dataclass

VERSION = 1  # of what events of every type carry; a type that changes its data raises its own


@dataclass(frozen=True, slots=True)
class Event:
    """`number` is given by the store; a reader that has seen N never sees a new one below N."""

    type: str
    task: str
    actor: str
    at: int
    run: str = ""
    data: dict[str, Any] = field(default_factory=dict)
    version: int = VERSION
    number: int = 0
