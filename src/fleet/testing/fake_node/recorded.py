"""What real servers answer in hard moments, each with the page that shows it.

    node.set(**RECORDED["ollama queue full"].manner)

The words and fields are those of the source; names of people and keys are left out.
"""

from __future__ import annotations

import json
from typing import Any

from fleet.domain.data import NamedTuple

CHAT = "/v1/chat"


class Recorded(NamedTuple):
    kind: str
    source: str
    manner: dict[str, Any]


def _error(code: int, message: str, **metadata: Any) -> str:
    """OpenRouter's `ErrorResponse`."""
    error: dict[str, Any] = {"code": code, "message": message}
    return json.dumps({"error": error | ({"metadata": metadata} if metadata else {})})


RECORDED: dict[str, Recorded] = {
    "ollama queue full": Recorded(
        "ollama",
        "https://github.com/ollama/ollama/pull/4144, server/sched.go ErrMaxQueue",
        {
            "status": 503,
            "message": "server busy, please try again.  maximum pending requests exceeded",
            "only": "/api/chat",
        },
    ),
    "openrouter no credit": Recorded(
        "openrouter",
        "https://openrouter.ai/docs/api/reference/errors-and-debugging.md",
        {
            "status": 402,
            "body": _error(402, "Insufficient credits", limit_source="openrouter_credits"),
            "only": CHAT,
        },
    ),
    "openrouter in-flight budget": Recorded(
        "openrouter",
        "https://openrouter.ai/docs/projects/docs/api_reference/errors-and-debugging",
        {
            "status": 402,
            "after": "5",
            "body": _error(402, "Payment required", limit_source="openrouter_in_flight_budget"),
            "only": CHAT,
        },
    ),
    "openrouter rate limited": Recorded(
        "openrouter",
        "https://openrouter.ai/docs/api/errors",
        {"status": 429, "after": "30", "body": _error(429, "Rate limit exceeded"), "only": CHAT},
    ),
    "openrouter no provider": Recorded(
        "openrouter",
        "https://openrouter.ai/docs/api/errors",
        {"status": 503, "after": "5", "body": _error(503, "No provider available"), "only": CHAT},
    ),
    "openrouter error with 200": Recorded(
        "openrouter",
        "https://openrouter.ai/docs/errors",
        {"body": _error(502, "Provider returned error"), "only": CHAT},
    ),
    "openrouter comment, then an error": Recorded(
        "openrouter",
        "https://openrouter.ai/docs/api-reference/streaming",
        {
            "events": ": OPENROUTER PROCESSING\n\ndata: "
            + json.dumps(
                {
                    "id": "gen-1", "object": "chat.completion.chunk",
                    "error": {"code": "server_error", "message": "Provider disconnected"},
                    "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
                }
            )
            + "\n\n",
            "only": CHAT,
        },
    ),
    "sglang queue full": Recorded(
        "sglang",
        "https://github.com/sgl-project/sglang/pull/7565, --max-queued-requests",
        {
            "status": 503,
            "body": json.dumps(
                {"object": "error", "message": "The request queue is full.", "code": 503}
            ),
            "only": CHAT,
        },
    ),
    "vllm error in a stream": Recorded(
        "vllm",
        "https://github.com/block/goose/pull/8031",
        {
            "events": 'data: {"object": "error", "message": "EngineCore died", "code": 500}\n\n'
            "data: [DONE]\n\n",
            "only": CHAT,
        },
    ),
}  # fmt: skip
