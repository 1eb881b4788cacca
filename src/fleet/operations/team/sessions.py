"""Signing in to the dashboard: a one-time code or an enrolment becomes a token; who the caller is."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fleet import __version__
from fleet.base.outside import Time
from fleet.domain.access import ALL, GRANTS, Actor, Permission, Role, claims_of, name_key
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import Forbidden, Refused
from fleet.domain.event import Kind
from fleet.domain.limits import Name, OneOf, TextLimit
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.entries import a_name, keep, new_entry, the_team
from fleet.operations.team.enrolments import (
    HANDLE,
    NAMING,
    PREFIX,
    admit,
    hash_of,
    marks,
    must_have_few_tokens,
    used_once_more,
    valid_enrolment,
)
from fleet.operations.team.members import BeSeen, be_seen
from fleet.operations.team.revocations import StoredRevocations
from fleet.operations.team.tokens import SECOND, must_have_no_namesake
from fleet.ports import Put

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context
    from fleet.ports import Store

CODE_SECONDS = 60
SESSION_SECONDS = 12 * 3600  # of one token
LONGEST_SESSION = 30 * 86400  # in seconds, however often it is renewed
FIX = "Make a new one: fleet ui"

Code = Annotated[str, TextLimit(200, some=True, what="code", example=FIX)]


@dataclass(frozen=True, slots=True)
class CodeRow:
    """`code` opens one session of this person until `until`."""

    code: str
    name: str
    role: str
    team: str
    until: Time


@dataclass(frozen=True, slots=True)
class SessionRow:
    """`until`: when the token expires; renew the session before that. `last`: it cannot be renewed past then."""

    name: str
    role: str
    team: str
    token: str
    until: Time
    last: Time


@dataclass(frozen=True, slots=True)
class Me:
    """`until`: when the caller's token expires; none for a person at this machine.

    `run`: of an agent, its run. `supervisor`: whether some host starts tasks now.
    """

    name: str
    role: str
    team: str
    permissions: tuple[str, ...]
    until: Time | None
    run: str
    version: str
    supervisor: bool


@dataclass(frozen=True, slots=True)
class CreateCode(Request[CodeRow]):
    """For the caller, or for another person by name, role and team. It is valid for 60 seconds."""

    name: Name = ""
    role: Annotated[str, OneOf(("", *Role), "role")] = ""
    team: Name = ""


@dataclass(frozen=True, slots=True)
class OpenSession(Request[SessionRow]):
    """`code`: a one-time code, or an enrolment secret; that gives its own role, to `name` or its own."""

    code: Code
    name: Annotated[str, TextLimit(50, pattern=f"({HANDLE})?", what="name", example=NAMING)] = ""


@dataclass(frozen=True, slots=True)
class RenewSession(Request[SessionRow]):
    """With a token of a session. The one that asks stays valid until it expires."""


@dataclass(frozen=True, slots=True)
class ShowMe(Request[Me]):
    pass


def create_code(context: Context, request: CreateCode) -> CodeRow:
    name = a_name(request.name) or context.actor.name
    role = Role(request.role or context.actor.role)
    team = the_team(context, request.team, Permission.ADMIN)
    must_have_no_namesake(context, team, name)
    code, now = secrets.token_urlsafe(24), context.store.now()
    context.store.prune(EntryKind.CODE, "", now=now)
    entry = new_entry(
        context,
        EntryKind.CODE,
        team="",  # it is looked up by the code alone
        key=hash_of(code),
        owner=name,
        until=now + CODE_SECONDS * SECOND,
        body={"role": str(role), "team": team},
    )
    keep(context, entry, Kind.SESSION_OFFERED)
    return CodeRow(code, name, str(role), team, entry.until)


def valid_code(store: Store, code: str) -> Entry:
    """The entry of the code, or of the enrolment secret; raise unless it can be used now."""
    if code.startswith(PREFIX):
        return valid_enrolment(store, code)
    entry = store.entry(EntryKind.CODE, "", hash_of(code))
    if entry is None:
        raise Forbidden("That code is not valid.", fix=FIX, code="bad_secret")
    keys = (ALL, name_key(entry.owner), name_key(entry.owner, str(entry.body["team"])))
    if not entry.counts(store.now()) or StoredRevocations(store)(keys, entry.at):
        raise Refused("That code was used or revoked, or has expired.", fix=FIX, code="used_code")
    return entry


def open_session(context: Context, request: OpenSession) -> SessionRow:
    """Exchange a code for a token. Of two callers with one code the second is refused: its entry changed."""
    entry, now = valid_code(context.store, request.code), context.store.now()
    if entry.kind is EntryKind.ENROLMENT:
        return _enrolled(context, entry, request.name or entry.owner)
    actor = Actor(entry.owner, Role(entry.body["role"]), entry.body["team"])
    return _session(context, actor, now, replace(entry, until=now))


def _enrolled(context: Context, enrolment: Entry, name: str) -> SessionRow:
    if not name:
        raise Refused(
            "That enrolment secret does not name a member.",
            fix="Give your name with it.",
            code="no_name",
        )
    actor = admit(context, enrolment, name, Role(enrolment.body["role"]))
    now, used = context.store.now(), used_once_more(enrolment)
    opened = _session(context, actor, now, used, **marks(enrolment))
    be_seen(context._replace(actor=actor), BeSeen())
    return opened


def renew_session(context: Context, _request: RenewSession) -> SessionRow:
    actor = context.actor
    token = context.store.entry(EntryKind.TOKEN, "", actor.token) if actor.token else None
    began = int(token.body.get("session", 0)) if token is not None else 0
    if not began:
        raise Refused("Your token does not belong to a session.", fix=FIX)
    if context.store.now() >= began + LONGEST_SESSION * SECOND:
        raise Refused("Your session has lasted for 30 days.", fix=FIX)
    assert token is not None
    must_have_few_tokens(context, actor.name)
    names = ("enrolment", "mark", "first")
    kept = {name: token.body[name] for name in names if name in token.body}
    return _session(context, actor, began, **kept)


def _session(context: Context, actor: Actor, began: int, *used: Entry, **marked: str) -> SessionRow:
    """`marked`: by what it is revoked together with the enrolment that it came from.

    `first` among that is the id of the session's first token: revoking any ends them all.
    """
    at, last = context.store.now() / SECOND, began // SECOND + LONGEST_SESSION
    longest = min(SESSION_SECONDS, int(context.token_seconds))
    until = min(int(at) + longest, last)
    claims = claims_of(replace(actor, run=""), secrets.token_hex(8), at=at, until=until)
    marked = {"first": claims["jti"], **marked}
    entry = new_entry(
        context,
        EntryKind.TOKEN,
        team="",
        key=claims["jti"],
        owner=actor.name,
        until=until * SECOND,
        body={"role": str(actor.role), "team": actor.team, "session": began, **marked},
    )
    event = context.event(Kind.TOKEN_CREATED, "", entry=entry.id, team="")
    context.commit([Put(entry), *map(Put, used)], event)
    claims |= {"session": marked["first"]}
    signed = context.sign(claims | ({"enrolment": marked["mark"]} if "mark" in marked else {}))
    times = until * SECOND, last * SECOND
    return SessionRow(actor.name, str(actor.role), actor.team, signed, *times)


def show_me(context: Context, _request: ShowMe) -> Me:
    actor, now = context.actor, context.store.now()
    return Me(
        actor.name,
        str(actor.role),
        actor.team,
        tuple(sorted(map(str, GRANTS[actor.role]))),
        actor.until or None,
        actor.run,
        __version__,
        any(host.lease_until > now for host in context.store.hosts().values()),
    )


_P = Permission
OPERATIONS = (
    Operation("session.code", CreateCode, _P.ADMIN, create_code,
              "Create a one-time code that opens the dashboard.", idempotent=False),
    Operation("session.open", OpenSession, _P.READ, open_session,
              "Exchange a one-time code or an enrolment secret for a token. Needs no token.",
              reads=False, is_open=True),
    Operation("session.renew", RenewSession, _P.READ, renew_session,
              "Get a new token before that of the session expires.", idempotent=False, reads=False),
    Operation("me.show", ShowMe, _P.READ, show_me, "Show who you are and what you may do."),
)  # fmt: skip
