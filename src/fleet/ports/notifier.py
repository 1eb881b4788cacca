"""Telling a person, and remembering which events were told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping


class Notifier(Protocol):
    name: str

    def send(self, notice: Mapping[str, Any]) -> None:
        """The body of a notice. Raise `Unavailable` when it could not be told."""


class Mark(Protocol):
    """The number of the last event that was told; None when there is none yet."""

    def read(self) -> int | None: ...

    def write(self, number: int | None) -> None: ...
