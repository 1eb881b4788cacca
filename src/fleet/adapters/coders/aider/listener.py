"""Read Aider's output: the lines of its event log, and the text printed between them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from fleet.domain.run import Usage
from fleet.domain.transcript import Said, SaidKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

LIMITED = re.compile(r"^litellm\.\w*RateLimitError|\brate limited you\b|^litellm\.BudgetExceeded")
ACTS = re.compile(r"^(Applied edit to|Commit|Did not apply edit to|Running) (.+)$")
NAMES = {"Applied edit to": "edit", "Commit": "commit", "Running": "run"}
BROKEN = (  # said after a reply, when nothing came of it
    "Cmd('git') failed",
    "Exception while updating files:",
    "Unable to create ",
    "Unable to commit",
    "Only 3 reflections allowed",
)
TOO_LONG = "has hit a token limit!"
RETRY = re.compile(r"^Retrying in \d+\.\d seconds\.\.\.$")
TOKENS = "Tokens: "
COMPLETED = "Completed"
UNREADABLE = (AttributeError, KeyError, TypeError, ValueError, RecursionError)
UNANSWERED = "The model did not answer."


class AiderListener:
    """Reads Aider's lines. What `hear` returns depends only on the opening and the lines."""

    def __init__(self, opening: dict[str, Any]) -> None:
        self._session = str(opening.get("session") or "")
        self._asking = False  # a message has been sent, and not been answered
        self._lines: list[str] = []  # since then, or since the last reply
        self._reply = ""
        self._replies = 0
        self._broken = ""
        self._full = False

    def hear(self, line: str) -> Sequence[Said]:
        try:
            event = json.loads(line)
            name, properties = str(event["event"]), event["properties"]
            return tuple(self._event(name, properties if isinstance(properties, dict) else {}))
        except UNREADABLE:
            return tuple(self._line(line.rstrip()))

    def words(self, text: str) -> str | None:
        del text  # it hears nothing once it has started
        return None

    def _event(self, name: str, properties: dict[str, Any]) -> Iterator[Said]:
        match name:
            case "message_send_starting":
                if not self._replies and not self._asking:
                    yield Said(SaidKind.SESSION, self._session)
                    yield Said(SaidKind.TURN)
                self._asking, self._lines, self._broken = True, [], ""
            case "message_send":
                self._asking, self._reply = False, "\n".join(self._last_try()).strip()
                self._lines = []
                self._replies += 1
                if self._reply:
                    yield Said(SaidKind.TEXT, self._reply)
                yield Said(SaidKind.USAGE, usage=_usage(properties))
            case "message_send_exception":
                yield Said(SaidKind.ERROR, str(properties.get("exception", "")))
            case "exit":
                yield from self._end(str(properties.get("reason", "")))

    def _line(self, line: str) -> Iterator[Said]:
        if self._asking:
            if not line.startswith(TOKENS):
                self._lines.append(line)
        elif line.startswith(BROKEN) or line.endswith(TOO_LONG):
            self._broken = line
            self._full = line.endswith(TOO_LONG) and not self._reply  # else its reply was too long
            yield Said(SaidKind.ERROR, line)
        elif match := ACTS.match(line):
            name = NAMES.get(match[1], "")
            if name:
                yield Said(SaidKind.TOOL, match[2], name=name)
                yield Said(SaidKind.TOOL_RESULT, name=name)
            else:
                yield Said(SaidKind.TEXT, line)
        elif not self._replies and line:
            self._lines.append(line)  # what it could not even start with

    def _last_try(self) -> list[str]:
        """The lines of the last try: Aider asks the model again by itself, and only the last reply counts."""
        retries = [number for number, line in enumerate(self._lines) if RETRY.match(line)]
        return self._lines[retries[-1] + 1 :] if retries else self._lines

    def _end(self, reason: str) -> Iterator[Said]:
        why = ""
        if self._asking or not self._replies:
            lines = [line for line in self._last_try() if line]
            why = "\n".join(lines) or UNANSWERED
            if any(map(LIMITED.search, lines)):
                yield Said(SaidKind.LIMIT, why)
        elif self._broken:
            why = self._broken
            if self._full:
                yield Said(SaidKind.FULL, why)
        elif not reason.startswith(COMPLETED):
            why = f"Aider ended: {reason}."
        self._asking = False
        yield Said(SaidKind.RESULT, why or self._reply, failed=bool(why))


def _usage(properties: dict[str, Any]) -> Usage:
    given, made = (int(properties.get(f"{what}_tokens") or 0) for what in ("prompt", "completion"))
    return Usage(given, made, context=given, usd=float(properties.get("cost") or 0.0))
