"""What a command returns: a `Result`, and the ways to look at one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
    """

    title: str
    right: bool = False
    flexible: bool = False
    least: int = 8
    spare: int = 0
    wants: int = 0


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


class Feed(NamedTuple):
    """`data` is read item by item, and each is shown as it comes: a line, or nothing for None.

    With `--json` every item is an envelope on a line of its own.
    """

    line: Callable[[Any], Cell | str | None]


View: TypeAlias = Table | Pairs | Text | Raw | Stack | Feed


class Result(NamedTuple):
    """`data` is what `--json` prints as `{"fleet": 1, "kind": kind, "data": data}`.

    Without a `view` one is made from the data. `notes` are asides for the person (stderr).
    """

    kind: str
    data: Any = None
    view: View | None = None
    notes: Sequence[str] = ()
    exit_status: int = 0


def of(data: Any) -> View:
    """A plain view of any data: a table of a list of records, pairs of one record, or text."""
    if data is None:
        return Text("")
    if isinstance(data, (list, tuple)) and data and all(_record(item) for item in data):
        records = [_fields(item) for item in data]
        titles = list(dict.fromkeys(key for record in records for key in record))
        rows = [[_value(record.get(title)) for title in titles] for record in records]
        return Table([Column(title, flexible=True) for title in titles], rows)
    if _record(data):
        return Pairs([(key, _value(value)) for key, value in _fields(data).items()])
    if isinstance(data, (list, tuple)):
        return Text("\n".join(str(item) for item in data))
    return Text(str(data))


def _record(data: Any) -> bool:
    return isinstance(data, dict) or hasattr(type(data), "__dataclass_fields__")


def _fields(data: Any) -> dict[str, Any]:
    if isinstance(data, dict):
        return {str(key): value for key, value in data.items()}
    return {name: getattr(data, name) for name in type(data).__dataclass_fields__}


def _value(value: Any) -> Value:
    if value is None or isinstance(value, (Cell, int)):
        return ("no", "yes")[value] if isinstance(value, bool) else value
    if isinstance(value, Iterable) and not isinstance(value, (str, bytes, dict)):
        return ", ".join(str(item) for item in value) or None
    return str(value)
