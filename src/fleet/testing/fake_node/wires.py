"""The shapes in which a stand-in node answers: Ollama's own, OpenAI's three, Anthropic's."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

STAMP = "2026-11-02T10:00:00.000000Z"
CREATED = 1_793_600_000


@dataclass(slots=True)
class NodeJob:
    """One request being answered; times in seconds, at first those of a request that is alone."""

    model: str
    prompt: int
    cached: int
    words: list[str]
    call: str = ""  # the tool that is called in place of words
    load: float = 0.0
    prefill: float = 0.0
    decode: float = 0.0
    only_load: bool = False
    price: float = 0.0  # of a token
    arguments: dict[str, Any] = field(default_factory=dict)  # of the call

    @property
    def text(self) -> str:
        return "" if self.call else "".join(self.words)

    @property
    def output(self) -> int:
        return 0 if self.only_load else len(self.words)


def sse(data: Any, event: str = "") -> bytes:
    head = f"event: {event}\n" if event else ""
    text = data if isinstance(data, str) else json.dumps(data)
    return f"{head}data: {text}\n\n".encode()


class OllamaWire:
    """`/api/chat`, and `/api/generate` with `chat=False`."""

    content_type = "application/x-ndjson"

    def __init__(self, *, chat: bool = True) -> None:
        self._chat = chat

    def _message(self, text: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
        if not self._chat:
            return {"response": text}
        message: dict[str, Any] = {"role": "assistant", "content": text}
        return {"message": message | ({"tool_calls": calls} if calls else {})}

    def _line(self, job: NodeJob, text: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "model": job.model,
            "created_at": STAMP,
            **self._message(text, calls),
            "done": False,
        }

    def _end(self, job: NodeJob, text: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
        line = self._line(job, text, calls) | {"done": True}
        if job.only_load:
            return line | {"done_reason": "load"}
        return line | {
            "done_reason": "stop",
            "total_duration": _ns(job.load + job.prefill + job.decode),
            "load_duration": _ns(job.load),
            "prompt_eval_count": job.prompt,
            "prompt_eval_duration": _ns(job.prefill),
            "eval_count": job.output,
            "eval_duration": _ns(job.decode),
        }

    def opening(self, _job: NodeJob) -> Iterator[bytes]:
        yield from ()

    def piece(self, job: NodeJob, text: str) -> bytes:
        return json.dumps(self._line(job, text, [])).encode() + b"\n"

    def closing(self, job: NodeJob) -> Iterator[bytes]:
        if job.call:
            yield json.dumps(self._line(job, "", self._calls(job))).encode() + b"\n"
        yield json.dumps(self._end(job, "", [])).encode() + b"\n"

    def whole(self, job: NodeJob) -> dict[str, Any]:
        return self._end(job, job.text, self._calls(job))

    def _calls(self, job: NodeJob) -> list[dict[str, Any]]:
        return [{"function": {"name": job.call, "arguments": job.arguments}}] if job.call else []

    def error(self, message: str) -> dict[str, Any]:
        return {"error": message}


class ChatWire:
    """`/v1/chat/completions`, and `/v1/completions` with `chat=False`; timings as llama.cpp has."""

    content_type = "text/event-stream"

    def __init__(self, *, chat: bool = True) -> None:
        self._chat = chat
        self._kind = "chat.completion" if chat else "text_completion"

    def _frame(self, job: NodeJob, kind: str, choice: dict[str, Any]) -> dict[str, Any]:
        first = {"index": 0, "finish_reason": None} | choice
        return {
            "id": "chatcmpl-1", "object": kind, "created": CREATED, "model": job.model,
            "choices": [first],
        }  # fmt: skip

    def _chunk(self, job: NodeJob, delta: dict[str, Any], finish: str | None = None) -> bytes:
        body = {"delta": delta} if self._chat else {"text": delta.get("content", "")}
        kind = self._kind + (".chunk" if self._chat else "")
        return sse(self._frame(job, kind, body | {"finish_reason": finish}))

    def opening(self, job: NodeJob) -> Iterator[bytes]:
        if self._chat:
            yield self._chunk(job, {"role": "assistant", "content": ""})

    def piece(self, job: NodeJob, text: str) -> bytes:
        return self._chunk(job, {"content": text})

    def closing(self, job: NodeJob) -> Iterator[bytes]:
        if job.call:
            yield self._chunk(job, {"tool_calls": _calls(job)})
        yield self._chunk(job, {}, "tool_calls" if job.call else "stop")
        last = self._frame(job, self._kind + ".chunk", {}) | _usage(job)
        yield sse(last | {"choices": []})
        yield sse("[DONE]")

    def whole(self, job: NodeJob) -> dict[str, Any]:
        finish = "tool_calls" if job.call else "stop"
        choice: dict[str, Any] = {"text": job.text}
        if self._chat:
            message = {"role": "assistant", "content": job.text or None}
            choice = {"message": message | ({"tool_calls": _calls(job)} if job.call else {})}
        return self._frame(job, self._kind, choice | {"finish_reason": finish}) | _usage(job)

    def error(self, message: str) -> dict[str, Any]:
        return {"error": {"message": message, "type": "server_error", "code": 500}}


class ResponsesWire:
    content_type = "text/event-stream"

    def _response(self, job: NodeJob, status: str) -> dict[str, Any]:
        text = [{"type": "output_text", "text": job.text, "annotations": []}]
        item: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant"}
        item |= {"status": "completed", "content": text}
        if job.call:
            item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": job.call}
            item |= {"arguments": "{}", "status": "completed"}
        usage = {
            "input_tokens": job.prompt,
            "output_tokens": job.output,
            "total_tokens": job.prompt + job.output,
            "input_tokens_details": {"cached_tokens": job.cached},
        }
        whole = {"id": "resp_1", "object": "response", "created_at": CREATED, "status": status}
        return whole | {"model": job.model, "output": [item], "usage": usage}

    def opening(self, job: NodeJob) -> Iterator[bytes]:
        begun = self._response(job, "in_progress") | {"output": [], "usage": None}
        yield sse({"type": "response.created", "response": begun}, "response.created")

    def piece(self, _job: NodeJob, text: str) -> bytes:
        kind = "response.output_text.delta"
        return sse({"type": kind, "item_id": "msg_1", "output_index": 0, "delta": text}, kind)

    def closing(self, job: NodeJob) -> Iterator[bytes]:
        whole = self._response(job, "completed")
        done = {"type": "response.output_item.done", "output_index": 0, "item": whole["output"][0]}
        yield sse(done, "response.output_item.done")
        yield sse({"type": "response.completed", "response": whole}, "response.completed")

    def whole(self, job: NodeJob) -> dict[str, Any]:
        return self._response(job, "completed")

    def error(self, message: str) -> dict[str, Any]:
        return {"error": {"message": message, "type": "server_error", "code": 500}}


class MessagesWire:
    """Anthropic's."""

    content_type = "text/event-stream"

    def _block(self, job: NodeJob, text: str) -> dict[str, Any]:
        if job.call:
            return {"type": "tool_use", "id": "toolu_1", "name": job.call, "input": {}}
        return {"type": "text", "text": text}

    def _message(self, job: NodeJob) -> dict[str, Any]:
        usage = {"input_tokens": job.prompt - job.cached, "output_tokens": job.output}
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": job.model,
            "content": [self._block(job, job.text)], "stop_sequence": None,
            "stop_reason": "tool_use" if job.call else "end_turn",
            "usage": usage | {"cache_read_input_tokens": job.cached},
        }  # fmt: skip

    def _event(self, kind: str, **fields: Any) -> bytes:
        return sse({"type": kind, **fields}, kind)

    def opening(self, job: NodeJob) -> Iterator[bytes]:
        begun = self._message(job) | {"content": [], "stop_reason": None}
        yield self._event("message_start", message=begun)
        yield self._event("content_block_start", index=0, content_block=self._block(job, ""))

    def piece(self, _job: NodeJob, text: str) -> bytes:
        delta = {"type": "text_delta", "text": text}
        return self._event("content_block_delta", index=0, delta=delta)

    def closing(self, job: NodeJob) -> Iterator[bytes]:
        whole = self._message(job)
        yield self._event("content_block_stop", index=0)
        delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        yield self._event("message_delta", delta=delta, usage=whole["usage"])
        yield self._event("message_stop")

    def whole(self, job: NodeJob) -> dict[str, Any]:
        return self._message(job)

    def error(self, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": "api_error", "message": message}}


Wire = OllamaWire | ChatWire | ResponsesWire | MessagesWire
WIRES: dict[str, Wire] = {
    "/api/chat": OllamaWire(),
    "/api/generate": OllamaWire(chat=False),
    "/v1/chat/completions": ChatWire(),
    "/v1/completions": ChatWire(chat=False),
    "/v1/responses": ResponsesWire(),
    "/v1/messages": MessagesWire(),
}


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)


def _calls(job: NodeJob) -> list[dict[str, Any]]:
    function = {"name": job.call, "arguments": json.dumps(job.arguments)}
    return [{"index": 0, "id": "call_1", "type": "function", "function": function}]


def _usage(job: NodeJob) -> dict[str, Any]:
    fresh = job.prompt - job.cached
    usage: dict[str, Any] = {
        "prompt_tokens": job.prompt,
        "completion_tokens": job.output,
        "total_tokens": job.prompt + job.output,
        "prompt_tokens_details": {"cached_tokens": job.cached},
    }
    if job.price:
        usage["cost"] = job.price * usage["total_tokens"]
    timings = {
        "prompt_n": fresh, "prompt_ms": job.prefill * 1000, "cache_n": job.cached,
        "predicted_n": job.output, "predicted_ms": job.decode * 1000,
    }  # fmt: skip
    return {"usage": usage, "timings": timings}
