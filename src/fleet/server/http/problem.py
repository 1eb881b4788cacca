"""Errors as problem details (RFC 9457): a stable code, a sentence, and the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from fleet.server.http.codec import encode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.domain.errors import FleetError

TYPE = "application/problem+json"
UNPROVEN = frozenset(
    {"no_token", "bad_token", "unknown_key", "expired_token", "revoked_token", "stale_run"}
    | {"no_secret", "bad_secret"}
)
TOO_MANY = frozenset({"too_many_streams", "too_many_at_once", "too_many_alerts"})  # until fewer
TITLES = {
    400: "Bad request", 401: "Not authenticated", 403: "Not allowed", 404: "Not found",
    405: "Method not allowed", 408: "Request timeout", 409: "Refused", 413: "Too large", 415: "Not JSON",
    421: "Wrong host", 422: "Bad input", 426: "WebSocket required",
    429: "Too many requests",
    431: "Too many headers", 500: "A bug in fleet", 503: "Not available",
}  # fmt: skip
FIXES = {  # where nothing better is known
    400: "Send a valid HTTP request.",
    401: "Send `Authorization: Bearer TOKEN`; `fleet token create` makes one.",
    403: "Ask a team-lead or a coordinator.",
    404: "GET /openapi.json lists all paths.",
    405: "GET /openapi.json lists all paths.",
    408: "Send the whole request again, without pauses.",
    413: "Send a smaller body.",
    415: "Send `Content-Type: application/json`.",
    421: "Use a name of this server; `fleet serve --name NAME` adds one.",
    422: "GET /openapi.json lists the paths and their fields.",
    429: "Wait for the seconds in `Retry-After`, then try again.",
    431: "Send fewer headers.",
    503: "Try again later.",
}


def status_of(error: FleetError) -> int:
    if error.code in TOO_MANY:
        return 429
    return 401 if error.code in UNPROVEN else error.http_status


def problem(
    status: int, code: str, detail: str, *, fix: str = "", more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    body: dict[str, Any] = {
        "type": f"urn:fleet:error:{code}",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
        "code": code,
        **(more or {}),
    }
    return body | {"fix": fix or FIXES.get(status, "See the server's log.")}


def problem_of(error: FleetError) -> dict[str, Any]:
    return problem(
        status_of(error),
        error.code,
        error.public or error.message,
        fix=error.fix or "",
        more=error.about,
    )


def refusal(error: FleetError) -> Response:
    """The whole answer. A 401 says which scheme this server takes, as RFC 9110 wants."""
    status = status_of(error)
    headers = {"WWW-Authenticate": _challenge(error.code)} if status == 401 else {}
    return Response(encode(problem_of(error)), status, headers, TYPE)


def _challenge(code: str) -> str:
    """Return WWW-Authenticate, with `error` only when a token was sent (RFC 6750)."""
    wrong = "" if code in {"no_token", "no_secret"} else ', error="invalid_token"'
    return f'Bearer realm="fleet"{wrong}'
