"""OpenAI Chat Completions, as OpenCode, Aider and most others speak it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fleet.testing.models.dialect import Event, header, texts
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

    def stream(self, reply: Reply, asked: Asked) -> Iterator[Event | Wait]:
        yield self._chunk(asked, {"role": "assistant", "content": ""})
        calls = 0
        for part in reply.parts:
            match part:
                case Wait():
                    yield part
                case Think(text):
                    yield self._chunk(asked, {"reasoning_content": text})
                case Say(text):
                    half = len(text) // 2
                    yield self._chunk(asked, {"content": text[:half]})
                    yield self._chunk(asked, {"content": text[half:]})
                case Call():
                    call = {"index": calls, **_call(calls, part, asked)}
                    yield self._chunk(asked, {"tool_calls": [call]})
                    calls += 1
        yield self._chunk(asked, {}, _reason(reply))
        if (asked.body.get("stream_options") or {}).get("include_usage"):
            head = self._head(asked, "chat.completion.chunk")
            yield Event({**head, "choices": [], "usage": _usage(reply)})
        yield Event("[DONE]")

    def whole(self, reply: Reply, asked: Asked) -> dict[str, Any]:
        said = "".join(p.text for p in reply.parts if isinstance(p, Say))
        message: dict[str, Any] = {"role": "assistant", "content": said or None}
        if thought := "".join(p.text for p in reply.parts if isinstance(p, Think)):
            message["reasoning_content"] = thought
        if calls := [p for p in reply.parts if isinstance(p, Call)]:
            message["tool_calls"] = [_call(i, one, asked) for i, one in enumerate(calls)]
        choice = {"index": 0, "message": message, "finish_reason": _reason(reply)}
        head = self._head(asked, "chat.completion")
        return {**head, "choices": [choice], "usage": _usage(reply)}

    def _chunk(self, asked: Asked, delta: dict[str, Any], reason: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return Event({**self._head(asked, "chat.completion.chunk"), "choices": [choice]})

    def _head(self, asked: Asked, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{asked.id}", "object": kind, "created": 0, "model": asked.model}

    def failure(self, failed: Fail) -> dict[str, Any]:
        kind = failed.kind or KINDS.get(failed.status, "invalid_request_error")
        return {"error": {"message": failed.message, "type": kind, "code": kind, "param": None}}


def _call(index: int, part: Call, asked: Asked) -> dict[str, Any]:
    given = part.input if isinstance(part.input, str) else json.dumps(part.input)
    function = {"name": part.name, "arguments": given}
    return {"id": f"call_{asked.id}_{index}", "type": "function", "function": function}


def _reason(reply: Reply) -> str:
    return "tool_calls" if any(isinstance(p, Call) for p in reply.parts) else "stop"


def _usage(reply: Reply) -> dict[str, Any]:
    told = reply.tokens
    given = told.input + told.cached + told.written
    return {
        "prompt_tokens": given,
        "completion_tokens": told.output,
        "total_tokens": given + told.output,
        "prompt_tokens_details": {"cached_tokens": told.cached},
    }
