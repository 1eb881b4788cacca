"""Records as the store keeps them: JSON without the fields that equal their defaults."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, TypeVar

from fleet.domain.record_json import changed, reader

T = TypeVar("T")

LARGE = 1 << 18  # characters of a record that is not kept
KEPT = 512  # decoded records: they never change, and clients list them again and again
VERSION = "version"  # a column of its own, because the store counts it

# ASCII: any text fits any column. To look for circles takes as long as all the rest.
dumps = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_loads = json.JSONDecoder().decode


def encode(record: object) -> str:
    values = changed(record)
    values.pop(VERSION, None)
    return dumps(values)


def decode(kind: type[T], version: int, body: str) -> T:
    """Raise `ValueError` or `TypeError` when this is no such record, or a newer release's."""
    made = _decoded if len(body) < LARGE else _decoded.__wrapped__
    record: T = made(kind, version, body)  # type: ignore[arg-type]  # a class is hashable
    return record


@lru_cache(KEPT)
def _decoded(kind: Any, version: int, body: str) -> Any:
    values = _loads(body)
    values[VERSION] = version
    return reader(kind, strict=True)(values)
