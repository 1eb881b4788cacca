"""Records as JSON and back. What equals its default is left out, so a new field needs no migration."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, lru_cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

KEPT = 512  # records read lately: they never change, and a list is asked for again and again
VERSION = "version"  # a column of its own, because the store counts it

_dumps = json.JSONEncoder(separators=(",", ":")).encode  # ASCII: any text fits any column
_loads = json.JSONDecoder().decode


def encode(record: object) -> str:
    kind: Any = type(record)
    return _dumps(_plain(kind)(record))


def decode(kind: type[T], version: int, body: str) -> T:
    """Raise `ValueError` or `TypeError` when this is no such record, or a newer one."""
    hint: Any = kind
    made: T = _decoded(hint, version, body)
    return made


@lru_cache(KEPT)
def _decoded(kind: Any, version: int, body: str) -> Any:
    values = _loads(body)
    values[VERSION] = version
    return _maker(kind)(values)


@cache
def _plain(kind: Any) -> Callable[[Any], dict[str, Any]]:
    """A function that gives a record as what `json` writes; it knows enums and tuples itself.

    It is compiled, as `dataclasses` compiles `__init__`: a loop over the fields takes four times
    as long, and a store that eight processes share feels that.
    """
    hints = get_type_hints(kind)
    names: dict[str, Any] = {}
    lines = ["def plain(record):", " values = {}"]
    for f in fields(kind):
        if f.name != VERSION:
            lines += _lines(f, _present(hints[f.name]), names)
    exec("\n".join([*lines, " return values"]), names)  # noqa: S102  # our own field names, nothing read
    made: Callable[[Any], dict[str, Any]] = names["plain"]
    return made


def _lines(f: Any, kind: Any, names: dict[str, Any]) -> list[str]:
    """Code that puts one field into `values`, unless it is as by default."""
    held, put = f"record.{f.name}", f"values[{f.name!r}]"
    default, inner = f"default_{f.name}", f"plain_{f.name}"
    names[default] = f.default if f.default_factory is MISSING else f.default_factory()
    if not is_dataclass(kind):
        # MISSING equals nothing, so what has no default is always written
        return [f" if {held} != {default}: {put} = {held}"]
    names[inner] = _plain(kind)  # type: ignore[arg-type]  # a class is hashable
    if f.default_factory is MISSING:
        return [f" if {held} is not {default}: {put} = {inner}({held})"]
    return [f" inside = {inner}({held})", f" if inside: {put} = inside"]


def _present(hint: Any) -> Any:
    """What it is when it is not None."""
    if get_origin(hint) in {Union, UnionType}:
        (hint,) = (a for a in get_args(hint) if a is not NoneType)
    return hint


@cache
def _maker(hint: Any) -> Callable[[Any], Any]:
    """A function that turns what JSON gave into a value of this type."""
    kind = _present(hint)
    if get_origin(kind) is tuple:
        assert get_args(kind)[0] is str, kind
        return tuple
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    if is_dataclass(kind):
        return _record_maker(kind)
    return _same


def _record_maker(kind: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    makers = [(f.name, m) for f in fields(kind) if (m := _maker(hints[f.name])) is not _same]

    def make(values: dict[str, Any]) -> Any:
        for name, maker in makers:
            if (held := values.get(name)) is not None:
                values[name] = maker(held)
        return kind(**values)

    return make


def _same(value: Any) -> Any:
    return value
