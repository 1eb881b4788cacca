"""Check values from remote callers: every store and program must be able to keep them."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from fleet.domain.errors import BadInput
from fleet.domain.limits.check import is_text

LARGEST_INTEGER = 1 << 63  # integers in a store have 64 bits
MAX_JSON = 100_000  # characters of an object that we only pass on
DEEPEST_NESTING = 32  # levels of nested lists and objects


def check_plain(value: object) -> None:
    """Raise `BadInput` for what a store cannot keep: NUL, lone surrogates, huge numbers."""
    level: list[Any] = [value]
    for _ in range(DEEPEST_NESTING):
        if not level:
            return
        deeper: list[Any] = []
        for inner in level:
            if isinstance(inner, str):
                _check_text(inner)
            elif isinstance(inner, dict):
                deeper += inner.keys()
                deeper += inner.values()
            elif isinstance(inner, (list, tuple)):
                deeper += inner
            elif isinstance(inner, int):
                _check_number(inner)
        level = deeper
    raise BadInput(
        f"The JSON is nested more than {DEEPEST_NESTING} levels deep.",
        fix="Flatten it.",
        code="too_deep",
    )


def _check_text(text: str) -> None:
    if not is_text(text):
        raise BadInput(
            "The request contains text that is not valid.",
            fix="Send UTF-8 without NUL bytes.",
            code="not_text",
        )


def _check_number(number: int) -> None:
    if not -LARGEST_INTEGER <= number < LARGEST_INTEGER:
        raise BadInput(
            "A number in the request is too large.",
            fix="Numbers may have at most 64 bits.",
            code="too_large_number",
        )


def json_object(what: str, text: str, *, example: str) -> dict[str, Any]:
    """The JSON object in a text; raise `BadInput` when it is not one. `example` shows one."""
    fix = f"For example: {example}"
    if len(text) > MAX_JSON:
        raise BadInput(f"The {what} has {len(text)} characters; the limit is {MAX_JSON}.", fix=fix)
    try:
        value = json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise BadInput(f"The {what} is not a JSON object.", fix=fix)
    check_plain(value)
    return value


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text[:20]} is no number")
