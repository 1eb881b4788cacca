"""`/auth`: somebody whom nobody knows yet exchanges a secret for a token, and cannot guess one."""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from fleet.domain.errors import BadInput, Forbidden
from fleet.operations.catalogue import find
from fleet.operations.team.enrolments import AUTH, DAY, Enrol
from fleet.server.claude_fleet.routes import Body, heard
from fleet.server.http.codec import encode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

GUESSES, WHILE = 10, 60.0  # wrong secrets from one address, in so many seconds
KNOWN = 10_000
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": DAY, "w": 7 * DAY}
_TIME = re.compile(r"\s*([0-9]{1,9})\s*([smhdw]?)\s*")


class EnrolBody(Body):
    handle: str
    team_name: str = ""
    agent_type: str = ""
    secret: str = ""


class Enrolling:
    """`seconds`: how long the tokens last, as JWT_EXPIRES_IN says it."""

    def __init__(self, perform: Callable[..., Awaitable[Any]], lasting: str = "") -> None:
        self._perform = perform
        self._seconds = seconds_of(lasting or os.environ.get("JWT_EXPIRES_IN", "") or "24h")
        self._wrong: dict[str, list[float]] = {}

    async def __call__(self, request: Request) -> Response:
        where = request.client.host if request.client else ""
        if rest := self._rest(where):
            raise HTTPException(429, headers={"Retry-After": str(int(rest) + 1)})
        body = (await heard(request, AUTH)).as_(EnrolBody)
        enrol = Enrol(body.secret, body.handle, body.team_name, body.agent_type, self._seconds)
        try:
            row = await self._perform(find(Enrol), AUTH, enrol)
        except Forbidden as error:
            if error.code == "bad_secret":
                self._wrong.setdefault(where, []).append(time.monotonic())
            raise
        reply = {
            "uid": row.uid, "handle": row.name, "teamName": row.team, "agentType": row.role,
            "token": row.token,
        }  # fmt: skip
        return Response(encode(reply), media_type="application/json")

    def _rest(self, where: str) -> float:
        """Seconds until this address may try again."""
        now = time.monotonic()
        if len(self._wrong) > KNOWN:
            self._wrong.clear()
        recent = [at for at in self._wrong.get(where, ()) if now - at < WHILE]
        if recent:
            self._wrong[where] = recent[-GUESSES:]
        else:
            self._wrong.pop(where, None)
        return WHILE - (now - recent[-GUESSES]) if len(recent) >= GUESSES else 0.0


def seconds_of(text: str) -> int:
    """`24h`, `7d`, or a number of seconds."""
    found = _TIME.fullmatch(text)
    if found is None or not int(found[1]):
        raise BadInput(
            f"JWT_EXPIRES_IN: '{text[:30]}' is not a length of time.", fix="For example 24h or 7d."
        )
    return int(found[1]) * UNITS[found[2]]
