"""The wire formats that pass through the relay: what a request holds, when a reply is whole.

A reply is whole only at its end marker. `Ear` listens to a reply as it passes, line by line, and reads
as JSON only what can be the end, a count or an error.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from fleet.domain.data import NamedTuple
from fleet.domain.nodes.kinds import ANTHROPIC, OLLAMA, OPENAI, kind_of
from fleet.domain.nodes.speed import Timing
from fleet.domain.nodes.trace import Tokens

PING = b": ping\n\n"
MOST_COUNTED = 1e15  # of tokens or nanoseconds: eleven days


class Wire(NamedTuple):
    name: str
    family: str
    streams: bool = False  # also when the request does not say so
    ends: tuple[bytes, ...] = ()  # what only a line with an end marker holds

    @property
    def lines(self) -> bool:
        """Lines of JSON, and not events."""
        return self.family == OLLAMA

    def speaks(self, kind: str) -> bool:
        return self.family in kind_of(kind).wires

    def asks_stream(self, body: dict[str, Any]) -> bool:
        return bool(body.get("stream", self.streams))

    def ping(self, model: str) -> bytes:
        """Every Ollama client reads each line as JSON, so theirs is an empty piece of a reply."""
        return json.dumps(self._empty(model)).encode() + b"\n" if self.lines else PING

    def _empty(self, model: str) -> dict[str, Any]:
        message = {"role": "assistant", "content": ""}
        said = {"response": ""} if self.name == "generate" else {"message": message}
        return {"model": model, "created_at": "1970-01-01T00:00:00Z", **said, "done": False}

    def error(self, message: str, status: int) -> dict[str, Any]:
        if self.family == OLLAMA:
            return {"error": message}
        if self.family == ANTHROPIC:
            kind = "overloaded_error" if status == 503 else "api_error"
            return {"type": "error", "error": {"type": kind, "message": message}}
        return {"error": {"message": message, "type": "server_error", "code": status}}

    def broken(self, message: str, model: str) -> bytes:
        """An error within a reply that has begun.

        LiteLLM stumbles over a line without a message and blames the request; with one it notices
        that the reply is cut off. Ollama's own clients look for the error first.
        """
        error = self.error(message, 502)
        if self.lines:
            return json.dumps(self._empty(model) | error).encode() + b"\n"
        kind = "event: error\n" if self.family == ANTHROPIC else ""
        if self.name == "responses":
            said = {"code": "server_error", "message": message}
            error = {"type": "response.failed", "response": {"status": "failed", "error": said}}
            kind = "event: response.failed\n"
        return f"\n\n{kind}data: {json.dumps(error)}\n\n".encode()


_DONE = (b"[DONE]",)
_TRUE = (b'"done":true', b'"done": true')
WIRES = {
    "/api/chat": Wire("chat", OLLAMA, streams=True, ends=_TRUE),
    "/api/generate": Wire("generate", OLLAMA, streams=True, ends=_TRUE),
    "/api/embed": Wire("embed", OLLAMA),
    "/v1/chat/completions": Wire("chat.completions", OPENAI, ends=_DONE),
    "/v1/completions": Wire("completions", OPENAI, ends=_DONE),
    "/v1/responses": Wire(
        "responses",
        OPENAI,
        ends=(b'"response.completed"', b'"response.incomplete"', b'"response.failed"'),
    ),
    "/v1/embeddings": Wire("embeddings", OPENAI),
    "/v1/messages": Wire("messages", ANTHROPIC, ends=(b'"message_stop"',)),
}
COUNT = "/v1/messages/count_tokens"
ASIDE = {  # what needs no slot
    "/api/show": Wire("show", OLLAMA),
    "/api/tags": Wire("tags", OLLAMA),
    "/api/ps": Wire("ps", OLLAMA),
    "/api/version": Wire("version", OLLAMA),
    "/v1/models": Wire("models", OPENAI),
    COUNT: Wire("count_tokens", ANTHROPIC),
}
ENDS = {"response.completed", "response.incomplete", "message_stop"}
WORTH_READING = (b'"error"', b'"usage"', b'"timings"')


@dataclass(slots=True)
class Ear:
    wire: Wire
    done: bool = False
    failed: str = ""  # the node said so within the reply
    counts: dict[str, Any] = field(default_factory=dict)
    pieces: int = 0
    _rest: bytes = b""

    def hear(self, data: bytes) -> None:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            if line.startswith((b"data:", b"{")):
                self.pieces += 1
            self._line(line)

    def over(self) -> None:
        """The last line may have no end."""
        if self._rest.strip():
            self._line(self._rest)
            self._rest = b""

    def whole(self, data: bytes) -> None:
        """A reply in one piece."""
        try:
            said = json.loads(data)
        except (ValueError, RecursionError):
            self.failed = "it answered with what is not JSON"
            return
        if isinstance(said, dict):
            self._count(said)
            self.done = True

    def _line(self, line: bytes) -> None:
        if not any(mark in line for mark in (*self.wire.ends, *WORTH_READING)):
            return
        text = line.removeprefix(b"data:").strip()
        if text == b"[DONE]":
            self.done = True
            return
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(said, dict):
            self._count(said)
            self._judge(said)

    def _judge(self, said: dict[str, Any]) -> None:
        kind = said.get("type")
        if kind in ENDS or said.get("done") is True:
            self.done = True
        elif said.get("error") or kind in {"error", "response.failed"}:
            held = said.get("response")
            error = said.get("error") or (isinstance(held, dict) and held.get("error"))
            error = error or "it failed"
            text = error.get("message") if isinstance(error, dict) else error
            self.failed = str(text)[:300]

    def _count(self, said: dict[str, Any]) -> None:
        held = said.get("response") if isinstance(said.get("response"), dict) else said
        message = said.get("message")
        for part in (held, message if isinstance(message, dict) else {}):
            for key in ("usage", "timings"):
                if isinstance(part, dict) and isinstance(part.get(key), dict):
                    self.counts.setdefault(key, {}).update(part[key])
        if "eval_count" in said or "prompt_eval_count" in said:
            self.counts["ollama"] = said


def tokens(counts: dict[str, Any]) -> Tokens:
    """As the node counted them; zero where it did not."""
    if said := counts.get("ollama"):
        return Tokens(_whole(said, "prompt_eval_count"), _whole(said, "eval_count"))
    usage = counts.get("usage") or {}
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    cached = _whole(details, "cached_tokens") or _whole(usage, "cache_read_input_tokens")
    prompt = _whole(usage, "prompt_tokens") or _whole(usage, "input_tokens")
    if "cache_read_input_tokens" in usage:
        prompt += cached  # Anthropic counts what was cached apart
    output = _whole(usage, "completion_tokens") or _whole(usage, "output_tokens")
    return Tokens(prompt, output, cached)


class Clock(NamedTuple):
    """Our own: seconds from sending to the first byte, and from there to the end."""

    first: float
    rest: float


def cost(counts: dict[str, Any]) -> float | None:
    """In dollars, where a hosted API says it."""
    usage = counts.get("usage") or {}
    known = isinstance(usage.get("cost"), int | float)
    return _number(usage, "cost") if known else None


def timing(ear: Ear, clock: Clock, guess: Tokens) -> Timing:
    """From the node's own words if it has them, else by our clock and our `guess` of the prompt."""
    counts = ear.counts
    count = tokens(counts)
    if said := counts.get("ollama"):
        ns = 1e9
        return Timing(
            max(0, count.prompt - guess.cached),
            _whole(said, "prompt_eval_duration") / ns,
            count.output,
            _whole(said, "eval_duration") / ns,
            _whole(said, "load_duration") / ns,
        )
    if said := counts.get("timings"):
        ms = 1e3
        return Timing(
            _whole(said, "prompt_n"),
            _number(said, "prompt_ms") / ms,
            _whole(said, "predicted_n"),
            _number(said, "predicted_ms") / ms,
        )
    if not clock.rest:  # in one piece: nobody can tell reading from writing
        return Timing()
    read = (count.prompt or guess.prompt) - (count.cached or guess.cached)
    written = (count.output or ear.pieces) - 1
    return Timing(max(0, read), clock.first, max(0, written), clock.rest)


def _whole(held: object, key: str) -> int:
    return int(_number(held, key))


def _number(held: object, key: str) -> float:
    """Zero where a node says none, or one that is no number: nobody checked what it says."""
    value = held.get(key) if isinstance(held, dict) else None
    if not isinstance(value, int | float) or not abs(value) < MOST_COUNTED:
        return 0.0
    return float(value)
