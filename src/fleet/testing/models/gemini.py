"""Google's `generateContent`, as Gemini CLI speaks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.testing.models.dialect import Event, texts
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
        said, results = [], []
        for content in body.get("contents", ()):
            if content.get("role") == "model":
                continue
            parts = content.get("parts", ())
            said += [p["text"] for p in parts if "text" in p]
            results += [_result(p["functionResponse"]) for p in parts if "functionResponse" in p]
        declared = [d for tool in body.get("tools", ()) for d in _declared(tool)]
        return {
            "conversation": "",
            "system": texts((body.get("systemInstruction") or {}).get("parts")),
            "tools": tuple(d["name"] for d in declared),
            "messages": tuple(body.get("contents", ())),
            "said": tuple(said),
            "results": tuple(results),
        }

    def stream(self, reply: Reply, asked: Asked) -> Iterator[Event | Wait]:
        for part in reply.parts:
            if isinstance(part, Wait):
                yield part
            else:
                yield Event(self._response([_part(part)], asked))
        ended = self._response([{"text": ""}], asked, "STOP")
        yield Event({**ended, "usageMetadata": _usage(reply)})

    def whole(self, reply: Reply, asked: Asked) -> dict[str, Any]:
        parts = [_part(p) for p in reply.parts if not isinstance(p, Wait)]
        return {**self._response(parts, asked, "STOP"), "usageMetadata": _usage(reply)}

    def _response(
        self, parts: list[dict[str, Any]], asked: Asked, reason: str = ""
    ) -> dict[str, Any]:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        if reason:
            candidate["finishReason"] = reason
        return {"candidates": [candidate], "modelVersion": asked.model, "responseId": asked.id}

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
    told = response.get("response") or {}
    return str(told.get("output") or told.get("error") or told)


def _usage(reply: Reply) -> dict[str, int]:
    told = reply.tokens
    given = told.input + told.cached + told.written
    return {
        "promptTokenCount": given,
        "cachedContentTokenCount": told.cached,
        "candidatesTokenCount": told.output,
        "totalTokenCount": given + told.output,
    }
