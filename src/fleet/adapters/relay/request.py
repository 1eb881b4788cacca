"""What a request asks, and how it is said to one node."""

from __future__ import annotations

import hashlib
import json
import marshal
from typing import TYPE_CHECKING, Any

from fleet.domain.data import dataclass
from fleet.domain.nodes.prompt_cache import Step, steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.adapters.relay.wires import Wire
    from fleet.domain.fleet import Serving

SESSIONS = ("x-fleet-session", "x-claude-code-session-id", "x-litellm-session-id")
SENT_ON = ("anthropic-version", "anthropic-beta", "accept")
LONGEST = 120  # of a name from outside, in a trace


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that waits for an answer."""

    model: str
    path: str  # after /m/MODEL
    wire: Wire
    body: dict[str, Any]
    headers: dict[str, str]
    agent: str
    session: str
    stream: bool
    prompt: tuple[Step, ...]
    most: int  # tokens that the reply may have; 0: not said

    @property
    def prompt_tokens(self) -> int:
        return self.prompt[-1].tokens if self.prompt else 0


def asked(
    model: str,
    path: str,
    wire: Wire,
    body: dict[str, Any],
    headers: Mapping[str, str],
    agent: str = "",
) -> Asked:
    """`agent` is the one that its address names; else a header may."""
    parts = _parts(body)
    agent = agent or headers.get("x-fleet-agent") or headers.get("x-claude-code-agent-id") or ""
    return Asked(
        model, path, wire, body,
        {name: headers[name] for name in SENT_ON if name in headers},
        _readable(agent),
        _readable(_session(body, headers, parts)),
        wire.asks_stream(body),
        steps(parts),
        _most(body),
    )  # fmt: skip


def said_to(serving: Serving, asked: Asked) -> bytes:
    """The same for every request: a context of another size would load the model anew."""
    body = {**asked.body, "model": serving.upstream}
    options = body.get("options") or {}
    if asked.path in {"/api/chat", "/api/generate", "/api/embed"} and isinstance(options, dict):
        body["options"] = {**options, "num_ctx": serving.context}
        body.setdefault("keep_alive", -1)
    return _bytes(json.dumps(body, ensure_ascii=False, separators=(",", ":")))


def address(serving: Serving, path: str) -> str:
    return serving.node.endpoint.rstrip("/").removesuffix("/v1") + path


def _parts(body: dict[str, Any]) -> list[bytes]:
    """In the order in which a model reads them."""
    found = [body[key] for key in ("tools", "system", "instructions") if body.get(key)]
    for key in ("messages", "input", "prompt"):
        held = body.get(key) or []
        found += held if isinstance(held, list) else [held]
    return [_bytes(part) if isinstance(part, str) else marshal.dumps(part, 2) for part in found]


def _bytes(text: str) -> bytes:
    """A program that cuts its text in the middle of a sign sends half of it, which no node reads."""
    return text.encode("utf-8", "replace")


def _readable(name: str) -> str:
    """Of a header, whatever bytes it had, or of a body."""
    name = name[:LONGEST]
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return _bytes(name).decode()


def _session(body: dict[str, Any], headers: Mapping[str, str], parts: list[bytes]) -> str:
    for name in SESSIONS:
        if headers.get(name):
            return headers[name]
    key = body.get("prompt_cache_key")
    if isinstance(key, str) and key:
        return key
    first = hashlib.blake2b(b"\0".join(parts[:3]), digest_size=6).hexdigest()
    return f"~{first}" if parts else ""


def _most(body: dict[str, Any]) -> int:
    options = body.get("options")
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    found = [options.get("num_predict")] if isinstance(options, dict) else []
    found += [body.get(name) for name in names]
    return max((value for value in found if isinstance(value, int)), default=0)
