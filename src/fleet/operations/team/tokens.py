"""Tokens with which people and programs log in to a server: create, list, revoke."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.base.outside import Time
from fleet.domain.access import Actor, Permission, Role, claims_of
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import BadInput, NotFound, nearest
from fleet.domain.event import Kind
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.entries import a_person, keep, new_entry, the_team
from fleet.operations.shared.names import how_many
from fleet.ports import EntryQuery

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context
    from fleet.ports import Store

SECOND = 1_000_000
MOST_SECONDS = 3650 * 86400


@dataclass(frozen=True, slots=True)
class TokenRow:
    """`token` is shown once, when it is created; `id` is used to revoke it."""

    id: str
    name: str
    role: str
    team: str
    at: Time
    until: Time
    revoked_at: Time | None
    token: str = ""


@dataclass(frozen=True, slots=True)
class CreateToken(Request[TokenRow]):
    name: str
    role: str = "worker"
    team: str = ""
    seconds: int = 30 * 86400


@dataclass(frozen=True, slots=True)
class RevokeToken(Request[tuple[TokenRow, ...]]):
    """`token`: a token's id, or a name for all tokens of that name."""

    token: str


@dataclass(frozen=True, slots=True)
class ListTokens(Request[tuple[TokenRow, ...]]):
    """Newest first; `all`: also expired and revoked ones. `before`: the last id of the page before."""

    all: bool = False
    before: str = ""
    limit: int = 100


def create(context: Context, request: CreateToken) -> TokenRow:
    name, role = a_person(request.name), a_role(request.role)
    team = the_team(context, request.team, Permission.ADMIN)
    if not 1 <= request.seconds <= MOST_SECONDS:
        raise BadInput(
            "A token can be valid for 1 second to 10 years.", fix="Choose a time in that range."
        )
    at = context.store.now() / SECOND
    until = int(at) + request.seconds
    claims = claims_of(Actor(name, role, team), secrets.token_hex(8), at=at, until=until)
    signed = context.sign(claims)
    entry = new_entry(
        context,
        EntryKind.TOKEN,
        team="",  # it is looked up by its id alone
        key=claims["jti"],
        owner=name,
        until=until * SECOND,
        body={"role": str(role), "team": team},
    )
    return replace(_row(keep(context, entry, Kind.TOKEN_CREATED)), token=signed)


def a_role(name: str) -> Role:
    known = {str(role): role for role in Role}
    if name not in known:
        fix = nearest(name, known) or f"Choose one of: {', '.join(known)}."
        raise BadInput(f"'{name[:60]}' is not a role.", fix=fix)
    return known[name]


def revoke(context: Context, request: RevokeToken) -> tuple[TokenRow, ...]:
    store, wanted = context.store, request.token.strip()
    one = store.entry(EntryKind.TOKEN, "", wanted)
    entries = [one] if one else _of(context, wanted)
    if not entries:
        raise NotFound(f"There is no token '{wanted[:60]}'.", fix="`fleet token list` lists them.")
    return tuple(_row(revoked(context, entry)) for entry in entries)


def _of(context: Context, owner: str) -> list[Entry]:
    if not owner:
        return []
    now = context.store.now()
    return context.store.entries(
        EntryQuery(EntryKind.TOKEN, owner=owner, counting_at=now, limit=1000)
    )


def revoked(context: Context, entry: Entry) -> Entry:
    if entry.body.get("revoked_at"):
        return entry
    body = {**entry.body, "revoked_at": context.store.now()}
    return keep(context, replace(entry, body=body), Kind.TOKEN_REVOKED)


def list_tokens(context: Context, request: ListTokens) -> tuple[TokenRow, ...]:
    store, limit = context.store, how_many(request.limit)
    before = store.entry(EntryKind.TOKEN, "", request.before) if request.before else None
    now = 0 if request.all else store.now()
    query = EntryQuery(
        EntryKind.TOKEN, counting_at=now, before=before.id if before else "", limit=limit
    )
    entries = [e for e in store.entries(query) if request.all or not e.body.get("revoked_at")]
    return tuple(map(_row, entries))


def is_revoked(store: Store, token_id: str) -> bool:
    entry = store.entry(EntryKind.TOKEN, "", token_id)
    return bool(entry and entry.body.get("revoked_at"))


def _row(entry: Entry) -> TokenRow:
    body = entry.body
    return TokenRow(
        id=entry.key,
        name=entry.owner,
        role=body["role"],
        team=body["team"],
        at=entry.at,
        until=entry.until,
        revoked_at=body.get("revoked_at"),
    )


_P = Permission
OPERATIONS = (
    Operation("token.create", CreateToken, _P.ADMIN, create, "Create a token.", idempotent=False),
    Operation("token.revoke", RevokeToken, _P.ADMIN, revoke, "Revoke tokens."),
    Operation("token.list", ListTokens, _P.ADMIN, list_tokens, "List the tokens.", reads=True),
)
