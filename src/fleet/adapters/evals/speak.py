"""One model as a partner in a conversation, on a node or at a hosted API; replies are streamed."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from fleet.adapters.nodes.benchmark import Streaming
from fleet.adapters.nodes.http import NoAnswer, OtherAnswer
from fleet.adapters.nodes.stream_timing import error_of, event_of
from fleet.base.loose_json import integer, mapping, mappings, number, string
from fleet.domain.data import NamedTuple
from fleet.domain.evals.grade import ModelReply, ToolCall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.domain.nodes.kinds import NodeKind

Message = dict[str, Any]


class Prices(NamedTuple):
    """Dollars for one token."""

    prompt: float
    output: float


class Speaker:
    """`context`: that Ollama is told to load it with. `is_billed`: it costs what it says, or `prices`."""

    def __init__(
        self,
        kind: NodeKind,
        endpoint: str,
        headers: Mapping[str, str],
        upstream: str,
        *,
        context: int = 0,
        timeout: float = 600.0,
        is_billed: bool = False,
    ) -> None:
        self.kind, self.endpoint, self.headers = kind, endpoint.removesuffix("/v1"), headers
        self.upstream, self.timeout = upstream, timeout
        self.prices: Prices | None = None
        self._context, self._is_billed = context, is_billed

    def ask(
        self, messages: Sequence[Message], output: int, tools: Sequence[Mapping[str, Any]] = ()
    ) -> ModelReply:
        """Raise `Unavailable` when the reply is not complete within the model's time limit."""
        path, body = self._request(messages, output, tools)
        hearing = _Hearing(time.monotonic())
        with Streaming(self.endpoint, self.headers, within=self.timeout) as asking:
            for line in asking.lines(path, body):
                hearing.hear(line, time.monotonic())
        if hearing.failed:
            raise OtherAnswer(f"its reply ended with an error: {hearing.failed}")
        if not hearing.done:
            raise NoAnswer("its reply broke off")
        return self._priced(hearing.reply(time.monotonic()))

    def call_and_result(self, reply: ModelReply, result: str) -> list[Message]:
        """What a conversation goes on with after the model has called a tool."""
        call, key = reply.calls[0], "call_1"
        if self.kind.is_ollama:
            function = {"name": call.name, "arguments": dict(call.arguments)}
            calls: list[Any] = [{"function": function}]
            name = {"tool_name": call.name}
        else:
            function = {"name": call.name, "arguments": json.dumps(dict(call.arguments))}
            calls, name = [{"id": key, "type": "function", "function": function}], {}
            name = {"tool_call_id": key}
        return [
            {"role": "assistant", "content": reply.text, "tool_calls": calls},
            {"role": "tool", "content": result, **name},
        ]

    def _request(
        self, messages: Sequence[Message], output: int, tools: Sequence[Mapping[str, Any]]
    ) -> tuple[str, dict[str, Any]]:
        body: dict[str, Any] = {"model": self.upstream, "messages": list(messages), "stream": True}
        body |= {"tools": [dict(tool) for tool in tools]} if tools else {}
        if self.kind.is_ollama:
            # As in all our requests: another context would load it anew, a time would unload it.
            options = {"num_ctx": self._context, "num_predict": output, "temperature": 0}
            return "/api/chat", body | {"keep_alive": -1, "options": options}
        body |= {"max_tokens": output, "temperature": 0, "stream_options": {"include_usage": True}}
        if self.kind.hosted and self._is_billed:
            body["usage"] = {"include": True}  # OpenRouter then says what the request cost
        return "/v1/chat/completions", body

    def _priced(self, reply: ModelReply) -> ModelReply:
        if not self._is_billed:
            return reply._replace(cost=0.0)
        if reply.cost is not None or self.prices is None:
            return reply
        cost = reply.prompt_tokens * self.prices.prompt + reply.output_tokens * self.prices.output
        return reply._replace(cost=cost)


class _Hearing:
    """A streamed reply, put together line by line: JSON as Ollama sends it, or OpenAI's events."""

    def __init__(self, begun: float) -> None:
        self.done, self.failed = False, ""
        self._begun, self._first, self._pieces = begun, 0.0, 0
        self._text: list[str] = []
        self._calls: dict[int, tuple[str, str, dict[str, Any]]] = {}
        self._prompt = self._output = 0
        self._cost: float | None = None

    def hear(self, line: bytes, at: float) -> None:
        event = event_of(line)
        if event is None:
            self.done = True
            return
        self.failed = error_of(event) or self.failed
        self._count(event)
        choice = (mappings(event.get("choices")) or [{}])[0]
        part = mapping(event.get("message")) or mapping(choice.get("delta"))
        if piece := string(part.get("content")):
            self._text.append(piece)
            self._pieces += 1
        for position, call in enumerate(mappings(part.get("tool_calls"))):
            self._add(integer(call.get("index")) or position, mapping(call.get("function")))
        if part and not self._first and (piece or part.get("tool_calls")):
            self._first = at - self._begun

    def _count(self, event: Mapping[str, Any]) -> None:
        usage = mapping(event.get("usage"))
        if event.get("done") is True:
            self.done = True
            self._prompt = integer(event.get("prompt_eval_count"))
            self._output = integer(event.get("eval_count"))
        self._prompt = integer(usage.get("prompt_tokens")) or self._prompt
        self._output = integer(usage.get("completion_tokens")) or self._output
        if isinstance(usage.get("cost"), int | float):
            self._cost = number(usage["cost"])

    def _add(self, index: int, function: Mapping[str, Any]) -> None:
        """OpenAI's arguments come as pieces of a text, Ollama's as a whole mapping."""
        name, text, whole = self._calls.get(index, ("", "", {}))
        arguments = function.get("arguments")
        text += string(arguments)
        self._calls[index] = (
            name or string(function.get("name")),
            text,
            mapping(arguments) or whole,
        )

    def reply(self, ended: float) -> ModelReply:
        text = "".join(self._text)
        return ModelReply(
            text.encode("utf-8", "replace").decode(),  # JSON can have half a character
            tuple(ToolCall(name, whole or _json(text)) for name, text, whole in self._in_order()),
            self._pieces,
            self._first,
            ended - self._begun,
            self._prompt,
            self._output,
            self._cost,
        )

    def _in_order(self) -> list[tuple[str, str, dict[str, Any]]]:
        return [call for _, call in sorted(self._calls.items())]


def _json(text: str) -> dict[str, Any]:
    try:
        return mapping(json.loads(text))
    except (ValueError, RecursionError):
        return {}
