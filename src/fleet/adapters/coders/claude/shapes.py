"""Parts of Claude Code's output: token counts, texts, and what a tool call is about."""

from __future__ import annotations

import json

from fleet.base.loose_json import Json, integer, mappings, number, string
from fleet.domain.run import Usage

TELLING = ("file_path", "notebook_path", "command", "pattern", "url", "query", "description")


def tokens(counts: Json) -> Usage:
    return Usage(
        integer(counts.get("input_tokens")) + integer(counts.get("cache_creation_input_tokens")),
        integer(counts.get("output_tokens")),
        integer(counts.get("cache_read_input_tokens")),
    )


def model_tokens(counts: Json) -> Usage:
    return Usage(
        integer(counts.get("inputTokens")) + integer(counts.get("cacheCreationInputTokens")),
        integer(counts.get("outputTokens")),
        integer(counts.get("cacheReadInputTokens")),
        usd=0.0 if counts.get("costBasis") == "unknown" else number(counts.get("costUSD")),
    )


def added(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.input + other.input,
        one.output + other.output,
        one.cached + other.cached,
        usd=one.usd + other.usd,
    )


def gist(arguments: Json) -> str:
    """The one argument that tells what a tool call is about."""
    telling = next((arguments[key] for key in TELLING if arguments.get(key)), None)
    return str(telling) if telling is not None else json.dumps(arguments, ensure_ascii=False)[:500]


def text_of(content: object) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(string(b.get("text")) for b in mappings(content) if b.get("type") == "text")
