"""Google's `generateContent`, as Gemini CLI speaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.testing.models.dialect import ServerSentEvent, texts
from fleet.testing.models.script import Call, Say, Think, Wait

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fleet.testing.models.script import Asked, Fail, Part, Reply

STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


class Gemini:
    name = "gemini"

    def read(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> dict[str, Any]:
        del headers
        user_texts, results = [], []
        for content in body.get("contents", ()):
            if content.get("role") == "model":
                continue
            parts = content.get("parts", ())
            user_texts += [p["text"] for p in parts if "text" in p]
            results += [_result(p["functionResponse"]) for p in parts if "functionResponse" in p]
        declared = [d for tool in body.get("tools", ()) for d in _declared(tool)]
        return {
            "conversation": "",
            "system": texts((body.get("systemInstruction") or {}).get("parts")),
            "tools": tuple(d["name"] for d in declared),
            "messages": tuple(body.get("contents", ())),
            "said": tuple(user_texts),
            "results": tuple(results),
        }

    def stream(self, reply: Reply, request: Asked) -> Iterator[ServerSentEvent | Wait]:
        for part in reply.parts:
            if isinstance(part, Wait):
                yield part
            else:
                yield ServerSentEvent(self._response([_part(part)], request))
        ended = self._response([{"text": ""}], request, "STOP")
        yield ServerSentEvent({**ended, "usageMetadata": _usage(reply)})

    def whole(self, reply: Reply, request: Asked) -> dict[str, Any]:
        parts = [_part(p) for p in reply.parts if not isinstance(p, Wait)]
        return {**self._response(parts, request, "STOP"), "usageMetadata": _usage(reply)}

    def _response(
        self, parts: list[dict[str, Any]], request: Asked, reason: str = ""
    ) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if reason:
            candidate["finishReason"] = reason
        return {"candidates": [candidate], "modelVersion": request.model, "responseId": request.id}

    def failure(self, failed: Fail) -> dict[str, Any]:
        status = failed.kind or STATUSES.get(failed.status, "UNKNOWN")
        return {"error": {"code": failed.status, "message": failed.message, "status": status}}


def _part(part: Part) -> dict[str, Any]:
    match part:
        case Say(text):
            return {"text": text}
        case Think(text):
            return {"text": text, "thought": True}
        case Call(name, arguments):
            return {"functionCall": {"name": name, "args": arguments}}
    raise AssertionError(part)


def _declared(tool: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(tool.get("functionDeclarations", ()))


def _result(response: Mapping[str, Any]) -> str:
    output = response.get("response") or {}
    return str(output.get("output") or output.get("error") or output)


def _usage(reply: Reply) -> dict[str, int]:
    tokens = reply.tokens
    given = tokens.input + tokens.cached + tokens.written
    return {
        "promptTokenCount": given,
        "cachedContentTokenCount": tokens.cached,
        "candidatesTokenCount": tokens.output,
        "totalTokenCount": given + tokens.output,
    }
