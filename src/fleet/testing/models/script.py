"""What a scripted model replies: values, builders for the usual ones, and their form in JSON.

A script is a function of what was asked; or a list of replies that every conversation goes through
from the start; or several lists, each for the conversations in which its key has been said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from fleet.domain.data import dataclass


@dataclass(frozen=True, slots=True)
class Say:
    text: str


@dataclass(frozen=True, slots=True)
class Think:
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """`input` is text for the tools that take no JSON (Codex's `apply_patch`)."""

    name: str
    input: Mapping[str, Any] | str


@dataclass(frozen=True, slots=True)
class Wait:
    """Between two parts. For ever, when `seconds` is infinite: until someone hangs up."""

    seconds: float = math.inf


Part = Say | Think | Call | Wait


@dataclass(frozen=True, slots=True)
class Tokens:
    """What the reply reports. `input` is beside what came from the cache or was written to it."""

    input: int = 100
    output: int = 10
    cached: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True)
class Fail:
    """`kind` and `message` in the dialect's own shape, unless `body` is given."""

    status: int
    message: str = "The script says so."
    kind: str = ""
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    parts: tuple[Part, ...] = ()
    tokens: Tokens = field(default_factory=Tokens)
    headers: Mapping[str, str] = field(default_factory=dict)
    fail: Fail | None = None


def say(text: str, **tokens: int) -> Reply:
    return Reply((Say(text),), Tokens(**tokens))


def call(name: str, /, **arguments: Any) -> Reply:
    return Reply((Call(name, arguments),))


def fail(status: int, message: str = "", *, retry_after: float | None = None) -> Reply:
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    return Reply(headers=headers, fail=Fail(status, message or Fail(status).message))


def limited(resets_at: int, *, claim: str = "five_hour") -> Reply:
    """429 as Anthropic turns a subscription away: when it resets is in the headers."""
    unified = "anthropic-ratelimit-unified"
    headers = {
        f"{unified}-status": "rejected",
        f"{unified}-reset": str(resets_at),
        f"{unified}-representative-claim": claim,
    }
    message = "This request would exceed your account's rate limit. Please try again later."
    return Reply(headers=headers, fail=Fail(429, message))


def hang() -> Reply:
    return Reply((Wait(),))


def after(seconds: float, reply: Reply) -> Reply:
    return replace(reply, parts=(Wait(seconds), *reply.parts))


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, as it came and as every dialect would put it."""

    path: str
    headers: Mapping[str, str]  # names in lower case
    body: Mapping[str, Any]
    dialect: str = ""  # empty: no reply was asked for
    conversation: str = ""
    number: int = 0  # of the requests of this conversation, from 0
    id: str = ""
    model: str = ""
    system: str = ""
    tools: tuple[str, ...] = ()
    messages: tuple[Mapping[str, Any], ...] = ()
    said: tuple[str, ...] = ()  # by the user, or put there for them; oldest first
    results: tuple[str, ...] = ()  # of tools, oldest first
    aside: bool = False  # beside the conversation, as for a title: not from the script


Script = Callable[[Asked], Reply] | Sequence[Reply] | Mapping[str, Sequence[Reply]]
DONE = say("Done.")  # when a script has no more to say


def reply_to(script: Script, request: Asked) -> Reply:
    if callable(script):
        return script(request)
    if isinstance(script, Mapping):
        words = "\n".join(request.said)
        script = next((steps for key, steps in script.items() if key in words), ())
    return script[request.number] if request.number < len(script) else DONE


def read_script(document: Any) -> Sequence[Reply] | Mapping[str, Sequence[Reply]]:
    """From JSON: `[{"say": "Hello"}, …]`, or `{"words of the prompt": […], …}`."""
    if isinstance(document, dict):
        return {str(key): [_read(step) for step in steps] for key, steps in document.items()}
    return [_read(step) for step in document]


def _read(step: dict[str, Any]) -> Reply:
    """`think`, `wait`, `say`, `call`, `hang` make one reply, in that order; or there is `fail`."""
    known = {"think", "wait", "say", "call", "hang", "tokens", "headers", "fail", "message"}
    known |= {"retry_after", "resets_at"}
    if unknown := sorted(set(step) - known):
        raise ValueError(f"{unknown[0]!r} is not part of a step; there are {sorted(known)}.")
    if "resets_at" in step:
        return limited(step["resets_at"])
    if "fail" in step:
        return fail(step["fail"], step.get("message", ""), retry_after=step.get("retry_after"))
    calls = step.get("call", [])
    parts: list[Part] = []
    if "think" in step:
        parts.append(Think(step["think"]))
    if "wait" in step:
        parts.append(Wait(step["wait"]))
    if "say" in step:
        parts.append(Say(step["say"]))
    calls = calls if isinstance(calls, list) else [calls]
    parts += [Call(one["name"], one["input"]) for one in calls]
    if step.get("hang"):
        parts.append(Wait())
    return Reply(tuple(parts), Tokens(**step.get("tokens", {})), step.get("headers", {}))
