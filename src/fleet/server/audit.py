"""What a server writes into its audit trail, and who is asking at this moment."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.exceptions import HTTPException

from fleet.domain.audit import MAX_TARGET, AuditOutcome, AuditRecord, outcome_of, target_of
from fleet.domain.errors import FleetError
from fleet.server.http.guard import client_address
from fleet.server.http.problem import UNPROVEN, status_of

if TYPE_CHECKING:
    from collections.abc import Callable, MutableMapping

    from fleet.domain.access import Actor
    from fleet.operations.catalogue import Operation
    from fleet.ports import AuditTrail
    from fleet.server.metrics import Meters
    from fleet.server.tokens import TokenGrant

    Scope = MutableMapping[str, Any]
    Message = MutableMapping[str, Any]

MINUTE = 60.0  # seconds in which the same refusal is written once, then counted
ALARMING = 100  # refusals within such a minute: the coordinators are told
HOUR = 3600 * 1_000_000  # microseconds in which they are told once
REFUSALS = 1000  # kinds of refusals that are counted separately; the rest by their code alone
STRANGERS = 100  # kinds among them from callers without a token, so that these cannot use up all
ERROR_FRAME = '{"type":"error"'
DENIED = "websocket.http.response"
FORBIDDING = UNPROVEN | {
    "forbidden",
    "forged",
    "too_many_requests",
    "too_many_streams",
    "too_many_at_once",
}  # error codes that count as 403 when a WebSocket frame reports them
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(slots=True)
class Caller:
    """Who sent the request that is being answered. `noted`: the audit trail has it already."""

    address: str = ""
    called: str = ""  # the method and the path
    grant: TokenGrant | None = None
    noted: bool = False


_CALLER: ContextVar[Caller | None] = ContextVar("caller", default=None)


def caller() -> Caller:
    return _CALLER.get() or Caller()


def admitted(grant: TokenGrant) -> None:
    """The caller has shown this token."""
    caller().grant = grant


class Audit:
    """Writes records to the audit trail; used in the event loop only.

    `reads`: also record requests that change nothing. `alarm` is called, at most once an hour,
    with a sentence about a minute that had `ALARMING` refusals.
    """

    alarm: Callable[[str], None] | None = None

    def __init__(
        self,
        trail: AuditTrail,
        *,
        reads: bool = False,
        minute: float = MINUTE,
        clock: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self._trail, self._reads, self._minute, self._clock = trail, reads, minute, clock
        self._repeats: dict[AuditRecord, int] = {}
        self._strangers = self._of_this_minute = 0
        self._quiet_until = 0
        self._counting: asyncio.TimerHandle | None = None
        self.refusals: Counter[str] = Counter()
        self.dropped = 0  # records that could not be written

    def did(self, operation: Operation, actor: Actor, request: object, reply: object) -> None:
        caller().noted = True
        if self._reads or not operation.is_read:
            target = target_of(request, reply)
            self._write(self._record(AuditOutcome.ALLOWED, actor, operation.name, target))

    def failed(
        self, operation: Operation, actor: Actor, request: object, error: BaseException
    ) -> None:
        caller().noted = True
        status, code = described(error)
        record = self._record(
            outcome_of(status, code), actor, operation.name, target_of(request), code
        )
        if record.outcome == AuditOutcome.REFUSED:
            self._refuse(record)
        elif self._reads or not operation.is_read:
            self._write(record)

    def tool_failed(self, name: str, code: str) -> None:
        """Record an MCP tool call that was refused before any of its operations ran."""
        by = caller()
        if not by.noted:
            by.called = f"tool {name}"[:MAX_TARGET]
            self.answered(403 if code in FORBIDDING else 422, code)
            by.noted = True

    def answered(self, status: int, code: str) -> None:
        """Record a request that reached no operation: it was refused first, or needs none."""
        by = caller()
        if by.noted:
            return
        outcome = outcome_of(status, code)
        if outcome is AuditOutcome.ALLOWED and not (self._reads and by.grant):
            return
        record = self._record(outcome, by.grant.actor if by.grant else None, "", by.called, code)
        if outcome is AuditOutcome.REFUSED:
            self._refuse(record)
        elif by.grant:
            self._write(record)

    def refused_at_the_door(self, address: str, code: str) -> None:
        """Record a connection that was refused before it had sent a whole request."""
        self._refuse(
            AuditRecord("", self._clock(), str(AuditOutcome.REFUSED), address=address, code=code)
        )

    def _record(
        self,
        outcome: AuditOutcome,
        actor: Actor | None,
        operation: str,
        target: str,
        code: str = "",
    ) -> AuditRecord:
        by = caller()
        about: dict[str, Any] = {
            "address": by.address,
            "operation": operation,
            "target": target,
            "code": code,
        }
        if by.grant is not None and actor is not None:
            about |= {
                "actor": actor.name, "role": str(actor.role), "team": actor.team,
                "run": actor.run, "token": by.grant.id,
            }  # fmt: skip
        return AuditRecord("", self._clock(), str(outcome), **about)

    def _refuse(self, record: AuditRecord) -> None:
        """Write the first refusal of its kind in a minute; `count` writes how many followed."""
        self.refusals[record.code] += 1
        self._of_this_minute += 1
        if self._of_this_minute == ALARMING and record.at >= self._quiet_until:
            self._tell(record)
        kind = replace(record, at=0, target="")
        if kind not in self._repeats:
            stranger = not record.token
            if len(self._repeats) >= REFUSALS or (stranger and self._strangers >= STRANGERS):
                kind = AuditRecord("", 0, record.outcome, code=record.code)
            else:
                self._strangers += stranger
        if kind in self._repeats:
            self._repeats[kind] += 1
            return
        self._repeats[kind] = 0
        self._write(record if kind.address == record.address else replace(kind, at=record.at))
        if self._counting is None:
            loop = asyncio.get_running_loop()
            self._counting = loop.call_later(self._minute, self.count)

    def _tell(self, last: AuditRecord) -> None:
        self._quiet_until = last.at + HOUR
        if self.alarm is not None:
            self.alarm(
                f"{ALARMING} requests were refused within a minute, the last of them from"
                f" {last.address or 'an unknown address'} ({last.code})."
                " `fleet audit --refused` lists them."
            )

    def count(self) -> None:
        """Write how often each refusal was repeated, and start counting anew."""
        if self._counting is not None:
            self._counting.cancel()
        repeats, self._repeats, self._counting = self._repeats, {}, None
        self._strangers = self._of_this_minute = 0
        for record, times in repeats.items():
            if times:
                self._write(replace(record, at=self._clock(), count=times))

    def _write(self, record: AuditRecord) -> None:
        try:
            self._trail.add(record)
        except OSError:
            self.dropped += 1


def described(error: BaseException) -> tuple[int, str]:
    """The HTTP status of an error, and its code."""
    if isinstance(error, FleetError):
        return status_of(error), error.code
    if isinstance(error, HTTPException):
        return error.status_code, "too_many_requests" if error.status_code == 429 else "error"
    if isinstance(error, asyncio.CancelledError):
        return 500, "disconnected"  # the caller or the server left; it may have been carried out
    return 500, "bug"


class Observed:
    """ASGI middleware that measures the time to each response and records refused requests."""

    def __init__(self, app: Any, meters: Meters, audit: Audit) -> None:
        self._app, self._meters, self._audit = app, meters, audit

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await self._app(scope, receive, self._timed(scope, send))
        elif scope["type"] == "websocket":
            _CALLER.set(Caller(client_address(scope), f"WebSocket {scope['path']}"[:MAX_TARGET]))
            await self._app(scope, receive, self._heard(send))
        else:
            await self._app(scope, receive, send)

    def _timed(self, scope: Scope, send: Any) -> Any:
        began, status = time.perf_counter(), 0
        method = scope["method"] if scope["method"] in METHODS else "other"
        by = Caller(client_address(scope), f"{method} {scope['path']}"[:MAX_TARGET])
        _CALLER.set(by)

        async def timed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._meters.answered(method, status, time.perf_counter() - began)
            elif status:
                if not by.noted:
                    self._audit.answered(status, _code(status, message.get("body", b"")))
                status = 0  # a body may come in parts
            await send(message)

        return timed

    def _heard(self, send: Any) -> Any:
        """Wrap a WebSocket's `send` to record refusals: HTTP responses and error frames."""
        status = 0

        async def heard(message: Message) -> None:
            nonlocal status
            text = message.get("text") or ""
            if message["type"] == f"{DENIED}.start":
                status = message["status"]
            elif message["type"] == f"{DENIED}.body":
                self._audit.answered(status, _code(status, message.get("body", b"")))
            elif text.startswith(ERROR_FRAME):
                code = _code(422, text.encode())
                self._audit.answered(403 if code in FORBIDDING else 422, code)
            await send(message)

        return heard


def _code(status: int, body: bytes) -> str:
    """Return the error code in a response body; empty unless the status is an error."""
    if status < 400:
        return ""
    try:
        return str(msgspec.json.decode(body)["code"])
    except (msgspec.DecodeError, KeyError, TypeError):
        return "error"
