"""What a project declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from fleet.domain.fleet import Fleet

Settings_co = TypeVar("Settings_co", covariant=True)


class Chosen(Protocol):
    """Of the settings, what a task falls back on and what may hold it."""

    @property
    def max_concurrent(self) -> int: ...

    @property
    def max_depth(self) -> int: ...

    @property
    def coder(self) -> str: ...

    @property
    def model(self) -> str: ...


class World(Protocol[Settings_co]):
    """What is declared for one project. Operations need `Chosen` of its settings, runs all."""

    @property
    def settings(self) -> Settings_co: ...

    @property
    def fleet(self) -> Fleet: ...

    @property
    def withheld(self) -> frozenset[str]:
        """Settings of the project that do not count, because its user has not trusted them."""
