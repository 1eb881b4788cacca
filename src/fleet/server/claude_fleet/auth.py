"""`/auth`: a stranger exchanges a secret for a token, and cannot guess one."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from fleet.domain.errors import BadInput, Forbidden
from fleet.domain.limits import Name
from fleet.operations.catalogue import find
from fleet.operations.team.enrolments import (
    AUTH,
    DAY,
    AnyRole,
    Enrol,
    EnrolName,
    Secret,
    ShowEnrolment,
)
from fleet.server.claude_fleet.routes import Body, heard
from fleet.server.http.codec import encode
from fleet.server.http.guard import body_of_stranger, client_address
from fleet.server.http.wrong_secrets import Guesses

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": DAY, "w": 7 * DAY}
_TIME = re.compile(r"\s*([0-9]{1,9})\s*([smhdw]?)\s*")


class EnrolBody(Body):
    handle: EnrolName
    team_name: Name = ""
    agent_type: AnyRole = ""
    secret: Secret = ""


class Enrolling:
    """`seconds`: how long the tokens last, as JWT_EXPIRES_IN says it."""

    def __init__(self, perform: Callable[..., Awaitable[Any]], lasting: str = "") -> None:
        self._perform = perform
        self._seconds = seconds_of(lasting or os.environ.get("JWT_EXPIRES_IN", "") or "24h")
        self._guesses = Guesses()

    async def __call__(self, request: Request) -> Response:
        await body_of_stranger(request)
        body = (await heard(request, AUTH)).as_(EnrolBody)
        enrol = Enrol(body.secret, body.handle, body.team_name, body.agent_type, self._seconds)
        try:
            # a read first: a guess does not keep the writer from its work
            await self._perform(find(ShowEnrolment), AUTH, ShowEnrolment(body.secret))
            row = await self._perform(find(Enrol), AUTH, enrol)
        except Forbidden as error:
            if error.code == "bad_secret":
                await self._guesses.slow_down(client_address(request.scope))
            raise
        reply = {
            "uid": row.uid, "handle": row.name, "teamName": row.team, "agentType": row.role,
            "token": row.token,
        }  # fmt: skip
        return Response(encode(reply), media_type="application/json")


def seconds_of(text: str) -> int:
    """`24h`, `7d`, or a number of seconds."""
    match = _TIME.fullmatch(text)
    if match is None or not int(match[1]):
        raise BadInput(
            f"JWT_EXPIRES_IN: '{text[:30]}' is not a length of time.", fix="For example 24h or 7d."
        )
    return int(match[1]) * UNITS[match[2]]
