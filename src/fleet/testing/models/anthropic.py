"""Anthropic Messages, as Claude Code speaks it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fleet.testing.models.dialect import ServerSentEvent, header, texts
from fleet.testing.models.script import Call, Say, Think, Wait

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fleet.testing.models.script import Asked, Fail, Part, Reply

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


class Anthropic:
    name = "anthropic"

    def read(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        user_texts, results = [], []
        for message in body.get("messages", ()):
            if message["role"] == "assistant":
                continue  # "system" here is how Claude Code puts words sent in the middle of a turn
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            user_texts += [b["text"] for b in blocks if b["type"] == "text"]
            results += [texts(b.get("content")) for b in blocks if b["type"] == "tool_result"]
        session = header(headers, "x-claude-code-session-id")
        agent = header(headers, "x-claude-code-agent-id")
        return {
            "conversation": f"{session}/{agent}" if agent else session,
            "system": texts(body.get("system")),
            "tools": tuple(t["name"] for t in body.get("tools", ())),
            "messages": tuple(body.get("messages", ())),
            "said": tuple(user_texts),
            "results": tuple(results),
        }

    def stream(self, reply: Reply, request: Asked) -> Iterator[ServerSentEvent | Wait]:
        opening = self._message([], reply, request) | {"stop_reason": None}
        opening["usage"]["output_tokens"] = 1
        yield _event("message_start", message=opening)
        yield _event("ping")
        index = 0
        for part in reply.parts:
            if isinstance(part, Wait):
                yield part
                continue
            yield from self._block(index, part, request)
            index += 1
        delta = {"stop_reason": _reason(reply), "stop_sequence": None}
        yield _event("message_delta", delta=delta, usage={"output_tokens": reply.tokens.output})
        yield _event("message_stop")

    def _block(self, index: int, part: Part, request: Asked) -> Iterator[ServerSentEvent]:
        whole = _content(index, part, request)
        empty = {k: v for k, v in whole.items() if k not in {"text", "thinking", "signature"}}
        deltas: list[dict[str, Any]] = []
        match part:
            case Say(text):
                empty["text"] = ""
                half = len(text) // 2
                deltas = [{"type": "text_delta", "text": t} for t in (text[:half], text[half:])]
            case Think(text):
                empty |= {"thinking": "", "signature": ""}
                deltas = [
                    {"type": "thinking_delta", "thinking": text},
                    {"type": "signature_delta", "signature": whole["signature"]},
                ]
            case Call():
                empty["input"] = {}
                text = json.dumps(whole["input"])
                deltas = [{"type": "input_json_delta", "partial_json": text}]
        yield _event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)

    def whole(self, reply: Reply, request: Asked) -> dict[str, Any]:
        parts = [p for p in reply.parts if not isinstance(p, Wait)]
        content = [_content(i, part, request) for i, part in enumerate(parts)]
        return self._message(content, reply, request)

    def _message(
        self, content: list[dict[str, Any]], reply: Reply, request: Asked
    ) -> dict[str, Any]:
        return {
            "id": f"msg_{request.id}",
            "type": "message",
            "role": "assistant",
            "model": request.model,
            "content": content,
            "stop_reason": _reason(reply),
            "stop_sequence": None,
            "usage": {
                "input_tokens": reply.tokens.input,
                "cache_creation_input_tokens": reply.tokens.written,
                "cache_read_input_tokens": reply.tokens.cached,
                "output_tokens": reply.tokens.output,
            },
        }

    def failure(self, failed: Fail) -> dict[str, Any]:
        kind = failed.kind or KINDS.get(failed.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": failed.message}}


def _content(index: int, part: Part, request: Asked) -> dict[str, Any]:
    match part:
        case Say(text):
            return {"type": "text", "text": text}
        case Think(text):
            return {"type": "thinking", "thinking": text, "signature": "c2NyaXB0ZWQ="}
        case Call(name, arguments):
            made = f"toolu_{request.id}_{index}"
            return {"type": "tool_use", "id": made, "name": name, "input": arguments}
    raise AssertionError(part)


def _reason(reply: Reply) -> str:
    return "tool_use" if any(isinstance(p, Call) for p in reply.parts) else "end_turn"


def _event(kind: str, **fields: Any) -> ServerSentEvent:
    return ServerSentEvent({"type": kind, **fields}, kind)
