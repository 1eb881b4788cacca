"""A request for a model, and its body for one node."""

from __future__ import annotations

import asyncio
import hashlib
import json
import marshal
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote

import msgspec

from fleet.domain.data import dataclass
from fleet.domain.nodes.prompt_cache import CHARACTERS, PromptStep, steps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleet.adapters.relay.wires import RelayWire
    from fleet.domain.fleet import Serving

T = TypeVar("T")
SESSIONS = ("x-fleet-session", "x-claude-code-session-id", "x-litellm-session-id")
RUN_HEADER = "x-fleet-run"
PROJECT_HEADER = "x-fleet-project"  # its directory, percent-encoded
SENT_ON = ("anthropic-version", "anthropic-beta", "accept")
HEAD = ("tools", "system", "instructions")  # what a model reads before the messages
PICTURES = {"images", "image_url", "source", "file_data", "input_audio"}
LARGE = 1 << 20  # bytes of a body that is read and written beside the loop
LONGEST = 120  # characters of the name of an agent or session
LONGEST_PATH = 4096


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request that a client sent for a model."""

    model: str
    path: str  # after /m/MODEL
    wire: RelayWire
    body: dict[str, Any]
    headers: dict[str, str]
    agent: str
    session: str
    run: str
    stream: bool
    prompt: tuple[PromptStep, ...]
    most: int  # tokens that the reply may have; 0: no limit given
    text_tokens: int = 0  # without pictures, whose data is no text that a model reads
    size: int = 0  # bytes of the body, as it came
    project: str = ""  # as the request says

    @property
    def prompt_tokens(self) -> int:
        return self.prompt[-1].tokens if self.prompt else 0

    @property
    def owner(self) -> str:
        """The key of the conversation, as several agents may share a session."""
        return f"{self.session} {self.agent}"

    @property
    def party(self) -> str:
        """What takes turns in the line: the agent, or without one the conversation."""
        return self.agent or self.session

    def fits(self, context: int) -> bool:
        """Whether a context of so many tokens holds the prompt, as far as an estimate can say."""
        return self.prompt_tokens <= context or self.text_tokens <= context


def read_request(
    model: str,
    path: str,
    wire: RelayWire,
    body: dict[str, Any],
    headers: Mapping[str, str],
    agent: str = "",
    size: int = 0,
) -> ModelRequest:
    """`agent` comes from the address; without it, from a header."""
    prompt = _prompt(body)
    agent = agent or headers.get("x-fleet-agent") or headers.get("x-claude-code-agent-id") or ""
    return ModelRequest(
        model, path, wire, body,
        {name: headers[name] for name in SENT_ON if name in headers},
        _readable(agent),
        _readable(_session(body, headers, prompt)),
        _readable(headers.get(RUN_HEADER, "")),
        wire.asks_stream(body),
        steps(map(_part, prompt)),
        _most(body),
        _text_size(prompt) // CHARACTERS,
        size,
        _readable(unquote(headers.get(PROJECT_HEADER, "")), LONGEST_PATH),
    )  # fmt: skip


def decode(raw: bytes | bytearray) -> Any:
    """Any JSON that clients send, also what the fast reader refuses. Raise `ValueError`."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return json.loads(raw)  # NaN, integers of any length, halves of characters


def unread(raw: bytearray, body: dict[str, Any]) -> dict[str, Any]:
    """Return `body` with values as raw JSON, which takes far less memory than objects."""
    try:
        values = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body
    return {key: body[key] if key == "options" else value for key, value in values.items()}


def encode(body: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(body)
    except (UnicodeEncodeError, OverflowError, RecursionError):
        return _bytes(json.dumps(body, ensure_ascii=False, separators=(",", ":")))


async def beside(size: int, act: Callable[..., T], *values: Any) -> T:
    """Call `act`, in a thread if the body's `size` in bytes would make it block other requests."""
    return await asyncio.to_thread(act, *values) if size > LARGE else act(*values)


def in_pieces(data: bytes) -> bytes | BytesIO:
    """Return a body so that aiohttp sends a large one in pieces."""
    return BytesIO(data) if len(data) > LARGE else data


def body_for(serving: Serving, request: ModelRequest) -> bytes:
    """Return the body for a node; always with the same context size, or Ollama would reload."""
    body = {**request.body, "model": serving.upstream}
    options = body.get("options") or {}
    if request.path in {"/api/chat", "/api/generate", "/api/embed"} and isinstance(options, dict):
        body["options"] = {**options, "num_ctx": serving.context}
        body.setdefault("keep_alive", -1)
    return encode(body)


def address(serving: Serving, path: str) -> str:
    return serving.node.endpoint.rstrip("/").removesuffix("/v1") + path


def _prompt(body: dict[str, Any]) -> list[Any]:
    """Return the parts of the prompt, in the order in which a model reads them."""
    parts = [body[key] for key in HEAD if body.get(key)]
    for key in ("messages", "input", "prompt"):
        value = body.get(key) or []
        parts += value if isinstance(value, list) else [value]
    return parts


def _part(part: Any) -> bytes:
    return _bytes(part) if isinstance(part, str) else marshal.dumps(part, 2)


def _text_size(value: Any) -> int:
    """Count the characters in all texts of a value."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(_text_size(item) for key, item in value.items() if key not in PICTURES)
    return sum(map(_text_size, value)) if isinstance(value, list) else 0


def _bytes(text: str) -> bytes:
    """Encode text, replacing halves of characters, which clients send when they cut text."""
    return text.encode("utf-8", "replace")


def _readable(name: str, longest: int = LONGEST) -> str:
    """Return a header's value, which may contain any bytes, shortened and as valid UTF-8."""
    name = name[:longest]
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return _bytes(name).decode()


def _opening(body: dict[str, Any], prompt: list[Any]) -> int:
    """Return how many parts, up to the user's first message, all turns of a conversation share."""
    head = sum(bool(body.get(key)) for key in HEAD)
    for number, part in enumerate(prompt[head:], head + 1):
        if isinstance(part, str) or (isinstance(part, dict) and part.get("role") == "user"):
            return number
    return len(prompt)


def _session(body: dict[str, Any], headers: Mapping[str, str], prompt: list[Any]) -> str:
    for name in SESSIONS:
        if headers.get(name):
            return headers[name]
    key = body.get("prompt_cache_key")
    if isinstance(key, str) and key:
        return key
    opening = prompt[: _opening(body, prompt)]
    first = hashlib.blake2b(b"\0".join(map(_part, opening)), digest_size=6).hexdigest()
    return f"~{first}" if opening else ""


def _most(body: dict[str, Any]) -> int:
    options = body.get("options")
    names = ("max_tokens", "max_completion_tokens", "max_output_tokens")
    values = [options.get("num_predict")] if isinstance(options, dict) else []
    values += [body.get(name) for name in names]
    return max((value for value in values if isinstance(value, int)), default=0)
