"""Try one model through the gateway as a coder would: a long prompt, a tool, its result."""

from __future__ import annotations

import http.client
import json
import secrets
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fleet.adapters.home.tail import Tail
from fleet.domain.data import NamedTuple
from fleet.domain.nodes.trace import read

if TYPE_CHECKING:
    from pathlib import Path

LONG = 4500  # tokens: more than the 4096 of Ollama's default context
CHARACTERS = 4  # of a token, about
RECORDED = 1.0  # seconds for the relay to write its trace
AGENT = "doctor"
NODE = ("x-fleet-node", "llm_provider-x-fleet-node")
TOOL = {
    "type": "function",
    "function": {
        "name": "note_word",
        "description": "Note a word.",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string"}},
            "required": ["word"],
        },
    },
}


class Trip(NamedTuple):
    """The result of one try. `read` of about `sent` tokens reached the model.

    `error`: what went wrong, with its HTTP status.
    """

    node: str = ""
    seconds: float = 0.0
    sent: int = 0
    read: int = 0
    called: bool = False
    status: int = 0
    error: str = ""


class GatewayAddress(NamedTuple):
    url: str
    key: str
    traces: Path


def round_trip(gateway: GatewayAddress, model: str, *, context: int, within: float) -> Trip:
    session = f"doctor-{secrets.token_hex(6)}"
    asking = _GatewayCall(gateway, session, time.monotonic() + within)
    began = time.monotonic()
    text = _long_text(session, min(LONG, int(context * 0.6)))
    word = secrets.token_hex(3)
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"{text}\nCall the tool note_word with the word {word}."}
    ]
    try:
        first = asking.ask(model, messages)
        calls = first["choices"][0]["message"].get("tool_calls") or []
        if calls:
            message = {"role": "assistant", "content": None, "tool_calls": calls}
            result = {"role": "tool", "tool_call_id": calls[0].get("id", ""), "content": "Noted."}
            asking.ask(model, [*messages, message, result])
    except _Failed as error:
        return Trip(
            asking.node or _traced(gateway.traces, session), status=error.status, error=str(error)
        )
    except (KeyError, IndexError, TypeError, AttributeError):
        return Trip(error="its answer is not a valid reply")
    usage = first.get("usage") or {}
    return Trip(
        asking.node or _traced(gateway.traces, session),
        time.monotonic() - began,
        len(text) // CHARACTERS,
        int(usage.get("prompt_tokens") or 0),
        bool(calls),
        http.client.OK,
    )


class _Failed(Exception):
    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class _GatewayCall:
    def __init__(self, gateway: GatewayAddress, session: str, until: float) -> None:
        self._gateway, self._until = gateway, until
        self.node = ""
        self._headers = {
            "content-type": "application/json",
            "authorization": f"Bearer {gateway.key}",
            "x-fleet-session": session,
            "x-fleet-agent": AGENT,
        }

    def ask(self, model: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
        url = urlsplit(self._gateway.url)
        seconds = max(0.1, self._until - time.monotonic())
        connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=seconds)
        body = {"model": model, "messages": messages, "tools": [TOOL], "max_tokens": 512}
        try:
            connection.request("POST", "/v1/chat/completions", json.dumps(body), self._headers)
            answer = connection.getresponse()
            self.node = next((v for n in NODE if (v := answer.getheader(n))), self.node)
            raw = answer.read()
        except TimeoutError:
            raise _Failed("no answer in time") from None
        except (OSError, http.client.HTTPException) as error:
            raise _Failed(f"the gateway did not answer: {error}") from None
        finally:
            connection.close()
        if answer.status != http.client.OK:
            raise _Failed(_message(raw), answer.status)
        try:
            reply = json.loads(raw)
        except ValueError:
            raise _Failed("its answer is not JSON") from None
        return reply if isinstance(reply, dict) else {}


def _message(raw: bytes) -> str:
    text = raw.decode("utf-8", "replace")
    try:
        error = json.loads(text)["error"]
        text = str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, KeyError, TypeError):
        pass
    return " ".join(text.split())[:300]


def _long_text(start: str, tokens: int) -> str:
    """A text that begins differently each time, so that no prompt cache has it."""
    line = "Line {} of a text that is only long: there is nothing to do about it."
    lines, size = [start], 0
    while size < tokens * CHARACTERS:
        lines.append(line.format(len(lines)))
        size += len(lines[-1]) + 1
    return "\n".join(lines)


def _traced(traces: Path, session: str) -> str:
    """Return the node that answered, by the relay's trace."""
    until = time.monotonic() + RECORDED
    while True:
        tail = Tail(traces)
        try:
            rows = [t for line in tail.past() if session.encode() in line and (t := read(line))]
        finally:
            tail.close()
        if rows:
            return rows[-1].node
        if time.monotonic() > until:
            return ""
        time.sleep(0.1)
