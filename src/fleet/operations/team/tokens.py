"""Tokens with which people and programs log in to a server: create, list, revoke."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import (
    ALL,
    Actor,
    Permission,
    Revocation,
    Role,
    claims_of,
    keys_of,
    name_key,
    token_key,
)
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import NotFound, Refused
from fleet.domain.event import Kind
from fleet.domain.limits import MOST_SECONDS, Name, OneOf, Rows, Whole
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.entries import PersonName, a_name, keep, new_entry, the_team
from fleet.operations.team import revocations
from fleet.operations.team.revocations import GRACE, StoredRevocations, each
from fleet.ports import EntryQuery, Put

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context

SECOND = 1_000_000
MAX_NAMESAKES = 1000  # tokens of one name, in every case, that are looked through

RoleName = Annotated[str, OneOf(tuple(Role), "role")]
Life = Annotated[int, Whole(1, MOST_SECONDS)]  # the setting server.token_days may allow less


@dataclass(frozen=True, slots=True)
class TokenRow:
    """`token` is shown once, when it is created; `id` is used to revoke it.

    `revoked_at`: when it was revoked on its own, and not with all of its name or of everybody.
    """

    id: str
    name: str
    role: str
    team: str
    at: Time
    until: Time
    revoked_at: Time | None
    token: str = ""
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class CreateToken(Request[TokenRow]):
    name: PersonName
    role: RoleName = "worker"
    team: Name = ""
    seconds: Life = 30 * 86400


@dataclass(frozen=True, slots=True)
class RevokedRow:
    """Of one token, or of all of `name`, or of everybody; in one team, or in every one.

    `before`: those made up to then.
    """

    token: str
    name: str
    team: str
    before: Time
    at: Time


@dataclass(frozen=True, slots=True)
class RevokeToken(Request[RevokedRow]):
    """`token`: a token's id, or the name of a member for all tokens of that name.

    `team`: only those of that name there. `all`: every token and enrolment secret. `before`: only
    those made up to then; without it, until now.
    """

    token: str = ""
    team: Name = ""
    all: bool = False
    before: Time = 0


@dataclass(frozen=True, slots=True)
class ListTokens(Request[tuple[TokenRow, ...]]):
    """Newest first; `all`: also expired and revoked ones. `before`: the last id of the page before."""

    all: bool = False
    before: str = ""
    limit: Rows = 100


def create(context: Context, request: CreateToken) -> TokenRow:
    name, role = a_name(request.name), Role(request.role)
    team = the_team(context, request.team, Permission.ADMIN)
    check_life(context, "A token", request.seconds)
    must_have_no_namesake(context, team, name)
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


def must_have_no_namesake(context: Context, team: str, name: str) -> None:
    """Raise if somebody in the team has the name in other letters: people could not tell them apart."""
    for kind in (EntryKind.MEMBER, EntryKind.TOKEN, EntryKind.ENROLMENT):
        query = EntryQuery(kind, namesake=name, limit=MAX_NAMESAKES)
        for entry in context.store.entries(query):
            entry_team = entry.team if kind is EntryKind.MEMBER else entry.body.get("team")
            if entry.owner != name and entry_team == team:
                raise Refused(
                    f"{entry.owner} is in team {team}: {name} differs from that only by case.",
                    fix=f"Use {entry.owner}, or choose another name.",
                    code="taken",
                )


def check_life(context: Context, what: str, seconds: int) -> None:
    if seconds > context.token_seconds:
        raise Refused(
            f"{what} can be valid for at most {context.token_seconds / 86400:g} days on this server.",
            fix="Choose a shorter time, or have the setting `server.token_days` raised.",
            code="too_long",
        )


def revoke(context: Context, request: RevokeToken) -> RevokedRow:
    wanted, now = request.token.strip(), context.store.now()
    if bool(wanted) == request.all or not 0 <= request.before <= now:
        raise NotFound(
            "Name a token, a member, or all; a time must not be in the future.",
            fix="fleet token revoke NAME, or fleet token revoke --all",
        )
    before = request.before or now
    if request.all:
        made = revocations.revoke(context, Revocation(ALL, before))
        return RevokedRow("", "", "", before, made.at)
    if (one := context.store.entry(EntryKind.TOKEN, "", wanted)) is not None:
        return _revoke_one(context, one)
    team = the_team(context, request.team, Permission.ADMIN) if request.team else ""
    _must_be_known(context, wanted)
    made = revocations.revoke(context, Revocation(name_key(wanted, team), before))
    return RevokedRow("", wanted, team, before, made.at)


def _revoke_one(context: Context, entry: Entry) -> RevokedRow:
    if not entry.body.get("revoked_at"):
        entry = revoked(context, entry)
    at = int(entry.body["revoked_at"])
    return RevokedRow(entry.key, entry.owner, str(entry.body["team"]), at, at)


def revoked(context: Context, entry: Entry) -> Entry:
    """The token's entry, once it is revoked, and the whole session with it if it is one's."""
    body = {**entry.body, "revoked_at": context.store.now()}
    changed = replace(entry, body=body)
    revocation = Revocation(token_key(entry.key), until=entry.until + GRACE)
    if first := str(body.get("first", "")):
        revocation = Revocation(token_key(first), until=0)  # it may have been renewed
    revocations.revoke(context, revocation, Put(changed))
    return changed


def _must_be_known(context: Context, name: str) -> None:
    """A name that somebody has, or had: a slip would end nothing, and say that it did."""
    kinds = (EntryKind.TOKEN, EntryKind.MEMBER)
    if not any(context.store.entries(EntryQuery(kind, owner=name, limit=1)) for kind in kinds):
        raise NotFound(
            f"There is no token '{name[:60]}', nor a member of that name.",
            fix="`fleet token list` lists tokens, `fleet teams` members.",
        )


def list_tokens(context: Context, request: ListTokens) -> tuple[TokenRow, ...]:
    store = context.store
    before = store.entry(EntryKind.TOKEN, "", request.before) if request.before else None
    ended, rows = StoredRevocations(store), []
    now = 0 if request.all else store.now()
    query = EntryQuery(EntryKind.TOKEN, counting_at=now, before=before.id if before else "")
    for entry in each(store, query):
        row = _row(entry, is_ended=is_revoked(ended, entry))
        if request.all or not row.revoked:
            rows.append(row)
            if len(rows) == request.limit:
                break
    return tuple(rows)


def is_revoked(ended: StoredRevocations, token: Entry) -> bool:
    body = token.body
    marks = str(body.get("mark", "")), str(body.get("first", ""))
    keys = keys_of(token.key, token.owner, str(body["team"]), *marks)
    return bool(body.get("revoked_at")) or ended(keys, token.at)


def _row(entry: Entry, *, is_ended: bool = False) -> TokenRow:
    body = entry.body
    return TokenRow(
        id=entry.key,
        name=entry.owner,
        role=body["role"],
        team=body["team"],
        at=entry.at,
        until=entry.until,
        revoked_at=body.get("revoked_at"),
        revoked=is_ended,
    )


_P = Permission
OPERATIONS = (
    Operation("token.create", CreateToken, _P.ADMIN, create, "Create a token.", idempotent=False),
    Operation("token.revoke", RevokeToken, _P.ADMIN, revoke, "Revoke tokens."),
    Operation("token.list", ListTokens, _P.ADMIN, list_tokens, "List the tokens.", reads=True),
)
