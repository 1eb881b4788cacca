"""How a machine joins: an invitation, the login and the token that it is exchanged for.

The token of a host's link is bound to the id of that host, and may little else.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import Actor, Permission, Role, claims_of
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import Forbidden, Refused
from fleet.domain.event import Kind
from fleet.domain.limits import TextLimit
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.entries import keep, new_entry
from fleet.operations.team.enrolments import DAY, FOR_HOST, PREFIX, hash_of, valid_enrolment
from fleet.operations.team.revocations import StoredRevocations
from fleet.operations.team.tokens import SECOND, Life, check_life, is_revoked
from fleet.ports import EntryQuery, Put

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context

AGAIN = "Ask for another: fleet host invite"
HOST_ID = r"[a-z0-9][a-z0-9._-]{0,99}"
HostId = Annotated[str, TextLimit(100, pattern=HOST_ID, what="host id", example="buildbox-3f2a9c")]
PORT = r"(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5]?[0-9]{1,4})"
SERVER = rf"([A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\])(:{PORT})?"
DATABASE = rf"([a-z]+://)?([^\s/@]*@)?{SERVER}(,{SERVER})*(/[^\s@]*)?"
MOST_JOINS = 100  # of one host, whose invitations are looked through
LINK_ROLE = Role.MONITOR  # reads its team, as any login of the store can


DATABASE_LIMIT = TextLimit(
    300, pattern=f"({DATABASE})?", what="address of a database", example="As in db.example:5432."
)


@dataclass(frozen=True, slots=True)
class HostToken:
    """`token`: shown once, when it is made; empty when the one that the host has is still good."""

    id: str
    host: str
    until: Time
    token: str = ""


@dataclass(frozen=True, slots=True)
class CreateHostToken(Request[HostToken]):
    """A token with which the supervisor of this host, and of no other, connects to the server.

    `id`: of the token that the host has. A new one is made when less than half of its life is left.
    """

    host: HostId
    id: Annotated[str, TextLimit(100)] = ""


@dataclass(frozen=True, slots=True)
class Invitation:
    """`secret` is shown once. One machine joins with it, until `until`."""

    id: str
    host: str
    until: Time
    secret: str


@dataclass(frozen=True, slots=True)
class InviteHost(Request[Invitation]):
    """`store`: HOST[:PORT] of the database as the machine reaches it; empty: as the server does.

    `host`: only the machine of this id may join, also one that is known already.
    """

    store: Annotated[str, DATABASE_LIMIT] = ""
    host: Annotated[str, TextLimit(100, pattern=f"({HOST_ID})?", what="host id")] = ""
    seconds: Life = DAY


@dataclass(frozen=True, slots=True)
class Joined:
    """What the machine needs. `own`: the login to the store is its own, and can be removed alone.

    `at`: the time by the store's clock.
    """

    host: str
    token: str
    store_url: str
    store_schema: str
    own: bool
    at: Time


@dataclass(frozen=True, slots=True)
class JoinHost(Request[Joined]):
    """Exchange an invitation for what a machine needs to take tasks from this queue.

    `key`: random, and kept by the machine: with the same one it can repeat this, and nobody else can.
    """

    code: Annotated[str, TextLimit(200, some=True, what="code")]
    host: HostId
    key: Annotated[str, TextLimit(200, pattern=r"[A-Za-z0-9_-]{20,200}", what="key")]


def invite(context: Context, request: InviteHost) -> Invitation:
    check_life(context, "An invitation", request.seconds)
    context.logins().check()
    secret, now = PREFIX + secrets.token_urlsafe(32), context.store.now()
    body = {"role": str(LINK_ROLE), "team": context.actor.team, "most": 1, FOR_HOST: True}
    entry = new_entry(
        context, EntryKind.ENROLMENT, team="", key=hash_of(secret), owner=request.host,
        until=now + request.seconds * SECOND, body={**body, "store": _address(request.store)},
    )  # fmt: skip
    kept = keep(context, entry, Kind.ENROLMENT_CREATED)
    return Invitation(kept.id, request.host, kept.until, secret)


def _address(store: str) -> str:
    """Without the user and the password that a URL may have: the machine gets its own."""
    return store.rpartition("://")[2].rpartition("@")[2].partition("/")[0]


def join(context: Context, request: JoinHost) -> Joined:
    invitation = valid_enrolment(context.store, request.code, fix=AGAIN)
    context = context._replace(actor=replace(context.actor, team=str(invitation.body["team"])))
    _check_may_join(context, invitation, request)
    role = str(invitation.body.get("login") or role_of(request.host))
    if "key" not in invitation.body:
        used = {"key": hash_of(request.key), "login": role, "uses": 1}
        entry = replace(invitation, owner=request.host, body={**invitation.body, **used})
        context.commit([Put(entry)], context.event(Kind.HOST_JOINED, "", host=request.host))
    login = context.logins().make(role, str(invitation.body.get("store", "")))
    token = new_host_token(context, request.host).token
    now = context.store.now()
    return Joined(request.host, token, login.url, login.schema, login.own, now)


def _check_may_join(context: Context, invitation: Entry, request: JoinHost) -> None:
    body = invitation.body
    if not body.get(FOR_HOST):
        raise Forbidden("That secret is not for a machine.", fix=AGAIN, code="bad_secret")
    if invitation.owner not in {"", request.host}:
        raise Forbidden(f"That invitation is not for {request.host}.", fix=AGAIN, code="bad_secret")
    if "key" in body:
        if body["key"] != hash_of(request.key):
            raise Refused("A machine has joined with that invitation.", fix=AGAIN, code="used_up")
        return
    host = context.store.hosts().get(request.host)
    if host is not None and not host.forgotten and not invitation.owner:
        raise Refused(
            f"There is a machine {request.host} already.",
            fix=f"If it is this one: fleet host invite --host {request.host}",
            code="taken",
        )


def role_of(host: str) -> str:
    """The name of its login to the store, which is nobody else's."""
    plain = "".join(c if c.isalnum() else "_" for c in host.lower())
    return f"fleet_{plain[:40]}_{secrets.token_hex(3)}"


def end_joining(context: Context, host: str) -> None:
    """The invitations with which this host joined count no more, nor do the logins they gave."""
    query = EntryQuery(EntryKind.ENROLMENT, owner=host, limit=MOST_JOINS)
    for entry in context.store.entries(query):
        if entry.body.get(FOR_HOST) and not entry.body.get("revoked_at"):
            body = {**entry.body, "revoked_at": context.store.now()}
            keep(context, replace(entry, body=body), Kind.ENROLMENT_REVOKED)
            if role := str(entry.body.get("login", "")):
                context.logins().drop(role)


def create_token(context: Context, request: CreateHostToken) -> HostToken:
    token = context.store.entry(EntryKind.TOKEN, "", request.id) if request.id else None
    if token is not None and _is_good(context, token, request.host):
        return HostToken(token.key, request.host, token.until)
    return new_host_token(context, request.host)


def _is_good(context: Context, token: Entry, host: str) -> bool:
    half = token.at + (token.until - token.at) // 2
    bound = token.body.get("host") == host
    return (
        bound
        and context.store.now() < half
        and not is_revoked(StoredRevocations(context.store), token)
    )


def new_host_token(context: Context, host: str) -> HostToken:
    at = context.store.now() / SECOND
    until, actor = int(at + context.token_seconds), Actor(host, LINK_ROLE, context.actor.team)
    claims = claims_of(actor, secrets.token_hex(8), at=at, until=until)
    signed = context.sign(claims | {"host": host})
    body = {"role": str(actor.role), "team": actor.team, "host": host}
    entry = new_entry(
        context, EntryKind.TOKEN, team="", key=claims["jti"], owner=host,
        until=until * SECOND, body=body,
    )  # fmt: skip
    keep(context, entry, Kind.TOKEN_CREATED)
    return HostToken(entry.key, host, entry.until, signed)


OPERATIONS = (
    Operation("host.token", CreateHostToken, Permission.ADMIN, create_token,
              "Create the token with which a machine connects to the server.", idempotent=False),
    Operation("host.invite", InviteHost, Permission.ADMIN, invite,
              "Create a secret with which one machine joins the queue.", idempotent=False),
    Operation("host.join", JoinHost, Permission.READ, join,
              "Exchange an invitation for what a machine needs to take tasks. Needs no token.",
              idempotent=False, reads=False, outside=True, is_open=True),
)  # fmt: skip
