"""JSON-RPC, one message a line, as Codex's app-server and ACP speak it.

Request ids are ours to choose. Those of words carry the words themselves, so that the one who hears
the reply knows what it was about, without having asked: a fold is replayed by others.
"""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

WORDS = "words:"
NO_METHOD = -32601
UNREADABLE = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What comes of a message whose shape is not the one we know: another release of the program."""


def request(ident: str, method: str, params: dict[str, Any]) -> str:
    return _line({"id": ident, "method": method, "params": params})


def notification(method: str) -> str:
    return _line({"method": method})


def result(ident: Any, value: Any) -> str:
    return _line({"id": ident, "result": value})


def refusal(ident: Any, message: str) -> str:
    return _line({"id": ident, "error": {"code": NO_METHOD, "message": message}})


def read(line: str) -> dict[str, Any] | None:
    """Read a line; None if it is not a message, but a warning or a line cut off by a kill."""
    try:
        message = json.loads(line)
    except ValueError:
        return None
    return message if isinstance(message, dict) else None


def words_id(number: int, text: str) -> str:
    """The request id of a message; the same text sent later gets another id."""
    return f"{WORDS}{number}:{text}"


def words_in(ident: Any) -> str | None:
    """The text of the message with this request id; None for other requests."""
    if not isinstance(ident, str) or not ident.startswith(WORDS):
        return None
    return ident.removeprefix(WORDS).partition(":")[2]


def brief(ident: str) -> str:
    """The request id without the text, to use as a name."""
    kind, _, _ = ident.partition(":")
    return f"{kind}:{sha256(ident.encode('utf-8', 'replace')).hexdigest()[:16]}"


def _line(message: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", **message}) + "\n"
