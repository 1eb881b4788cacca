"""Read the messages of Codex's app-server, and make the replies that it needs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fleet.adapters.coders.acp import rpc
from fleet.adapters.coders.acp.rpc_listener import AGAIN, RpcListener
from fleet.domain.run import Usage
from fleet.domain.transcript import Said, SaidKind

if TYPE_CHECKING:
    from collections.abc import Iterator


class CodexListener(RpcListener):
    def __init__(self, opening: dict[str, Any]) -> None:
        super().__init__(opening)
        self._thread = ""
        self._turn = ""  # the running one
        self._last = ""  # what it said last in this turn
        self._totals: dict[str, _Tokens] = {}  # of every thread; it may have started others
        self._before: dict[str, _Tokens] = {}  # of an earlier run, or before we listened
        self._resets: dict[str, int] = {}  # of the limits that are reached

    def words(self, text: str) -> str | None:
        """The message as a request; None until Codex has opened a thread."""
        return self._say(rpc.words_id(self._heard, text), text) if self._thread else None

    def _say(self, ident: str, text: str) -> str:
        params = {
            "threadId": self._thread,
            "input": [{"type": "text", "text": text}],
            "clientUserMessageId": rpc.brief(ident),
        }
        if self._turn:
            return rpc.request(ident, "turn/steer", {**params, "expectedTurnId": self._turn})
        return rpc.request(ident, "turn/start", params)

    def _replied(self, message: dict[str, Any]) -> Iterator[Said]:
        ident, error = message.get("id"), message.get("error")
        if ident == "thread" and not error:
            self._thread = message["result"]["thread"]["id"]
            yield Said(SaidKind.SESSION, self._thread)
            first = self._say("prompt", self._opening.get("prompt", ""))
            yield Said(SaidKind.REPLY, first, name="prompt")
        elif error and ident in {"initialize", "thread", "prompt"}:
            yield Said(SaidKind.RESULT, str(error.get("message")), failed=True)
        elif error and (text := rpc.words_in(ident)) is not None:
            # Its turn ended, or another began, before they came: they are said again, once.
            again = f"{AGAIN}{ident}"
            yield Said(SaidKind.REPLY, self._say(again, text), name=rpc.brief(again))

    def _on_request(self, ident: Any, method: str, params: dict[str, Any]) -> Iterator[Said]:
        yes = bool(self._opening.get("yes"))
        if (value := _decision(method, params, yes=yes)) is None:
            text = rpc.refusal(ident, "Not supported.")
        else:
            text = rpc.result(ident, value)
        yield Said(SaidKind.REPLY, text, name=f"answer:{ident}")

    def _on_notification(self, method: str, params: dict[str, Any]) -> Iterator[Said]:
        if method == "account/rateLimits/updated":
            self._note_limits(params["rateLimits"])
        elif method == "thread/tokenUsage/updated":
            yield from self._used(params["threadId"], params["tokenUsage"])
        elif params.get("threadId") != self._thread:
            return  # of an agent that it started itself
        elif method == "turn/started":
            self._turn, self._last = params["turn"]["id"], ""
            yield Said(SaidKind.TURN)
        elif method == "item/started":
            yield from _begun(params["item"])
        elif method == "item/completed":
            yield from self._completed(params["item"])
        elif method == "error" and not params.get("willRetry"):
            yield Said(SaidKind.ERROR, params["error"]["message"])
        elif method == "turn/completed":
            yield from self._ended(params["turn"])

    def _completed(self, item: dict[str, Any]) -> Iterator[Said]:
        kind = item["type"]
        if kind == "agentMessage":
            self._last = item["text"]
            yield Said(SaidKind.TEXT, item["text"])
        elif kind == "reasoning":
            yield Said(SaidKind.THINKING, "\n".join(item.get("summary") or item.get("content", ())))
        elif kind == "userMessage":
            if str(item.get("clientId")).startswith((rpc.WORDS, AGAIN)):
                text = "".join(part.get("text", "") for part in item["content"])
                yield Said(SaidKind.HEARD, text)
        elif kind in TOOLS:
            failed = item.get("status") in {"failed", "declined"} or bool(item.get("exitCode"))
            text = str(item.get("aggregatedOutput") or item.get("error") or item.get("status", ""))
            yield Said(SaidKind.TOOL_RESULT, text, name=_tool(item), failed=failed)

    def _used(self, thread: str, usage: dict[str, Any]) -> Iterator[Said]:
        """What this run has used: Codex repeatedly reports totals of a thread, with earlier runs."""
        total, last = _tokens(usage["total"]), _tokens(usage["last"])
        if thread == self._thread and not self._totals and not self._turn:
            self._before[thread] = total  # what a resumed thread had used
            return
        self._before.setdefault(thread, _minus(total, last))
        self._totals[thread] = total
        spent = [_minus(t, self._before[name]) for name, t in self._totals.items()]
        given, output, cached = (sum(column) for column in zip(*spent, strict=True))
        context = last[0] if thread == self._thread else 0
        counted = Usage(given - cached, output, cached, context)
        window = int(usage.get("modelContextWindow") or 0)
        yield Said(SaidKind.USAGE, usage=counted, total=True, window=window)

    def _note_limits(self, limits: dict[str, Any]) -> None:
        """Merge a partial report of rate limits into the known ones."""
        for name in ("primary", "secondary"):
            if window := limits.get(name):
                reached = window.get("usedPercent", 0) >= 100
                key = f"{limits.get('limitId')}/{name}"
                self._resets[key] = (window.get("resetsAt") or 0) if reached else 0

    def _ended(self, turn: dict[str, Any]) -> Iterator[Said]:
        self._turn = ""
        error = turn.get("error") or {}
        if _is_limit(error.get("codexErrorInfo")):
            until = max(self._resets.values(), default=0) * 1_000_000
            yield Said(SaidKind.LIMIT, error["message"], resume_at=until)
        failed = turn["status"] != "completed"
        text = error.get("message") or (f"The turn was {turn['status']}." if failed else self._last)
        yield Said(SaidKind.RESULT, text, failed=failed)


_Tokens = tuple[int, int, int]  # input, of which cached is the third; output


def _tokens(usage: dict[str, int]) -> _Tokens:
    return usage["inputTokens"], usage["outputTokens"], usage["cachedInputTokens"]


def _minus(left: _Tokens, right: _Tokens) -> _Tokens:
    return left[0] - right[0], left[1] - right[1], left[2] - right[2]


def _is_limit(info: Any) -> bool:
    if isinstance(info, dict):
        return any(isinstance(v, dict) and v.get("httpStatusCode") == 429 for v in info.values())
    return info in {"usageLimitExceeded", "rateLimitExceeded"}


TOOLS = {
    "commandExecution": "shell",
    "fileChange": "edit",
    "mcpToolCall": "",
    "dynamicToolCall": "",
    "collabAgentToolCall": "agent",
    "webSearch": "web_search",
    "imageView": "view_image",
}


def _begun(item: dict[str, Any]) -> Iterator[Said]:
    if item["type"] not in TOOLS:
        return
    match item["type"]:
        case "commandExecution":
            text = item["command"]
        case "fileChange":
            text = " ".join(change["path"] for change in item["changes"])
        case _:
            details = item.get("arguments") or item.get("prompt") or item.get("query") or ""
            text = details if isinstance(details, str) else json.dumps(details)
    yield Said(SaidKind.TOOL, text, name=_tool(item))


def _tool(item: dict[str, Any]) -> str:
    own = [str(item[key]) for key in ("server", "namespace", "tool") if item.get(key)]
    return TOOLS[item["type"]] or ".".join(own)


def _decision(method: str, params: dict[str, Any], *, yes: bool) -> dict[str, Any] | None:
    """The reply to a permission request, by the agent's permissions; there is no person to ask."""
    match method:
        case "item/commandExecution/requestApproval" | "item/fileChange/requestApproval":
            return {"decision": "accept" if yes else "decline"}
        case "item/permissions/requestApproval":
            return {"permissions": params.get("permissions", {}) if yes else {}}
        case "execCommandApproval" | "applyPatchApproval":
            return {"decision": "approved" if yes else {"denied": {"rejection": "Not permitted."}}}
        case "mcpServer/elicitation/request":
            return {"action": "decline"}
        case "item/tool/requestUserInput":
            nobody = {
                "answers": ["No person can answer here. Use `fleet ask`, or decide yourself."]
            }
            return {"answers": {one["id"]: nobody for one in params.get("questions", ())}}
        case "item/tool/call":
            return {"contentItems": [], "success": False}
    return None
