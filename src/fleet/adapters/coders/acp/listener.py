"""Read ACP's messages, and make the replies that it needs."""

from __future__ import annotations

import json
import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from fleet.adapters.coders.acp import rpc
from fleet.adapters.coders.acp.rpc_listener import AGAIN, RpcListener
from fleet.domain.run import Usage
from fleet.domain.transcript import Said, SaidKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MODES = {  # as programs call them, for each of our permissions
    "read": ("read-only",),
    "edit": ("acceptEdits",),
    "full": ("bypassPermissions", "full-access", "yolo"),
}
READING = {"read", "search", "think"}
WORKING = READING | {"edit", "delete", "move", "execute", "fetch"}
LIMITED = re.compile(r"rate.?limit|too many requests|\b429\b|quota|usage limit", re.IGNORECASE)
SPEAKING = {"agent_message_chunk": SaidKind.TEXT, "agent_thought_chunk": SaidKind.THINKING}
ACTING = {*SPEAKING, "tool_call", "tool_call_update", "plan"}


class AcpListener(RpcListener):
    def __init__(self, opening: dict[str, Any]) -> None:
        super().__init__(opening)
        self._session = ""
        self._steps: list[tuple[str, str, dict[str, Any]]] = []  # before the first prompt
        self._ready = False  # the first prompt has been sent
        self._running = False
        self._lasting = False  # a session can be continued
        self._speech: tuple[SaidKind, Any, str] | None = None  # what it is about to have said
        self._last = ""  # what it said last in this turn
        self._tools: dict[str, dict[str, Any]] = {}
        self._stopped = ""  # what it was refused, and has done nothing since
        self._used = Usage()
        self._late: list[tuple[str, str]] = []  # words that it refused in its turn

    def words(self, text: str) -> str | None:
        """The message as a request; None until the program has its first prompt."""
        return self._say(rpc.words_id(self._heard, text), text) if self._ready else None

    def _say(self, ident: str, text: str) -> str:
        blocks = [{"type": "text", "text": text}]
        return rpc.request(ident, "session/prompt", {"sessionId": self._session, "prompt": blocks})

    def _replied(self, message: dict[str, Any]) -> Iterator[Said]:
        ident, error, value = message.get("id"), message.get("error"), message.get("result") or {}
        if ident == "initialize" and not error:
            yield self._begin(value.get("agentCapabilities") or {})
        elif ident == "session" and not error:
            yield from self._begun(value)
        elif isinstance(ident, str) and ident.startswith("set:") and not error:
            yield self._next()
        elif isinstance(ident, str) and ident.startswith(("prompt", rpc.WORDS, AGAIN)):
            yield from self._prompted(ident, value, error)
        elif error:
            yield Said(SaidKind.RESULT, _why(error), failed=True)

    def _begin(self, able: dict[str, Any]) -> Said:
        resumes = "resume" in (able.get("sessionCapabilities") or {})
        self._lasting = resumes or bool(able.get("loadSession"))
        params: dict[str, Any] = {"cwd": self._opening["cwd"], "mcpServers": []}
        method = "session/new"
        if session := self._opening.get("session"):
            self._session = session
            method = "session/resume" if resumes else "session/load"
            params["sessionId"] = session
        return Said(SaidKind.REPLY, rpc.request("session", method, params), name="session")

    def _begun(self, value: dict[str, Any]) -> Iterator[Said]:
        self._session = value.get("sessionId") or self._session
        if self._lasting:
            yield Said(SaidKind.SESSION, self._session)
        self._tools.clear()  # of a session that was played back
        self._speech = None
        self._steps = [*self._mode(value), *self._model(value)]
        yield self._next()

    def _mode(self, value: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
        known = {m["id"] for m in (value.get("modes") or {}).get("availableModes", ())}
        wanted = self._opening.get("mode")
        fitting = MODES[self._opening["permissions"]]
        if chosen := wanted or next((mode for mode in fitting if mode in known), ""):
            yield "set:mode", "session/set_mode", {"modeId": chosen}

    def _model(self, value: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
        model = self._opening.get("model")
        if not model:
            return
        options = {o.get("id"): o for o in value.get("configOptions") or ()}
        if "model" in options:
            params = {"configId": "model", "value": _nearest(model, options["model"])}
            yield "set:model", "session/set_config_option", params
        else:
            yield "set:model", "session/set_model", {"modelId": model}

    def _next(self) -> Said:
        if self._steps:
            ident, method, params = self._steps.pop(0)
            line = rpc.request(ident, method, {"sessionId": self._session, **params})
            return Said(SaidKind.REPLY, line, name=ident)
        self._ready = True
        first = self._say("prompt", self._opening.get("prompt", ""))
        return Said(SaidKind.REPLY, first, name="prompt")

    def _on_request(self, ident: Any, method: str, params: dict[str, Any]) -> Iterator[Said]:
        name = f"answer:{ident}"
        if method != "session/request_permission":
            yield Said(SaidKind.REPLY, rpc.refusal(ident, "Not supported."), name=name)
            return
        call = params.get("toolCall") or {}
        known = {**self._tools.get(call.get("toolCallId", ""), {}), **call}
        wish = "allow" if self._grants(known) else "reject"
        self._stopped = "" if wish == "allow" else str(known.get("title") or known.get("kind"))
        options = {o["kind"]: o["optionId"] for o in params.get("options", ())}
        chosen = options.get(f"{wish}_once") or options.get(f"{wish}_always")
        outcome = (
            {"outcome": "selected", "optionId": chosen} if chosen else {"outcome": "cancelled"}
        )
        yield Said(SaidKind.REPLY, rpc.result(ident, {"outcome": outcome}), name=name)

    def _grants(self, call: dict[str, Any]) -> bool:
        granted, kind = self._opening["permissions"], call.get("kind")
        if granted == "full":
            return True
        if kind not in (WORKING if granted == "edit" else READING):
            return False
        paths = [location.get("path") or "" for location in call.get("locations") or ()]
        return kind in READING or all(map(self._is_inside, paths))

    def _is_inside(self, path: str) -> bool:
        where = PurePosixPath(self._opening["cwd"], path)
        if ".." in where.parts:
            return False
        return any(where.is_relative_to(directory) for directory in self._opening["places"])

    def _on_notification(self, method: str, params: dict[str, Any]) -> Iterable[Said]:
        ours = method == "session/update" and params.get("sessionId") == self._session
        return self._update(params["update"]) if ours else ()

    def _update(self, update: dict[str, Any]) -> Iterator[Said]:
        kind = update["sessionUpdate"]
        if kind == "usage_update":
            yield from self._count(update)
        if not self._ready or kind not in ACTING:
            return
        if not self._running:
            self._running, self._last = True, ""
            yield Said(SaidKind.TURN)
        if kind in {*SPEAKING, "tool_call"}:
            self._stopped = ""
        if kind in SPEAKING:
            yield from self._speaks(SPEAKING[kind], update)
            return
        yield from self._spoken()
        if kind == "tool_call":
            yield from self._call(update)
        elif kind == "tool_call_update":
            yield from self._called(update)

    def _speaks(self, kind: SaidKind, update: dict[str, Any]) -> Iterator[Said]:
        """Join the pieces in which a text comes into one."""
        text, whole = str((update.get("content") or {}).get("text", "")), update.get("messageId")
        if self._speech is not None and self._speech[:2] != (kind, whole):
            yield from self._spoken()
        self._speech = (kind, whole, (self._speech[2] if self._speech else "") + text)

    def _spoken(self) -> Iterator[Said]:
        if self._speech is not None:
            kind, _, text = self._speech
            self._speech = None
            if kind is SaidKind.TEXT:
                self._last = text
            yield Said(kind, text)

    def _call(self, update: dict[str, Any]) -> Iterator[Said]:
        self._tools[update["toolCallId"]] = update
        title = str(update.get("title", ""))
        yield Said(SaidKind.TOOL, title, name=str(update.get("kind") or "other"))
        yield from self._called(update)

    def _called(self, update: dict[str, Any]) -> Iterator[Said]:
        ident = update["toolCallId"]
        call = self._tools.get(ident)
        if call is None:
            return
        self._tools[ident] = {**call, **{k: v for k, v in update.items() if v is not None}}
        if update.get("status") in {"completed", "failed"}:
            del self._tools[ident]
            failed = update["status"] == "failed"
            name = str(call.get("kind") or "other")
            yield Said(SaidKind.TOOL_RESULT, _output(update), name=name, failed=failed)

    def _count(self, update: dict[str, Any]) -> Iterator[Said]:
        """The usage so far. Its cost is that of the whole session, including earlier runs."""
        cost = (update.get("cost") or {}).get("amount") or 0.0
        used, usd = self._used, max(self._used.usd, float(cost))
        context = int(update.get("used") or 0)
        self._used = Usage(used.input, used.output, used.cached, context, usd)
        if self._ready:
            yield Said(SaidKind.USAGE, usage=self._used, total=True)

    def _prompted(self, ident: str, value: dict[str, Any], error: Any) -> Iterator[Said]:
        """The reply to a prompt; the end of a turn counts once, however many prompts it took."""
        words = rpc.words_in(ident.removeprefix(AGAIN))
        if words is not None and error:
            yield from self._refused(ident, words, error)
            return
        if words is not None:
            yield Said(SaidKind.HEARD, words)
        if self._running or words is None:
            yield from self._spoken()
            yield from self._add(value.get("usage") or {})
            yield from self._end(value.get("stopReason"), error)
            for again, late in self._late:
                yield Said(SaidKind.REPLY, self._say(again, late), name=rpc.brief(again))
            self._late.clear()

    def _refused(self, ident: str, words: str, error: dict[str, Any]) -> Iterator[Said]:
        """A program that takes one prompt at a time refused this one: send it again after the turn."""
        again = f"{AGAIN}{ident}"
        if ident.startswith(AGAIN):
            yield Said(SaidKind.ERROR, _why(error))
        elif self._running:
            self._late.append((again, words))
        else:
            yield Said(SaidKind.REPLY, self._say(again, words), name=rpc.brief(again))

    def _add(self, usage: dict[str, Any]) -> Iterator[Said]:
        if not usage:
            return
        used = self._used
        self._used = Usage(
            used.input + usage.get("inputTokens", 0) + (usage.get("cachedWriteTokens") or 0),
            used.output + usage.get("outputTokens", 0) + (usage.get("thoughtTokens") or 0),
            used.cached + (usage.get("cachedReadTokens") or 0),
            used.context,
            used.usd,
        )
        yield Said(SaidKind.USAGE, usage=self._used, total=True)

    def _end(self, reason: Any, error: dict[str, Any] | None) -> Iterator[Said]:
        silent, self._running = not self._running, False
        self._tools.clear()
        if error:
            why = _why(error)
            if LIMITED.search(why):
                yield Said(SaidKind.LIMIT, why)
        elif reason != "end_turn":
            why = f"The turn ended with {reason}."
        elif self._stopped:
            why = f"It stopped when it was refused: {self._stopped}."
        else:  # a prompt that it took for a command of its own comes back like this
            why = "It ended the turn without a word." if silent else ""
        self._stopped = ""
        yield Said(SaidKind.RESULT, why or self._last, failed=bool(why))


def _output(update: dict[str, Any]) -> str:
    blocks = [b.get("content") or {} for b in update.get("content") or ()]
    texts = [b["text"] for b in blocks if isinstance(b, dict) and isinstance(b.get("text"), str)]
    if texts:
        return "\n".join(texts)
    raw = update.get("rawOutput")
    return raw if isinstance(raw, str) else json.dumps(raw) if raw else ""


def _why(error: dict[str, Any]) -> str:
    data = error.get("data")
    detail = data if isinstance(data, str) else json.dumps(data) if data else ""
    return f"{error.get('message', 'It gave no reason.')} {detail}".strip()


def _nearest(wanted: str, option: dict[str, Any]) -> str:
    """The model as the program lists it: `PROVIDER/wanted`, if exactly one matches."""
    listed = [str(one.get("value")) for one in option.get("options") or () if isinstance(one, dict)]
    ending = [name for name in listed if name.rpartition("/")[2] == wanted]
    return ending[0] if wanted not in listed and len(ending) == 1 else wanted
