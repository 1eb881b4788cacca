"""What a project declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.fleet import Fleet

Settings_co = TypeVar("Settings_co", covariant=True)


class Gated(Protocol):
    """The settings, of runs or of landing, with the command that work must pass."""

    @property
    def gate(self) -> str: ...


class Landed(Gated, Protocol):
    """The settings of landing, which apply where a task has none of its own."""

    @property
    def onto(self) -> str: ...

    @property
    def push(self) -> bool: ...

    @property
    def pr(self) -> bool: ...

    @property
    def merge(self) -> bool: ...

    @property
    def remote(self) -> str: ...


class Spending(Protocol):
    """The settings for what a task may cost; 0: not limited."""

    @property
    def usd(self) -> float: ...

    @property
    def tokens(self) -> int: ...

    @property
    def minutes(self) -> float: ...


class Chosen(Protocol):
    """The settings that apply where a task has none, and those that may keep it from running."""

    @property
    def max_concurrent(self) -> int: ...

    @property
    def max_depth(self) -> int: ...

    @property
    def coder(self) -> str: ...

    @property
    def model(self) -> str: ...

    @property
    def run(self) -> Gated: ...

    @property
    def land(self) -> Landed: ...

    @property
    def budget(self) -> Spending: ...


class ShownSetting(NamedTuple):
    """A setting to show: without secrets, and with a long value cut.

    `origin`: its file and line, or what else sets it.
    """

    setting: str
    text: str
    origin: str


class World(Protocol[Settings_co]):
    """What a project declares. Operations need the settings in `Chosen`, runs need all."""

    @property
    def settings(self) -> Settings_co: ...

    @property
    def fleet(self) -> Fleet: ...

    @property
    def withheld(self) -> frozenset[str]:
        """The project's settings that have no effect, because the user has not trusted them."""

    def for_people(self) -> Sequence[ShownSetting]:
        """All settings, in the order of their reference page."""
