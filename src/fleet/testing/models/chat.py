"""OpenAI Chat Completions, as OpenCode, Aider and most others speak it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fleet.testing.models.dialect import ServerSentEvent, header, texts
from fleet.testing.models.script import Call, Say, Think, Wait

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fleet.testing.models.script import Asked, Fail, Reply

KINDS = {401: "invalid_api_key", 429: "rate_limit_exceeded", 500: "server_error"}


class Chat:
    name = "chat"

    def read(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        messages = tuple(body.get("messages", ()))

        def by(*roles: str) -> tuple[str, ...]:
            return tuple(texts(m.get("content")) for m in messages if m["role"] in roles)

        tools = tuple(t["function"]["name"] for t in body.get("tools") or ())
        return {
            "conversation": header(
                headers, "x-opencode-session", "x-session-affinity", "x-session-id"
            ),
            "system": "\n".join(by("system", "developer")),
            "tools": tools,
            "messages": messages,
            "said": by("user"),
            "results": by("tool"),
        }

    def stream(self, reply: Reply, request: Asked) -> Iterator[ServerSentEvent | Wait]:
        yield self._chunk(request, {"role": "assistant", "content": ""})
        calls = 0
        for part in reply.parts:
            match part:
                case Wait():
                    yield part
                case Think(text):
                    yield self._chunk(request, {"reasoning_content": text})
                case Say(text):
                    half = len(text) // 2
                    yield self._chunk(request, {"content": text[:half]})
                    yield self._chunk(request, {"content": text[half:]})
                case Call():
                    call = {"index": calls, **_call(calls, part, request)}
                    yield self._chunk(request, {"tool_calls": [call]})
                    calls += 1
        yield self._chunk(request, {}, _reason(reply))
        if (request.body.get("stream_options") or {}).get("include_usage"):
            head = self._head(request, "chat.completion.chunk")
            yield ServerSentEvent({**head, "choices": [], "usage": _usage(reply)})
        yield ServerSentEvent("[DONE]")

    def whole(self, reply: Reply, request: Asked) -> dict[str, Any]:
        text = "".join(p.text for p in reply.parts if isinstance(p, Say))
        message: dict[str, Any] = {"role": "assistant", "content": text or None}
        if thought := "".join(p.text for p in reply.parts if isinstance(p, Think)):
            message["reasoning_content"] = thought
        if calls := [p for p in reply.parts if isinstance(p, Call)]:
            message["tool_calls"] = [_call(i, one, request) for i, one in enumerate(calls)]
        choice = {"index": 0, "message": message, "finish_reason": _reason(reply)}
        head = self._head(request, "chat.completion")
        return {**head, "choices": [choice], "usage": _usage(reply)}

    def _chunk(
        self, request: Asked, delta: dict[str, Any], reason: str | None = None
    ) -> ServerSentEvent:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return ServerSentEvent(
            {**self._head(request, "chat.completion.chunk"), "choices": [choice]}
        )

    def _head(self, request: Asked, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{request.id}",
            "object": kind,
            "created": 0,
            "model": request.model,
        }

    def failure(self, failed: Fail) -> dict[str, Any]:
        kind = failed.kind or KINDS.get(failed.status, "invalid_request_error")
        return {"error": {"message": failed.message, "type": kind, "code": kind, "param": None}}


def _call(index: int, part: Call, request: Asked) -> dict[str, Any]:
    given = part.input if isinstance(part.input, str) else json.dumps(part.input)
    function = {"name": part.name, "arguments": given}
    return {"id": f"call_{request.id}_{index}", "type": "function", "function": function}


def _reason(reply: Reply) -> str:
    return "tool_calls" if any(isinstance(p, Call) for p in reply.parts) else "stop"


def _usage(reply: Reply) -> dict[str, Any]:
    tokens = reply.tokens
    given = tokens.input + tokens.cached + tokens.written
    return {
        "prompt_tokens": given,
        "completion_tokens": tokens.output,
        "total_tokens": given + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
    }
