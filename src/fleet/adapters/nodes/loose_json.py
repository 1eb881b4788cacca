"""A foreign server's JSON, taken as what it should be; what it is not counts as nothing."""

from __future__ import annotations

from typing import Any


def mapping(said: Any) -> dict[str, Any]:
    return said if isinstance(said, dict) else {}


def mappings(said: Any) -> list[dict[str, Any]]:
    return [each for each in said if isinstance(each, dict)] if isinstance(said, list) else []


def whole(said: Any) -> int:
    good = isinstance(said, (int, float)) and said == said and abs(said) < 1 << 60  # noqa: PLR0124  # not NaN
    return int(said) if good else 0


def word(said: Any) -> str:
    return said if isinstance(said, str) else ""
