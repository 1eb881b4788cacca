"""Read the events of OpenCode's server through the bridge, and make the replies that it needs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fleet.adapters.coders.acp import rpc
from fleet.adapters.coders.acp.rpc_listener import LineListener
from fleet.domain.run import Usage
from fleet.domain.transcript import Said, SaidKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MILLI = 1000  # microseconds
TOO_MANY = 429
OK = range(200, 300)
LONGEST_WAIT = 120 * 1000  # milliseconds that it may wait for its next try
TELLING = ("filePath", "command", "pattern", "url", "query", "description")


def order(ident: str, path: str, body: dict[str, Any] | None, *, method: str = "POST") -> str:
    request = {"id": ident, "method": method, "path": path}
    return json.dumps(request if body is None else {**request, "body": body}) + "\n"


class OpenCodeListener(LineListener):
    def __init__(self, opening: dict[str, Any]) -> None:
        super().__init__(opening)
        self._session = ""
        self._running = False
        self._own: set[str] = set()  # messages that are the model's
        self._own_message = ""  # the newest message that is words of ours; ids ascend
        self._answered = ""  # the newest message that the model was given
        self._last = ""  # what it said last in this turn
        self._error = ""  # why this turn failed

    def _read(self, message: dict[str, Any]) -> Iterable[Said]:
        if "event" in message:
            event = message["event"]
            return self._event(event["type"], event["properties"], message["at"])
        return self._replied(message) if "status" in message else ()

    def words(self, text: str) -> str | None:
        """The message as a request; None until OpenCode has opened a session."""
        return self._say(f"{rpc.WORDS}{self._heard}", text) if self._session else None

    def _say(self, ident: str, text: str) -> str:
        part = {"type": "text", "text": text, "metadata": {"fleet": ident}}
        body = {**self._opening.get("message", {}), "parts": [part]}
        return order(ident, f"/session/{self._session}/prompt_async", body)

    def _replied(self, record: dict[str, Any]) -> Iterator[Said]:
        ident, fine = record.get("id"), record["status"] in OK
        if ident == "session" and fine:
            self._session = record["body"]["id"]
            yield Said(SaidKind.SESSION, self._session)
            first = self._say("prompt", self._opening.get("prompt", ""))
            yield Said(SaidKind.REPLY, first, name="prompt")
        elif ident in {"session", "prompt"} and not fine:
            yield Said(SaidKind.RESULT, _message(record.get("body")), failed=True)

    def _event(self, kind: str, properties: dict[str, Any], at: int) -> Iterator[Said]:
        if kind == "permission.asked":
            yield _reply(
                properties["id"], f"/permission/{properties['id']}/reply", self._decision()
            )
        elif kind == "question.asked":
            yield _reply(properties["id"], f"/question/{properties['id']}/reject", {})
        elif kind == "message.part.updated" and properties["part"]["type"] == "step-finish":
            yield self._used(properties["part"])  # also of an agent that it started itself
        elif properties.get("sessionID") != self._session:
            return
        elif kind == "message.updated":
            if properties["info"]["role"] == "assistant":
                self._own.add(properties["info"]["id"])
                self._answered = max(self._answered, properties["info"].get("parentID", ""))
        elif kind == "message.part.updated":
            yield from self._part(properties["part"])
        elif kind == "session.error":
            yield from self._failed(properties.get("error") or {}, at)
        elif kind == "session.status":
            yield from self._status(properties["status"], at)

    def _decision(self) -> dict[str, str]:
        """The reply to a permission request; a refusal has a reason, as one without would end the turn."""
        if self._opening.get("yes"):
            return {"reply": "once"}
        return {"reply": "reject", "message": "That is not permitted here. Go on without it."}

    def _status(self, status: dict[str, Any], at: int) -> Iterator[Said]:
        match status["type"]:
            case "busy":
                yield from self._begins()
            case "retry" if self._running and not self._error:
                if status["next"] - at > LONGEST_WAIT:
                    yield from self._give_up(status["message"], status["next"])
            case "idle" if self._running:
                failed = bool(self._error)
                yield Said(SaidKind.RESULT, self._error or self._last, failed=failed)
                self._running = self._own_message > self._answered and not failed
                if self._running:  # words came as the turn was ending: they are the next one
                    yield Said(SaidKind.TURN)

    def _begins(self) -> Iterator[Said]:
        if not self._running:
            self._running, self._last, self._error = True, "", ""
            yield Said(SaidKind.TURN)

    def _give_up(self, why: str, until: int) -> Iterator[Said]:
        """End a run at a rate limit: OpenCode would wait as long as it was told to, and hold its slot."""
        self._error = why or "The provider asked it to try again later."
        yield Said(SaidKind.LIMIT, self._error, resume_at=until * MILLI)
        yield _reply(f"abort:{self._heard}", f"/session/{self._session}/abort", {})

    def _failed(self, error: dict[str, Any], at: int) -> Iterator[Said]:
        if self._error and error.get("name") == "MessageAbortedError":
            return  # by us
        self._error, data = _message(error), error.get("data") or {}
        if data.get("statusCode") == TOO_MANY:
            wait = str((data.get("responseHeaders") or {}).get("retry-after", ""))
            until = (at + int(wait) * 1000) * MILLI if wait.isdecimal() else 0
            yield Said(SaidKind.LIMIT, self._error, resume_at=until)
        else:
            yield Said(SaidKind.ERROR, self._error)

    def _part(self, part: dict[str, Any]) -> Iterator[Said]:
        match part["type"]:
            case "text" if part["messageID"] in self._own:
                self._last = part["text"]
                yield Said(SaidKind.TEXT, part["text"])
            case "text":
                if str((part.get("metadata") or {}).get("fleet")).startswith(rpc.WORDS):
                    self._own_message = part["messageID"]
                    yield from self._begins()
                    yield Said(SaidKind.HEARD, part["text"])
            case "reasoning":
                yield Said(SaidKind.THINKING, part["text"])
            case "tool":
                yield from _tool(part["tool"], part["state"])

    def _used(self, part: dict[str, Any]) -> Said:
        tokens = part["tokens"]
        cached, written = tokens["cache"]["read"], tokens["cache"]["write"]
        fresh = tokens["input"] + written
        output = tokens["output"] + tokens.get("reasoning", 0)
        context = fresh + cached if part["sessionID"] == self._session else 0
        usd = float(part.get("cost") or 0.0)
        return Said(SaidKind.USAGE, usage=Usage(fresh, output, cached, context, usd))


def _tool(name: str, state: dict[str, Any]) -> Iterator[Said]:
    match state["status"]:
        case "running":
            given = state.get("input") or {}
            telling = next((given[key] for key in TELLING if given.get(key)), None)
            yield Said(SaidKind.TOOL, str(telling or json.dumps(given)), name=name)
        case "completed":
            yield Said(SaidKind.TOOL_RESULT, state.get("output", ""), name=name)
        case "error":
            yield Said(SaidKind.TOOL_RESULT, state.get("error", ""), name=name, failed=True)


def _reply(ident: str, path: str, body: dict[str, Any]) -> Said:
    return Said(SaidKind.REPLY, order(ident, path, body), name=ident)


def _message(error: Any) -> str:
    """The text of an error, which is a name with data, or a text alone."""
    if not isinstance(error, dict):
        return str(error or "It gave no reason.")
    data = error.get("data")
    text = data.get("message") if isinstance(data, dict) else error.get("message")
    return str(text or error.get("name") or json.dumps(error))
