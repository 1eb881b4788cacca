"""JSON that another program wrote: a value of another type than expected counts as nothing."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
LARGEST_NUMBER = 1 << 60  # larger numbers, NaN and infinity count as 0


def mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def string(value: object) -> str:
    return value if isinstance(value, str) else ""


def integer(value: object) -> int:
    return int(value) if isinstance(value, int | float) and abs(value) < LARGEST_NUMBER else 0


def number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and abs(value) < LARGEST_NUMBER else 0.0
