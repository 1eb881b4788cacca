"""OpenAI Responses, as Codex speaks it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fleet.testing.models.dialect import ServerSentEvent, header, texts
from fleet.testing.models.script import Call, Say, Think, Wait

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fleet.testing.models.script import Asked, Fail, Part, Reply

KINDS = {401: "invalid_api_key", 429: "rate_limit_exceeded", 500: "server_error"}


class Responses:
    name = "responses"

    def read(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        given = body.get("input", ())
        items = [{"role": "user", "content": given}] if isinstance(given, str) else list(given)
        outputs = [i for i in items if str(i.get("type")).endswith("_call_output")]
        session = header(headers, "session-id", "session_id", "thread-id")
        return {
            "conversation": session or str(body.get("prompt_cache_key", "")),
            "system": "\n".join(
                [body.get("instructions") or ""]
                + [texts(i["content"]) for i in items if i.get("role") in {"system", "developer"}]
            ),
            "tools": tuple(t.get("name", t["type"]) for t in body.get("tools", ())),
            "messages": tuple(items),
            "said": tuple(texts(i["content"]) for i in items if i.get("role") == "user"),
            "results": tuple(_output(i.get("output")) for i in outputs),
        }

    def stream(self, reply: Reply, request: Asked) -> Iterator[ServerSentEvent | Wait]:
        number = 0
        for event in self._events(reply, request):
            if isinstance(event, ServerSentEvent) and isinstance(event.data, dict):
                event.data["sequence_number"] = number
                number += 1
            yield event

    def _events(self, reply: Reply, request: Asked) -> Iterator[ServerSentEvent | Wait]:
        begun = self._response([], reply, request, "in_progress") | {"usage": None}
        yield _event("response.created", response=begun)
        yield _event("response.in_progress", response=begun)
        output: list[dict[str, Any]] = []
        for part in reply.parts:
            if isinstance(part, Wait):
                yield part
                continue
            item = _item(len(output), part, request)
            yield from _item_events(len(output), item, part)
            output.append(item)
        ended = self._response(output, reply, request, "completed")
        yield _event("response.completed", response=ended)

    def whole(self, reply: Reply, request: Asked) -> dict[str, Any]:
        parts = [p for p in reply.parts if not isinstance(p, Wait)]
        output = [_item(i, part, request) for i, part in enumerate(parts)]
        return self._response(output, reply, request, "completed")

    def _response(
        self, output: list[dict[str, Any]], reply: Reply, request: Asked, status: str
    ) -> dict[str, Any]:
        tokens = reply.tokens
        given = tokens.input + tokens.cached + tokens.written
        return {
            "id": f"resp_{request.id}",
            "object": "response",
            "created_at": 0,
            "status": status,
            "model": request.model,
            "output": output,
            "error": None,
            "usage": {
                "input_tokens": given,
                "input_tokens_details": {"cached_tokens": tokens.cached},
                "output_tokens": tokens.output,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": given + tokens.output,
            },
        }

    def failure(self, failed: Fail) -> dict[str, Any]:
        kind = failed.kind or KINDS.get(failed.status, "invalid_request_error")
        return {"error": {"message": failed.message, "type": kind, "code": kind, "param": None}}


def _item(index: int, part: Part, request: Asked) -> dict[str, Any]:
    made = f"{request.id}_{index}"
    match part:
        case Say(text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            item = {"type": "message", "id": f"msg_{made}", "role": "assistant"}
            return {**item, "status": "completed", "content": content}
        case Think(text):
            summary = [{"type": "summary_text", "text": text}]
            return {"type": "reasoning", "id": f"rs_{made}", "summary": summary}
        case Call(name, str() as text):
            item = {"type": "custom_tool_call", "id": f"ctc_{made}", "call_id": f"call_{made}"}
            return {**item, "name": name, "input": text, "status": "completed"}
        case Call(name, arguments):
            item = {"type": "function_call", "id": f"fc_{made}", "call_id": f"call_{made}"}
            inside, _, name = name.rpartition("/")  # a tool of a group of them: `mcp__fleet/note`
            item |= {"namespace": inside} if inside else {}
            return {**item, "name": name, "arguments": json.dumps(arguments), "status": "completed"}
    raise AssertionError(part)


def _item_events(index: int, item: dict[str, Any], part: Part) -> Iterator[ServerSentEvent]:
    hollow = {"content": [], "summary": [], "arguments": "", "input": ""}
    begun = {key: hollow.get(key, value) for key, value in item.items()}
    if "status" in begun:
        begun["status"] = "in_progress"
    where = {"item_id": item["id"], "output_index": index}
    yield _event("response.output_item.added", output_index=index, item=begun)
    match part:
        case Say(text):
            where["content_index"] = 0
            empty = {"type": "output_text", "text": "", "annotations": []}
            yield _event("response.content_part.added", **where, part=empty)
            half = len(text) // 2
            for delta in (text[:half], text[half:]):
                yield _event("response.output_text.delta", **where, delta=delta)
            yield _event("response.output_text.done", **where, text=text)
            yield _event("response.content_part.done", **where, part=item["content"][0])
        case Think(text):
            where["summary_index"] = 0
            empty = {"type": "summary_text", "text": ""}
            yield _event("response.reasoning_summary_part.added", **where, part=empty)
            yield _event("response.reasoning_summary_text.delta", **where, delta=text)
            yield _event("response.reasoning_summary_text.done", **where, text=text)
            done = item["summary"][0]
            yield _event("response.reasoning_summary_part.done", **where, part=done)
        case Call(_, str() as text):
            yield _event("response.custom_tool_call_input.delta", **where, delta=text)
            yield _event("response.custom_tool_call_input.done", **where, input=text)
        case Call():
            text = item["arguments"]
            yield _event("response.function_call_arguments.delta", **where, delta=text)
            yield _event("response.function_call_arguments.done", **where, arguments=text)
    yield _event("response.output_item.done", output_index=index, item=item)


def _output(output: Any) -> str:
    return output if isinstance(output, str) else texts(output)


def _event(kind: str, **fields: Any) -> ServerSentEvent:
    return ServerSentEvent({"type": kind, **fields}, kind)
