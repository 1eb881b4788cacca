"""Data as JSON: dataclasses as objects, enums as their values, paths as text, times in ISO 8601."""

from __future__ import annotations

import json
import math
import os
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Any


def dumps(data: Any) -> str:
    """One line of JSON, always valid UTF-8: half a character is replaced by `?`."""
    try:
        text = _ENCODER.encode(data)
    except ValueError:  # a float that JSON cannot say
        text = _ENCODER.encode(_finite(data))
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _plain(value: Any) -> Any:
    """What the encoder asks for when it does not know a type."""
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
        case os.PathLike():
            return os.fspath(value)
        case bytes():
            return value.decode("utf-8", "replace")
        case set() | frozenset():
            return sorted(value, key=str)
    if hasattr(value, "items"):
        return dict(value.items())
    if hasattr(value, "__iter__"):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be said in JSON")


def _finite(value: Any) -> Any:
    """`value` with null in place of the floats that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (str, int, type(None))):
        return value
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return _finite(_plain(value))


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)
