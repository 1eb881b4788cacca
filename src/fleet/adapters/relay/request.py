"""A request for a model, and its body for one node."""

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
LONGEST = 120  # characters of the name of an agent or session


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request that a client sent for a model."""

    model: str
    path: str  # after /m/MODEL
    wire: Wire
    body: dict[str, Any]
    headers: dict[str, str]
    agent: str
    session: str
    stream: bool
    prompt: tuple[Step, ...]
    most: int  # tokens that the reply may have; 0: no limit given

    @property
    def prompt_tokens(self) -> int:
        return self.prompt[-1].tokens if self.prompt else 0


def read_request(
    model: str,
    path: str,
    wire: Wire,
    body: dict[str, Any],
    headers: Mapping[str, str],
    agent: str = "",
) -> ModelRequest:
    """`agent` comes from the address; without it, from a header."""
    parts = _parts(body)
    agent = agent or headers.get("x-fleet-agent") or headers.get("x-claude-code-agent-id") or ""
    return ModelRequest(
        model, path, wire, body,
        {name: headers[name] for name in SENT_ON if name in headers},
        _readable(agent),
        _readable(_session(body, headers, parts)),
        wire.asks_stream(body),
        steps(parts),
        _most(body),
    )  # fmt: skip


def body_for(serving: Serving, request: ModelRequest) -> bytes:
    """With the same context size for every request: Ollama loads the model anew for another."""
    body = {**request.body, "model": serving.upstream}
    options = body.get("options") or {}
    if request.path in {"/api/chat", "/api/generate", "/api/embed"} and isinstance(options, dict):
        body["options"] = {**options, "num_ctx": serving.context}
        body.setdefault("keep_alive", -1)
    return _bytes(json.dumps(body, ensure_ascii=False, separators=(",", ":")))


def address(serving: Serving, path: str) -> str:
    return serving.node.endpoint.rstrip("/").removesuffix("/v1") + path


def _parts(body: dict[str, Any]) -> list[bytes]:
    """The parts of the prompt, in the order in which a model reads them."""
    parts = [body[key] for key in ("tools", "system", "instructions") if body.get(key)]
    for key in ("messages", "input", "prompt"):
        value = body.get(key) or []
        parts += value if isinstance(value, list) else [value]
    return [_bytes(part) if isinstance(part, str) else marshal.dumps(part, 2) for part in parts]


def _bytes(text: str) -> bytes:
    """Without the half characters that a client sends when it cuts text, and that no node reads."""
    return text.encode("utf-8", "replace")


def _readable(name: str) -> str:
    """As valid UTF-8: a header may contain any bytes."""
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
    values = [options.get("num_predict")] if isinstance(options, dict) else []
    values += [body.get(name) for name in names]
    return max((value for value in values if isinstance(value, int)), default=0)
