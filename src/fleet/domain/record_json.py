"""Records as JSON and back, for the store, the command line, the server and its clients.

`dumps` and `plain` encode any of our values. `changed` leaves out fields that equal their defaults,
so a new field needs no migration. `reader` decodes records.
"""

from __future__ import annotations

import json
import math
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime, timedelta
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin, get_type_hints

from fleet.base.outside import Json, Time, is_marked, microseconds, moment
from fleet.domain.data import FLAT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def dumps(data: Any) -> str:
    """One line of JSON, always valid UTF-8: a lone surrogate is replaced by `?`."""
    try:
        text = _ENCODER.encode(data)
    except ValueError:  # JSON has no NaN and no infinity
        text = _ENCODER.encode(_finite(data))
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def plain(value: Any) -> Any:
    """The value as a type closer to JSON; encoders call this for types that they do not know."""
    names = getattr(type(value), "__dataclass_fields__", None)
    if names is not None:
        return {name: getattr(value, name) for name in names}
    match value:
        case Enum():
            return value.value
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return value // timedelta(microseconds=1)
        case bytes():
            return value.decode("utf-8", "replace")
        case set() | frozenset():
            return sorted(value, key=str)
    if hasattr(value, "__fspath__"):
        return value.__fspath__()
    if hasattr(value, "items"):
        return dict(value.items())
    if hasattr(value, "__iter__"):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _finite(value: Any) -> Any:
    """The value with null in place of NaN and infinity."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (str, int, type(None))):
        return value
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return _finite(plain(value))


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=plain)


def changed(record: Any) -> dict[str, Any]:
    """The fields that differ from their defaults, also in nested records."""
    kind: Any = type(record)
    return _changed(kind)(record)


@cache
def _changed(kind: Any) -> Callable[[Any], dict[str, Any]]:
    """`changed` for one type.

    It is compiled, as `dataclasses` compiles `__init__`: a loop over the fields takes four times
    as long, and a store that eight processes share feels that.
    """
    hints = get_type_hints(kind)
    names: dict[str, Any] = {}
    lines = ["def changed(record):", " values = {}"]
    for f in fields(kind):
        lines += _lines(f, _present(hints[f.name]), names)
    exec("\n".join([*lines, " return values"]), names)  # noqa: S102  # nosec B102  # our own field names, nothing read
    made: Callable[[Any], dict[str, Any]] = names["changed"]
    return made


def _lines(f: Any, kind: Any, names: dict[str, Any]) -> list[str]:
    """The code that puts one field into `values` unless it equals its default."""
    value, put = f"record.{f.name}", f"values[{f.name!r}]"
    default, inner = f"default_{f.name}", f"changed_{f.name}"
    if f.metadata == FLAT:
        names[inner] = _changed(kind)
        return [f" values |= {inner}({value})"]
    names[default] = f.default if f.default_factory is MISSING else f.default_factory()
    if get_origin(kind) is tuple and is_dataclass(part := get_args(kind)[0]):
        names[inner] = _changed(part)  # type: ignore[arg-type]  # as below
        return [f" if {value} != {default}: {put} = [{inner}(part) for part in {value}]"]
    if not is_dataclass(kind):
        # MISSING equals nothing, so a field without a default is always written
        return [f" if {value} != {default}: {put} = {value}"]
    names[inner] = _changed(kind)  # type: ignore[arg-type]  # a class is hashable
    if f.default_factory is MISSING:
        return [f" if {value} is not {default}: {put} = {inner}({value})"]
    return [f" inside = {inner}({value})", f" if inside: {put} = inside"]


def _present(hint: Any) -> Any:
    """The type of a value that is not None."""
    if get_origin(hint) in {Union, UnionType}:
        return next(kind for kind in get_args(hint) if kind is not NoneType)
    return hint


def outward(record: Any, values: dict[str, Any]) -> dict[str, Any]:
    """A record's fields as a server reads them, made of its fields as we have them."""
    types = get_type_hints(type(record), include_extras=True)
    return {name: _outward(types[name], value) for name, value in values.items()}


def _outward(hint: Any, value: Any) -> Any:
    if is_marked(hint, Json):
        return json.loads(value)
    return moment(value).isoformat() if is_marked(hint, Time) else value


@cache
def reader(hint: Any, *, strict: bool) -> Callable[[Any], Any]:
    """A function that turns what JSON gave into a value of this type.

    With `strict` it raises `TypeError` for a field that we do not know; otherwise it drops it.
    """
    kind = _present(hint)
    if is_marked(kind, Time):
        return _time
    if is_marked(kind, Json):
        return _json_text
    if get_origin(kind) is Annotated:  # with a limit, which only requests are checked for
        return reader(kind.__origin__, strict=strict)
    if get_origin(kind) in {tuple, list}:
        return _sequence_reader(get_origin(kind), reader(get_args(kind)[0], strict=strict))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if is_dataclass(kind):
        return _when_there_is_one(kind, strict=strict)
    return _same


def _sequence_reader(kind: Any, read: Callable[[Any], Any]) -> Callable[[Iterable[Any]], Any]:
    if read is _same:
        whole: Callable[[Iterable[Any]], Any] = kind
        return whole
    return lambda values: kind(map(read, values))


def _when_there_is_one(kind: Any, *, strict: bool) -> Callable[[dict[str, Any]], Any]:
    """A reader that is built on first use: most nested records stay at their defaults."""
    made: list[Callable[[dict[str, Any]], Any]] = []

    def read(values: dict[str, Any]) -> Any:
        if not made:
            made.append(_record_reader(kind, strict=strict))
        return made[0](values)

    return read


def _record_reader(kind: Any, *, strict: bool) -> Callable[[dict[str, Any]], Any]:
    hints = get_type_hints(kind, include_extras=True)
    readers = {f.name: reader(hints[f.name], strict=strict) for f in fields(kind)}
    needed = {name: read for name, read in readers.items() if read is not _same}
    to_read, shared = frozenset(needed).intersection, frozenset(readers).intersection
    flat = [
        (f.name, frozenset(inner.name for inner in fields(hints[f.name])).intersection)
        for f in fields(kind)
        if f.metadata == FLAT
    ]

    def read_record(values: dict[str, Any]) -> Any:
        for name, inner in flat:
            if keys := inner(values):
                values[name] = {key: values.pop(key) for key in keys}
        if not strict:
            values = {name: values[name] for name in shared(values)}
        for name in to_read(values):
            if (value := values[name]) is not None:
                values[name] = needed[name](value)
        return kind(**values)

    return read_record


def _time(value: str | int) -> int:
    return value if isinstance(value, int) else microseconds(value)


def _json_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _same(value: Any) -> Any:
    return value
