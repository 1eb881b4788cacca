"""Secrets that somebody is given to make themselves known: each is exchanged for tokens."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from fleet.domain.access import GRANTS, OWN, SUPERVISOR, Actor, Permission, Role, claims_of
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import BadInput, Forbidden, NotFound, Refused
from fleet.domain.event import Kind
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.entries import a_name, keep, new_entry, page, the_team
from fleet.operations.team.members import BeSeen, be_seen, uid_of
from fleet.operations.team.tokens import MOST_SECONDS, SECOND, a_role, revoked
from fleet.ports import EntryQuery

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context

DAY = 86400
PREFIX = "enrol-"
AUTH = Actor("auth", Role.COORDINATOR)  # whoever exchanges a secret is nobody yet
FIX = "`fleet token enrol` makes one, where the server runs."
RESERVED = frozenset({SUPERVISOR, AUTH.name})
_NAME = re.compile(r"(?!t-[0-9]+$)[A-Za-z0-9_-]{1,50}")  # a task's agents are written to by its id


@dataclass(frozen=True, slots=True)
class EnrolmentRow:
    """`secret` is said once, when it is made. `name`: it is good for that one alone."""

    id: str
    role: str
    team: str
    name: str
    at: int
    until: int
    revoked_at: int | None
    secret: str = ""


@dataclass(frozen=True, slots=True)
class EnrolledRow:
    """`uid` is who they are to other programs; `until` is when the token is over."""

    uid: str
    name: str
    role: str
    team: str
    token: str
    until: int


@dataclass(frozen=True, slots=True)
class CreateEnrolment(Request[EnrolmentRow]):
    """A secret with which somebody may become a `role` of a `team`, or less."""

    role: str = "worker"
    team: str = ""
    name: str = ""
    seconds: int = 7 * DAY


@dataclass(frozen=True, slots=True)
class ListEnrolments(Request[tuple[EnrolmentRow, ...]]):
    """Newest first; `all`: also those that are over or revoked. `before`: the id of one."""

    all: bool = False
    before: str = ""
    limit: int = 100


@dataclass(frozen=True, slots=True)
class RevokeEnrolment(Request[EnrolmentRow]):
    """It is good for nothing more, and neither are the tokens that it was exchanged for."""

    enrolment: str


@dataclass(frozen=True, slots=True)
class Enrol(Request[EnrolledRow]):
    """Become somebody. A name that somebody else has is refused; said again it is another token."""

    secret: str
    name: str
    team: str = ""
    role: str = ""
    seconds: int = DAY


def create(context: Context, request: CreateEnrolment) -> EnrolmentRow:
    role, team = a_role(request.role), the_team(context, request.team, Permission.ADMIN)
    name = _name(request.name) if request.name else ""
    if not 1 <= request.seconds <= MOST_SECONDS:
        raise BadInput("A secret is good for a second to ten years.", fix="Choose another time.")
    be_seen(context, BeSeen())  # so that nobody takes the name of whoever makes it
    secret = PREFIX + secrets.token_urlsafe(32)
    entry = new_entry(
        context,
        EntryKind.ENROLMENT,
        team="",  # whoever looks it up knows the secret alone
        key=_hash(secret),
        owner=name,
        until=context.store.now() + request.seconds * SECOND,
        body={"role": str(role), "team": team},
    )
    return replace(_row(keep(context, entry, Kind.ENROLMENT_CREATED)), secret=secret)


def list_enrolments(context: Context, request: ListEnrolments) -> tuple[EnrolmentRow, ...]:
    now = 0 if request.all else context.store.now()
    found = page(
        context, EntryKind.ENROLMENT, team="", limit=request.limit, before=request.before,
        counting_at=now,
    )  # fmt: skip
    return tuple(_row(e) for e in found if request.all or not e.body.get("revoked_at"))


def revoke(context: Context, request: RevokeEnrolment) -> EnrolmentRow:
    wanted = request.enrolment.strip()
    try:
        entry = context.store.entry_by_id(wanted)
    except NotFound:
        entry = None
    if entry is None or entry.kind is not EntryKind.ENROLMENT:
        raise NotFound(
            f"There is no enrolment '{wanted[:60]}'.", fix="`fleet token enrolments` lists them."
        )
    for token in _tokens(context, text=entry.id):
        if token.body.get("enrolment") == entry.id:
            revoked(context, token)
    if not entry.body.get("revoked_at"):
        body = {**entry.body, "revoked_at": context.store.now()}
        entry = keep(context, replace(entry, body=body), Kind.ENROLMENT_REVOKED)
    return _row(entry)


def enrol(context: Context, request: Enrol) -> EnrolledRow:
    held = _held(context, request)
    name, role, team = _name(request.name), _role(held, request.role), str(held.body["team"])
    if held.owner not in {"", name}:
        _wrong(f"That secret is not {name}'s.")
    if not 1 <= request.seconds <= MOST_SECONDS:
        raise BadInput("A token is good for a second to ten years.", fix="Choose another time.")
    _must_be_free(context, held, name)
    actor = Actor(name, role, team)
    at = context.store.now() // SECOND
    until = at + request.seconds
    claims = claims_of(actor, secrets.token_hex(8), at=at, until=until)
    signed = context.sign(claims)
    entry = new_entry(
        context,
        EntryKind.TOKEN,
        team="",
        key=claims["jti"],
        owner=name,
        until=until * SECOND,
        text=held.id,
        body={"role": str(role), "team": team, "enrolment": held.id},
    )
    keep(context, entry, Kind.TOKEN_CREATED)
    be_seen(context._replace(actor=actor), BeSeen())
    return EnrolledRow(uid_of(team, name), name, str(role), team, signed, until * SECOND)


def _held(context: Context, request: Enrol) -> Entry:
    """By the hash of the secret; the team must be its own."""
    if not request.secret:
        raise Forbidden("No secret was sent.", fix=FIX, code="no_secret")
    found = context.store.entry(EntryKind.ENROLMENT, "", _hash(request.secret))
    now = context.store.now()
    if found is None or not found.counts(now) or found.body.get("revoked_at"):
        _wrong("That secret is not known, or counts no more.")
    if request.team.strip() not in {"", found.body["team"]}:
        _wrong(f"That secret is not for team {request.team.strip()[:60]}.")
    return found


def _wrong(said: str) -> NoReturn:
    raise Forbidden(said, fix=FIX, code="bad_secret")


def _role(held: Entry, wanted: str) -> Role:
    """What is asked for, if the secret's own role may do all that; not said: as little."""
    most = Role(held.body["role"])
    if not wanted:
        return Role.WORKER if GRANTS[Role.WORKER] <= GRANTS[most] else most
    role = a_role(wanted)
    if not GRANTS[role] - OWN <= GRANTS[most]:
        raise Forbidden(
            f"That secret makes nobody a {role}.",
            fix=f"Ask for {most} or less, or for another secret.",
            code="too_much",
        )
    return role


def _must_be_free(context: Context, held: Entry, name: str) -> None:
    """A secret for one name says whose it is; another is good for the names that it made."""
    team = str(held.body["team"])
    known = [t for t in _tokens(context, owner=name) if t.body.get("team") == team]
    mine = [token for token in known if token.body.get("enrolment") == held.id]
    if any(token.body.get("revoked_at") for token in mine):
        _wrong(f"{name} was sent away, and that secret does not bring them back.")
    if name not in RESERVED and (mine or held.owner == name):
        return
    seen = context.store.entry(EntryKind.MEMBER, team, name)
    if known or seen is not None or name in RESERVED:
        raise Refused(
            f"Somebody is {name} in {team} already.",
            fix="Choose another, or ask for a secret of your own: fleet token enrol --name NAME",
            code="taken",
        )


def _tokens(context: Context, *, owner: str = "", text: str = "") -> list[Entry]:
    return context.store.entries(EntryQuery(EntryKind.TOKEN, owner=owner, text=text, limit=10_000))


def _name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"'{name[:60]}' is not a name to enrol with.",
            fix="Use up to 50 letters, digits, - and _.",
        )
    return a_name("name", name)


def _hash(secret: str) -> str:
    """It is long and random, so a plain hash keeps it."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _row(entry: Entry) -> EnrolmentRow:
    body = entry.body
    return EnrolmentRow(
        entry.id, body["role"], body["team"], entry.owner, entry.at, entry.until,
        body.get("revoked_at"),
    )  # fmt: skip


_P = Permission
OPERATIONS = (
    Operation(
        "enrolment.create", CreateEnrolment, _P.ADMIN, create, "Make a secret to enrol with.",
        idempotent=False,
    ),
    Operation(
        "enrolment.list", ListEnrolments, _P.ADMIN, list_enrolments, "List such secrets.",
        reads=True,
    ),
    Operation("enrolment.revoke", RevokeEnrolment, _P.ADMIN, revoke, "Let one count no more."),
    Operation(
        "enrolment.use", Enrol, _P.ADMIN, enrol, "Exchange a secret for a token.",
        idempotent=False,
    ),
)  # fmt: skip
