"""The wire formats that the relay forwards: what a request holds, when a reply is complete.

A reply is complete only at its end marker. `ReplyReader` reads a reply line by line as it passes,
and parses as JSON only the lines that can hold the end, a count or an error.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from fleet.base.loose_json import mapping, number
from fleet.domain.data import NamedTuple
from fleet.domain.nodes.kinds import ANTHROPIC, OLLAMA, OPENAI, kind_of
from fleet.domain.nodes.speed import Timing
from fleet.domain.nodes.trace import TokenCounts

if TYPE_CHECKING:
    from collections.abc import Callable

PING = b": ping\n\n"
NODE_FAILED = "Failed to establish a new connection"  # the words that LiteLLM looks for
MOST_COUNTED = 1e15  # tokens or nanoseconds (eleven days); a larger count is a bug of the node


class RelayWire(NamedTuple):
    name: str
    family: str
    streams: bool = False  # also when the request does not say so
    ends: tuple[bytes, ...] = ()  # bytes that only a line with an end marker contains
    answer: str = ""  # the field that every whole reply has

    @property
    def lines(self) -> bool:
        """Whether a stream is lines of JSON, not server-sent events."""
        return self.family == OLLAMA

    def speaks(self, kind: str) -> bool:
        return self.family in kind_of(kind).wires

    def asks_stream(self, body: dict[str, Any]) -> bool:
        return bool(body.get("stream", self.streams))

    def ping(self, model: str) -> bytes:
        """Ollama's clients parse each line as JSON, so their ping is an empty piece of a reply."""
        return json.dumps(self._empty(model)).encode() + b"\n" if self.lines else PING

    def _empty(self, model: str) -> dict[str, Any]:
        message = {"role": "assistant", "content": ""}
        content = {"response": ""} if self.name == "generate" else {"message": message}
        return {"model": model, "created_at": "1970-01-01T00:00:00Z", **content, "done": False}

    def error(self, message: str, status: int, code: str = "") -> dict[str, Any]:
        """Return an error in this format. `code`: the one that OpenAI's clients recognise."""
        if self.family == OLLAMA:
            return {"error": message}
        if self.family == ANTHROPIC:
            kind = ANTHROPIC_ERRORS.get(status, "api_error")
            return {"type": "error", "error": {"type": kind, "message": message}}
        kind = "invalid_request_error" if status in {400, 404} else "server_error"
        return {"error": {"message": message, "type": kind, "code": code or status}}

    def broken(self, message: str, status: int) -> bytes:
        """Return an error for a reply that has begun.

        LiteLLM passes on a line of Ollama's format that has no message, and blames the request for
        it, unless the line says that a connection failed.
        """
        error = self.error(message, status)
        if self.lines:
            blame = {"for_litellm": NODE_FAILED} if status >= 500 else {}
            return json.dumps(error | blame).encode() + b"\n"
        kind = "event: error\n" if self.family == ANTHROPIC else ""
        if self.name == "responses":
            details = {"code": "server_error", "message": message}
            error = {"type": "response.failed", "response": {"status": "failed", "error": details}}
            kind = "event: response.failed\n"
        return f"\n\n{kind}data: {json.dumps(error)}\n\n".encode()


ANTHROPIC_ERRORS = {
    400: "invalid_request_error",
    403: "permission_error",
    404: "not_found_error",
    503: "overloaded_error",
}
_DONE = (b"[DONE]",)
_TRUE = (b'"done":true', b'"done": true')
WIRES = {
    "/api/chat": RelayWire("chat", OLLAMA, streams=True, ends=_TRUE, answer="message"),
    "/api/generate": RelayWire("generate", OLLAMA, streams=True, ends=_TRUE, answer="response"),
    "/api/embed": RelayWire("embed", OLLAMA, answer="embeddings"),
    "/v1/chat/completions": RelayWire("chat.completions", OPENAI, ends=_DONE, answer="choices"),
    "/v1/completions": RelayWire("completions", OPENAI, ends=_DONE, answer="choices"),
    "/v1/responses": RelayWire(
        "responses",
        OPENAI,
        ends=(b'"response.completed"', b'"response.incomplete"', b'"response.failed"'),
        answer="output",
    ),
    "/v1/embeddings": RelayWire("embeddings", OPENAI, answer="data"),
    "/v1/messages": RelayWire("messages", ANTHROPIC, ends=(b'"message_stop"',), answer="content"),
}
COUNT = "/v1/messages/count_tokens"
SMALL_REQUESTS = {  # they need no slot
    "/api/show": RelayWire("show", OLLAMA),
    "/api/tags": RelayWire("tags", OLLAMA),
    "/api/ps": RelayWire("ps", OLLAMA),
    "/api/version": RelayWire("version", OLLAMA),
    "/v1/models": RelayWire("models", OPENAI),
    COUNT: RelayWire("count_tokens", ANTHROPIC),
}
ENDS = {"response.completed", "response.incomplete", "message_stop"}
OPENINGS = {"message_start", "response.created", "response.in_progress", "response.queued", "ping"}
OLLAMA_CACHED = "prompt_eval_cached_count"  # part of `prompt_eval_count`; since 0.33
OLLAMA_WORDS = ("content", "thinking", "tool_calls", "images")
WORTH_READING = (b'"error"', b'"usage"', b'"timings"')


@dataclass(slots=True)
class ReplyReader:
    """Reads a reply. `begun`: the node has sent a part of the answer itself, or its end.

    A comment, an opening or an empty object is not an answer: until then another node may be asked.
    """

    wire: RelayWire
    begun: bool = False
    done: bool = False
    failed: str = ""  # the error that the node sent within the reply
    counts: dict[str, Any] = field(default_factory=dict)
    pieces: int = 0
    _rest: bytes = b""

    def feed(self, data: bytes) -> None:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            if line.startswith((b"data:", b"{")):
                self.pieces += 1
            self._line(line)

    def finish(self) -> None:
        """Read the last line, which may have no line break."""
        if self._rest.strip():
            self._line(self._rest)
            self._rest = b""

    def read_whole(self, data: bytes) -> None:
        """A reply in one piece."""
        try:
            reply = json.loads(data)
        except (ValueError, RecursionError):
            self.failed = "its answer is not JSON"
            return
        if not isinstance(reply, dict):
            self.failed = "it answered without a reply"
            return
        self._count(reply)
        self._judge(reply)
        if not self.failed and reply.get(self.wire.answer) in (None, [], {}):
            stopped = reply.get("stop_reason") or reply.get("status") == "incomplete"
            self.failed = "" if stopped else "it answered without a reply"
        self.done = self.begun = not self.failed

    def _line(self, line: bytes) -> None:
        if self.begun and not _worth_reading(self.wire.ends)(line):
            return
        text = line.removeprefix(b"data:").strip()
        if text == b"[DONE]":
            self.done = self.begun
            return
        try:
            event = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(event, dict):
            self._count(event)
            self._judge(event)
            self.begun = self.begun or (not self.failed and is_answer(self.wire, event))

    def _judge(self, event: dict[str, Any]) -> None:
        kind = event.get("type")
        if kind in ENDS or event.get("done") is True:
            self.done = True
        elif (
            event.get("error")
            or kind in {"error", "response.failed"}
            or event.get("object") == "error"  # vLLM
        ):
            self.failed = _error_of(event) or "it failed"

    def _count(self, event: dict[str, Any]) -> None:
        response = event.get("response") if isinstance(event.get("response"), dict) else event
        message = event.get("message")
        for part in (response, message if isinstance(message, dict) else {}):
            for key in ("usage", "timings"):
                if isinstance(part, dict) and isinstance(part.get(key), dict):
                    self.counts.setdefault(key, {}).update(part[key])
        if "eval_count" in event or "prompt_eval_count" in event:
            self.counts["ollama"] = event


@cache
def _worth_reading(ends: tuple[bytes, ...]) -> Callable[[bytes], object]:
    """Return a search for what every line with an end, a count or an error contains."""
    return re.compile(b"|".join(map(re.escape, (*ends, *WORTH_READING)))).search


def error_of(body: bytes) -> str:
    """Return the message of a node's error, cut to the length of a sentence."""
    try:
        decoded = json.loads(body)
    except (ValueError, RecursionError):
        decoded = None
    return _error_of(mapping(decoded)) or body[:200].decode("utf-8", "replace")


def _error_of(event: dict[str, Any]) -> str:
    error = event.get("error") or mapping(event.get("response")).get("error")
    error = error or event.get("message") or ""
    return str(error.get("message") if isinstance(error, dict) else error)[:300]


def is_answer(wire: RelayWire, event: dict[str, Any]) -> bool:
    """Whether this part of a stream belongs to the answer, and is more than its opening."""
    if wire.family == OLLAMA:
        message = mapping(event.get("message"))
        words = event.get("response") or any(message.get(key) for key in OLLAMA_WORDS)
        return bool(words) or event.get("done") is True
    if wire.family == ANTHROPIC or wire.name == "responses":
        kind = str(event.get("type"))
        return kind not in OPENINGS and kind.startswith(("content_block", "message_", "response."))
    choices = event.get("choices")
    return isinstance(choices, list) and any(_has_words(mapping(choice)) for choice in choices)


def _has_words(choice: dict[str, Any]) -> bool:
    """Whether a choice has more than a role, which some servers send before the answer."""
    delta = mapping(choice.get("delta"))
    words = (value for key, value in delta.items() if key != "role")
    return bool(choice.get("text") or choice.get("finish_reason") or any(words))


def tokens(counts: dict[str, Any]) -> TokenCounts:
    """Return the node's own counts of tokens; 0 where it sent none."""
    if ollama := counts.get("ollama"):
        return TokenCounts(
            _integer(ollama, "prompt_eval_count"),
            _integer(ollama, "eval_count"),
            _integer(ollama, OLLAMA_CACHED),
        )
    usage = counts.get("usage") or {}
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details") or {}
    cached = _integer(details, "cached_tokens") or _integer(usage, "cache_read_input_tokens")
    prompt = _integer(usage, "prompt_tokens") or _integer(usage, "input_tokens")
    if "cache_read_input_tokens" in usage:
        prompt += cached  # Anthropic counts cached tokens separately
    output = _integer(usage, "completion_tokens") or _integer(usage, "output_tokens")
    return TokenCounts(prompt, output, cached)


class ReplyTimes(NamedTuple):
    """The relay's own measure: seconds to the first byte, and from there to the end."""

    first: float
    rest: float


def cost(counts: dict[str, Any]) -> float | None:
    """Return the cost in dollars if the node, a hosted API, states it."""
    usage = counts.get("usage") or {}
    known = isinstance(usage.get("cost"), int | float)
    return _number(usage, "cost") if known else None


def timing(reader: ReplyReader, clock: ReplyTimes, guess: TokenCounts) -> Timing:
    """The node's own figures if it sent any, else our clock and our `guess` of the prompt."""
    counts = reader.counts
    count = tokens(counts)
    if figures := counts.get("ollama"):
        ns = 1e9
        known = OLLAMA_CACHED in figures
        return Timing(
            max(0, count.prompt - (count.cached if known else guess.cached)),
            _integer(figures, "prompt_eval_duration") / ns,
            count.output,
            _integer(figures, "eval_duration") / ns,
            _integer(figures, "load_duration") / ns,
            uncached=0 if known else count.prompt,
        )
    if figures := counts.get("timings"):
        ms = 1e3
        return Timing(
            _integer(figures, "prompt_n"),
            _number(figures, "prompt_ms") / ms,
            _integer(figures, "predicted_n"),
            _number(figures, "predicted_ms") / ms,
        )
    if not clock.rest:  # it came in one piece, so reading and writing cannot be told apart
        return Timing()
    read = (count.prompt or guess.prompt) - (count.cached or guess.cached)
    written = (count.output or reader.pieces) - 1
    return Timing(max(0, read), clock.first, max(0, written), clock.rest)


def unnamed(measured: Timing, clock: ReplyTimes) -> float:
    """Return the seconds before the first token that the node's figures do not explain."""
    if not (measured.reading or measured.writing):
        return 0.0  # it sent no figures
    named = measured.loading + measured.reading + (0.0 if clock.rest else measured.writing)
    return max(0.0, clock.first - named)


def _integer(counts: object, key: str) -> int:
    return int(_number(counts, key))


def _number(counts: object, key: str) -> float:
    value = number(mapping(counts).get(key))
    return value if abs(value) < MOST_COUNTED else 0.0
