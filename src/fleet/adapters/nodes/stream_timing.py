"""Times of a streamed reply, read line by line: how long reading and writing took."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fleet.base.loose_json import integer, mapping, mappings, number, string
from fleet.domain.nodes.benchmark import SpeedSample
from fleet.domain.nodes.speed import Timing

if TYPE_CHECKING:
    from collections.abc import Mapping

PIECES = ("content", "thinking", "reasoning_content", "reasoning")
NS, MS = 1e9, 1e3


def event_of(line: bytes) -> dict[str, Any] | None:
    """Return the event in a stream's line; empty for a line without one, None at the end."""
    text = line.removeprefix(b"data:").strip()
    if text == b"[DONE]":
        return None
    try:
        return mapping(json.loads(text)) if text else {}
    except (ValueError, RecursionError):
        return {}


def error_of(event: Mapping[str, Any]) -> str:
    """Return the error in an event, in either of the two formats; empty: none."""
    error = event.get("error")
    return (string(error) or string(mapping(error).get("message")) or "it failed") if error else ""


class TimedReply:
    """`begun` is when it was requested. Lines of JSON as Ollama sends them, or OpenAI's events."""

    def __init__(self, begun: float) -> None:
        self.done = False
        self.failed = ""
        self._begun = begun
        self._times: list[float] = []  # of every piece of text or reasoning
        self._end: dict[str, Any] = {}  # Ollama's last line
        self._usage: dict[str, Any] = {}
        self._timings: dict[str, Any] = {}  # llama.cpp's

    @property
    def empty(self) -> bool:
        return not self._times

    def hear(self, line: bytes, at: float) -> None:
        event = event_of(line)
        if event is None:
            self.done = True
            return
        self.failed = error_of(event) or self.failed
        if event.get("done") is True:
            self.done, self._end = True, event
        self._usage |= mapping(event.get("usage"))
        self._timings |= mapping(event.get("timings"))
        choices = mappings(event.get("choices")) or [{}]
        part = mapping(event.get("message")) or mapping(choices[0].get("delta"))
        if any(part.get(name) for name in PIECES):
            self._times.append(at)

    def sample(self, prompt_tokens: int) -> SpeedSample:
        """The node's own figures where it gives them; else `prompt_tokens` were sent."""
        first = self._times[0] - self._begun
        return SpeedSample(
            self._timing(first, self._times[-1] - self._times[0], prompt_tokens), first
        )

    def _timing(self, first: float, rest: float, prompt_tokens: int) -> Timing:
        if self._end:
            figures = self._end
            return Timing(
                integer(figures.get("prompt_eval_count")),
                integer(figures.get("prompt_eval_duration")) / NS,
                integer(figures.get("eval_count")),
                integer(figures.get("eval_duration")) / NS,
                integer(figures.get("load_duration")) / NS,
            )
        if self._timings:
            figures = self._timings
            return Timing(
                integer(figures.get("prompt_n")),
                number(figures.get("prompt_ms")) / MS,
                integer(figures.get("predicted_n")),
                number(figures.get("predicted_ms")) / MS,
            )
        details = mapping(self._usage.get("prompt_tokens_details"))
        prompt = integer(self._usage.get("prompt_tokens")) or prompt_tokens
        output = integer(self._usage.get("completion_tokens")) or len(self._times)
        read = max(0, prompt - integer(details.get("cached_tokens")))
        return Timing(read, first, max(0, output - 1), rest)  # the first ends the reading
