"""`POST /hooks/{forge}`: a forge says that a ticket was labelled, and it becomes a task.

The sender has no token of ours; the signature proves that it is the forge. Until then its bytes
count against a budget of its address, so that no stranger spends what the forge needs.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException

from fleet.domain.access import Actor, Role
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput, Forbidden, NotFound
from fleet.domain.forges.kinds import KINDS
from fleet.domain.forges.webhooks import check, is_signed, labelled
from fleet.operations.catalogue import find
from fleet.operations.forges.tickets import AddTicket
from fleet.server.http.guard import client_address

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from starlette.requests import Request

    from fleet.operations.catalogue import Operation
    from fleet.server.http.wrong_secrets import Guesses

    Perform = Callable[[Operation, Actor, Any, str], Awaitable[Any]]

LARGEST = 512 << 10  # bytes of one event; an issue's text has at most 64 KB
BUDGET, WHILE = 16 << 20, 60.0  # bytes that one address may send in this many seconds
ALL_BUDGET = 1 << 30  # bytes that all addresses together may send in that time
IGNORED = {"task": ""}


class HookRules(NamedTuple):
    """`secret` returns a forge's secret, read anew for each event; empty: its events are refused.

    `kind_of` returns the kind of forge at a host.
    """

    secret: Callable[[str], str]
    people: Sequence[str]
    label: str
    team: str
    project: str
    kind_of: Callable[[str], str]


class UncheckedBytes:
    """Counts, by address, the bytes received whose signature has not been checked yet."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._since = clock, clock()
        self._spent: Counter[str] = Counter()
        self._all = 0

    def take(self, address: str, size: int) -> None:
        """Count bytes of an address; raise status 429 when it, or all together, sent too many."""
        now = self._clock()
        if now - self._since >= WHILE:
            self._since, self._spent, self._all = now, Counter(), 0
        if self._spent[address] + size > BUDGET or self._all + size > ALL_BUDGET:
            wait = int(WHILE - (now - self._since)) + 1
            raise HTTPException(429, headers={"Retry-After": str(wait)})
        self._spent[address] += size
        self._all += size

    def give_back(self, address: str, size: int) -> None:
        given = min(size, self._spent[address])
        self._spent[address] -= given
        self._all -= given


def _host(url: str) -> str:
    """Return `host` or `host:port` of a URL; empty when it is not a URL."""
    try:
        parts = urlsplit(url)
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    return f"{name}:{port}" if port else name


class ForgeHooks:
    def __init__(self, rules: HookRules, guesses: Guesses, perform: Perform) -> None:
        self._rules, self._guesses, self._perform = rules, guesses, perform
        self._budget = UncheckedBytes()

    async def __call__(self, request: Request) -> dict[str, str]:
        """Handle one event; return what became of it, with the task's id if there is one."""
        forge = str(request.path_params["forge"])
        secret = self._rules.secret(forge) if forge in KINDS else ""
        if not secret:
            raise NotFound(
                f"This server takes no events of '{forge[:40]}'.",
                fix=f"Set hooks.secrets: FORGE=REFERENCE, with one of {', '.join(KINDS)}.",
            )
        body = await self._signed_body(request, forge, secret)
        try:
            payload = json.loads(body)
        except (ValueError, RecursionError):
            fix = "Choose application/json as the webhook's content type."
            raise BadInput("The body is not JSON.", fix=fix) from None
        event = labelled(forge, payload)
        rules = self._rules
        if event is None or not check(
            event, people=rules.people, label=rules.label, now=time.time()
        ):
            return IGNORED
        if rules.kind_of(_host(event.url)) != forge:  # signed with the secret of another forge
            raise Forbidden(
                f"The event's ticket is not on a {forge} host.",
                fix="Name its host in the setting forge.hosts, or have its own forge send events.",
                code="other_forge",
            )
        actor = Actor(f"{forge}:{event.who[0]}"[:100], Role.TEAM_LEAD, rules.team, remote=True)
        order = AddTicket(event.url, project=rules.project)
        key = hashlib.sha256(body).hexdigest()  # the header with the id of a delivery is not signed
        row = await self._perform(find(AddTicket), actor, order, key)
        return {"task": row.id}

    async def _signed_body(self, request: Request, forge: str, secret: str) -> bytes:
        length = request.headers.get("content-length", "")
        size = int(length) if length.isdecimal() else LARGEST
        if size > LARGEST:
            raise HTTPException(413)
        address = client_address(request.scope)
        self._budget.take(address, size)
        body = await request.body()
        headers = {name.lower(): value for name, value in request.headers.items()}
        if len(body) > LARGEST or not is_signed(forge, secret, headers, body):
            await self._guesses.slow_down(address)
            raise Forbidden(
                "The signature is missing or wrong.",
                fix="Give the forge the secret that hooks.secrets names.",
                code="bad_signature",
            )
        self._budget.give_back(address, size)
        return body
