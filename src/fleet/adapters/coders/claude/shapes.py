"""The shapes in what Claude Code says; of another shape, they are empty."""

from __future__ import annotations

import json
import math
from typing import Any

from fleet.domain.run import Usage

Json = dict[str, Any]
TELLING = ("file_path", "notebook_path", "command", "pattern", "url", "query", "description")


def tokens(told: Json) -> Usage:
    return Usage(
        number(told.get("input_tokens")) + number(told.get("cache_creation_input_tokens")),
        number(told.get("output_tokens")),
        number(told.get("cache_read_input_tokens")),
    )


def model_tokens(told: Json) -> Usage:
    return Usage(
        number(told.get("inputTokens")) + number(told.get("cacheCreationInputTokens")),
        number(told.get("outputTokens")),
        number(told.get("cacheReadInputTokens")),
        usd=0.0 if told.get("costBasis") == "unknown" else amount(told.get("costUSD")),
    )


def added(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.input + other.input,
        one.output + other.output,
        one.cached + other.cached,
        usd=one.usd + other.usd,
    )


def gist(given: Json) -> str:
    """The one argument that tells what a tool call is about."""
    telling = next((given[key] for key in TELLING if given.get(key)), None)
    return str(telling) if telling is not None else json.dumps(given, ensure_ascii=False)[:500]


def text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(string(b.get("text")) for b in mappings(content) if b.get("type") == "text")


def mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}


def mappings(value: object) -> list[Json]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def string(value: object) -> str:
    return value if isinstance(value, str) else ""


def number(value: object) -> int:
    return int(amount(value))


def amount(value: object) -> float:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0
