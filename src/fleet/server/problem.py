"""Errors as problem details (RFC 9457): a stable code, a sentence, and the next step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.domain.errors import (
    BadConfig,
    BadInput,
    Conflict,
    FleetError,
    Forbidden,
    NotFound,
    Refused,
    Unavailable,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPE = "application/problem+json"
STATUS: tuple[tuple[type[FleetError], int], ...] = (
    (NotFound, 404),
    (BadConfig, 503),
    (BadInput, 422),
    (Forbidden, 403),
    (Conflict, 409),
    (Refused, 409),
    (Unavailable, 503),
)
UNPROVEN = frozenset({"no_token", "bad_token", "expired_token", "revoked_token"})
TITLES = {
    400: "Bad request", 401: "Who are you?", 403: "Not allowed", 404: "Not found",
    405: "Not that method", 409: "Refused", 413: "Too large", 415: "Not JSON",
    421: "Not for this server", 422: "Bad input", 429: "Too many requests",
    500: "A bug in fleet", 503: "Not available",
}  # fmt: skip


def status_of(error: FleetError) -> int:
    if error.code in UNPROVEN:
        return 401
    return next((status for kind, status in STATUS if isinstance(error, kind)), 500)


def problem(
    status: int, code: str, detail: str, *, fix: str = "", more: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    said: dict[str, Any] = {
        "type": f"urn:fleet:error:{code}",
        "title": TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
        "code": code,
        **(more or {}),
    }
    return said | ({"fix": fix} if fix else {})


def problem_of(error: FleetError) -> dict[str, Any]:
    return problem(
        status_of(error), error.code, error.message, fix=error.fix or "", more=error.about
    )
