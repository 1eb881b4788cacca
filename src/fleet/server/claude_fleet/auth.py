"""`/auth`: somebody whom nobody knows yet exchanges a secret for a token, and cannot guess one."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.responses import Response

from fleet.domain.errors import BadInput, Forbidden
from fleet.operations.catalogue import find
from fleet.operations.team.enrolments import AUTH, DAY, Enrol, ShowEnrolment
from fleet.server.claude_fleet.routes import Body, heard
from fleet.server.http.codec import encode
from fleet.server.http.guard import client_address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

GUESSES, ALL_GUESSES, WHILE = 10, 1000, 60.0  # wrong secrets, from one address and in all
SLOW_SECONDS, SLOWED = 1.0, 64  # how late the answer to one more is, and for how many at once
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
        self._guesses = Guesses()

    async def __call__(self, request: Request) -> Response:
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


class Guesses:
    """Wrong secrets. After a few from one address, or many in all, each is answered late, with 429.

    A good secret is never refused for them: behind a proxy many people have one address.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since = clock()
        self._counts: Counter[str] = Counter()
        self._waiting = 0

    async def slow_down(self, where: str) -> None:
        if not (rest := self.count(where)):
            return
        if self._waiting < SLOWED:
            self._waiting += 1
            try:
                await asyncio.sleep(SLOW_SECONDS)
            finally:
                self._waiting -= 1
        raise HTTPException(429, headers={"Retry-After": str(int(rest) + 1)})

    def count(self, where: str) -> float:
        """Count a wrong secret of this address; seconds to wait if that was one too many, else 0."""
        now = self._clock()
        if now - self._since >= WHILE:
            self._since, self._counts = now, Counter()
        total = self._counts.total()
        if total < ALL_GUESSES:  # more need not be remembered
            self._counts[where] += 1
        many = total >= ALL_GUESSES or self._counts[where] > GUESSES
        return WHILE - (now - self._since) if many else 0.0


def seconds_of(text: str) -> int:
    """`24h`, `7d`, or a number of seconds."""
    match = _TIME.fullmatch(text)
    if match is None or not int(match[1]):
        raise BadInput(
            f"JWT_EXPIRES_IN: '{text[:30]}' is not a length of time.", fix="For example 24h or 7d."
        )
    return int(match[1]) * UNITS[match[2]]
