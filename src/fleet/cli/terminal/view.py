"""What a command returns: a `Result`, and the ways to look at one."""

from __future__ import annotations

from collections.abc import Callable, Sequence  # noqa: TC003  # a NamedTuple reads its types
from typing import Any, Literal, TypeAlias

from fleet.domain.data import NamedTuple

Style = Literal["", "bold", "dim", "green", "yellow", "red"]


class Cell(NamedTuple):
    """One value with a style: bold is an override, dim a default."""

    text: str
    style: Style = ""


Value: TypeAlias = Cell | str | int | None  # None is shown as `-`


class Column(NamedTuple):
    """`flexible` columns are cut with `…` on a narrow terminal, down to `least` characters.

    A terminal does not show `spare` columns that are empty. Where the room is too small, it leaves out
    others, the highest number first, until every column has the characters that it `wants`.

    A `path` begins with `~` on a terminal, is cut at its beginning, and is left out if all are the same.
    """

    title: str
    right: bool = False
    flexible: bool = False
    least: int = 8
    spare: int = 0
    wants: int = 0
    path: bool = False


class Table(NamedTuple):
    """`empty` is said in place of a table without rows."""

    columns: Sequence[Column | str]
    rows: Sequence[Sequence[Value]]
    empty: str = ""


class Pairs(NamedTuple):
    """Labels with their values, one per line; line breaks in a value are kept."""

    pairs: Sequence[tuple[str, Value]]


class Text(NamedTuple):
    """Lines for a person, with whatever a terminal would obey made visible."""

    text: str
    style: Style = ""


class Raw(NamedTuple):
    """Exactly these characters, to the last byte: a script, or a file."""

    text: str


class Stack(NamedTuple):
    """Views under each other, each with a heading or none (`""`)."""

    parts: Sequence[tuple[str, View]]


class ItemStream(NamedTuple):
    """`data` is read item by item, and each is shown as it comes: a line, or nothing for None.

    With `--json` every item is an envelope on a line of its own.
    """

    line: Callable[[Any], Cell | str | None]


View: TypeAlias = Table | Pairs | Text | Raw | Stack | ItemStream


class Result(NamedTuple):
    """`data` is what `--json` prints as `{"fleet": 1, "kind": kind, "data": data}`.

    `view` is what a person sees: no value gets there by itself. `notes` are asides (stderr).
    """

    kind: str
    data: Any
    view: View
    notes: Sequence[str] = ()
    exit_status: int = 0
