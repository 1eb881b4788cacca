"""Enrolment secrets: a coordinator hands one out, and it is exchanged for tokens."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated, NoReturn

from fleet.base.outside import Time
from fleet.domain.access import (
    ALL,
    GRANTS,
    OWN,
    SUPERVISOR,
    Actor,
    Permission,
    Revocation,
    Role,
    claims_of,
    enrolment_key,
    name_key,
)
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import Forbidden, NotFound, Refused
from fleet.domain.event import Kind
from fleet.domain.limits import Name, OneOf, Rows, TextLimit, Whole
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.entries import keep, new_entry, the_team
from fleet.operations.team import revocations
from fleet.operations.team.members import BeSeen, be_seen, uid_of
from fleet.operations.team.revocations import StoredRevocations, each
from fleet.operations.team.tokens import (
    SECOND,
    Life,
    RoleName,
    check_life,
    must_have_no_namesake,
    revoked,
)
from fleet.ports import EntryQuery, Put

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context
    from fleet.ports import Store

DAY = 86400
PREFIX = "enrol-"
FOR_HOST = "for_host"  # in the body of a secret with which a machine joins, and nobody enrols
MOST_USES = 10_000  # tokens that one secret is exchanged for
MOST_TOKENS = 1000  # of one name that are valid at once
AUTH = Actor("auth", Role.COORDINATOR)  # acts for a caller who has only a secret, no token yet
FIX = "`fleet token enrol` makes one, where the server runs."
SERVER = Actor("server", Role.COORDINATOR, "local")  # what a server does by itself
RESERVED = frozenset({SUPERVISOR, AUTH.name, SERVER.name})
HANDLE = r"(?!(t-)?[0-9]+$)[A-Za-z0-9_-]{1,50}"  # messages to `t-3` go to the agent of that task
NAMING = "Use up to 50 letters, digits, - and _; a task's id is no name."

Secret = Annotated[str, TextLimit(1000)]
EnrolName = Annotated[str, TextLimit(50, pattern=HANDLE, what="name to enrol with", example=NAMING)]
AnyRole = Annotated[str, OneOf(("", *Role), "role")]


@dataclass(frozen=True, slots=True)
class EnrolmentRow:
    """`secret` is shown once, when it is created. With a `name` it can enrol only that name.

    `uses`: how many tokens it was exchanged for, at most `most_uses`.
    """

    id: str
    role: str
    team: str
    name: str
    at: Time
    until: Time
    revoked_at: Time | None
    uses: int
    most_uses: int
    secret: str = ""
    revoked: bool = False


@dataclass(frozen=True, slots=True)
class EnrolledRow:
    """`uid` identifies the member to other programs; `until` is when the token expires."""

    uid: str
    name: str
    role: str
    team: str
    token: str
    until: Time


@dataclass(frozen=True, slots=True)
class CreateEnrolment(Request[EnrolmentRow]):
    """The secret enrols members of `team` with this `role`, or with a role that may do less."""

    role: RoleName = "worker"
    team: Name = ""
    name: Annotated[str, TextLimit(50, pattern=f"({HANDLE})?", what="name", example=NAMING)] = ""
    seconds: Life = 7 * DAY
    uses: Annotated[int, Whole(1, MOST_USES)] = MOST_USES


@dataclass(frozen=True, slots=True)
class ListEnrolments(Request[tuple[EnrolmentRow, ...]]):
    """Newest first; `all`: also expired and revoked ones. `before`: the last id of the page before."""

    all: bool = False
    before: str = ""
    limit: Rows = 100


@dataclass(frozen=True, slots=True)
class RevokeEnrolment(Request[EnrolmentRow]):
    """The secret, and all tokens it was exchanged for, are no longer accepted."""

    enrolment: str


@dataclass(frozen=True, slots=True)
class ShowEnrolment(Request[EnrolmentRow]):
    """What a secret is for. Raise `Forbidden` when it is not a valid one."""

    secret: Secret


@dataclass(frozen=True, slots=True)
class Enrol(Request[EnrolledRow]):
    """Join a team under a name that is not taken. Repeating it gives a new token."""

    secret: Secret
    name: EnrolName
    team: Name = ""
    role: AnyRole = ""
    seconds: Life = DAY


def create(context: Context, request: CreateEnrolment) -> EnrolmentRow:
    team = the_team(context, request.team, Permission.ADMIN)
    check_life(context, "A secret", request.seconds)
    if request.name:
        must_have_no_namesake(context, team, request.name)
    be_seen(context, BeSeen())  # so that no one can enrol under the name of its maker
    secret = PREFIX + secrets.token_urlsafe(32)
    entry = new_entry(
        context,
        EntryKind.ENROLMENT,
        team="",  # it is looked up by the secret alone
        key=hash_of(secret),
        owner=request.name,
        until=context.store.now() + request.seconds * SECOND,
        body={"role": request.role, "team": team, "most": request.uses},
    )
    return replace(_row(keep(context, entry, Kind.ENROLMENT_CREATED)), secret=secret)


def list_enrolments(context: Context, request: ListEnrolments) -> tuple[EnrolmentRow, ...]:
    store, ended = context.store, StoredRevocations(context.store)
    now = 0 if request.all else store.now()
    query = EntryQuery(EntryKind.ENROLMENT, counting_at=now, before=request.before)
    entries = each(store, query)
    rows = (_row(entry, is_ended=_is_ended(ended, entry)) for entry in entries)
    return tuple(islice((row for row in rows if request.all or not row.revoked), request.limit))


def _is_ended(ended: StoredRevocations, enrolment: Entry) -> bool:
    keys = (ALL, enrolment_key(_mark(enrolment)))
    return bool(enrolment.body.get("revoked_at")) or ended(keys, enrolment.at)


def _mark(enrolment: Entry) -> str:
    """What the tokens of this secret carry, so that they are revoked together with it."""
    return enrolment.key[:16]


def revoke(context: Context, request: RevokeEnrolment) -> EnrolmentRow:
    enrolment_id = request.enrolment.strip()
    try:
        entry = context.store.entry_by_id(enrolment_id)
    except NotFound:
        entry = None
    if entry is None or entry.kind is not EntryKind.ENROLMENT:
        raise NotFound(
            f"There is no enrolment '{enrolment_id[:60]}'.",
            fix="`fleet token enrolments` lists them.",
        )
    if not entry.body.get("revoked_at"):
        body = {**entry.body, "revoked_at": context.store.now()}
        entry = keep(context, replace(entry, body=body), Kind.ENROLMENT_REVOKED)
    revocations.revoke(context, Revocation(enrolment_key(_mark(entry))))
    _revoke_unmarked(context, entry)
    return _row(entry, is_ended=True)


def _revoke_unmarked(context: Context, enrolment: Entry) -> None:
    """One by one: the tokens from before tokens carried the mark of their secret."""
    older = EntryQuery(EntryKind.TOKEN, text=enrolment.id, counting_at=context.store.now())
    for token in each(context.store, older):
        ours = token.body.get("enrolment") == enrolment.id
        if ours and not token.body.get("mark") and not token.body.get("revoked_at"):
            revoked(context, token)


def show(context: Context, request: ShowEnrolment) -> EnrolmentRow:
    return _row(_enrolment(context, request.secret))


def enrol(context: Context, request: Enrol) -> EnrolledRow:
    enrolment = _enrolment(context, request.secret)
    if request.team.strip() not in {"", enrolment.body["team"]}:
        _wrong(f"That secret is not for team {request.team.strip()[:60]}.")
    actor = admit(context, enrolment, request.name, _role(enrolment, request.role))
    at = context.store.now() / SECOND
    until = int(at + min(max(1, request.seconds), context.token_seconds))
    claims = claims_of(actor, secrets.token_hex(8), at=at, until=until)
    signed = context.sign(claims | {"enrolment": _mark(enrolment)})
    entry = new_entry(
        context,
        EntryKind.TOKEN,
        team="",
        key=claims["jti"],
        owner=actor.name,
        until=until * SECOND,
        body={"role": str(actor.role), "team": actor.team, **marks(enrolment)},
    )
    event = context.event(Kind.TOKEN_CREATED, "", entry=entry.id, team="")
    context.commit([Put(entry), Put(used_once_more(enrolment))], event)
    be_seen(context._replace(actor=actor), BeSeen())
    uid = uid_of(actor.team, actor.name)
    return EnrolledRow(uid, actor.name, str(actor.role), actor.team, signed, until * SECOND)


def admit(context: Context, enrolment: Entry, name: str, role: Role) -> Actor:
    """Who gets in by this secret under this name; raise if nobody may."""
    if enrolment.body.get(FOR_HOST):
        _wrong("That secret is for a machine, which joins with it: fleet host join.")
    if enrolment.owner not in {"", name}:
        _wrong(f"That secret was not made for {name}.")
    team = str(enrolment.body["team"])
    must_have_no_namesake(context, team, name)
    _must_be_free(context, enrolment, name)
    _must_have_uses(enrolment)
    must_have_few_tokens(context, name)
    return Actor(name, role, team)


def marks(enrolment: Entry) -> dict[str, str]:
    """What a token's entry says of the secret that it came from."""
    return {"enrolment": enrolment.id, "mark": _mark(enrolment)}


def used_once_more(enrolment: Entry) -> Entry:
    return replace(enrolment, body={**enrolment.body, "uses": _uses(enrolment) + 1})


def valid_enrolment(store: Store, secret: str, *, fix: str = "") -> Entry:
    """Raise unless it is known, and neither expired nor revoked."""
    entry = store.entry(EntryKind.ENROLMENT, "", hash_of(secret))
    if entry is None or not entry.counts(store.now()) or _is_ended(StoredRevocations(store), entry):
        _wrong("That secret is unknown, expired or revoked.", fix=fix or FIX)
    return entry


def _enrolment(context: Context, secret: str) -> Entry:
    if not secret:
        raise Forbidden("No secret was sent.", fix=FIX, code="no_secret")
    return valid_enrolment(context.store, secret)


def _wrong(message: str, *, fix: str = FIX) -> NoReturn:
    raise Forbidden(message, fix=fix, code="bad_secret")


def _role(enrolment: Entry, wanted: str) -> Role:
    """The wanted role, if the secret's role may do all of that; empty: worker, or the secret's own."""
    most = Role(enrolment.body["role"])
    if not wanted:
        return Role.WORKER if GRANTS[Role.WORKER] <= GRANTS[most] else most
    role = Role(wanted)
    if not GRANTS[role] - OWN <= GRANTS[most]:
        raise Forbidden(
            f"That secret cannot enrol a {role}.",
            fix=f"Ask for {most} or less, or for another secret.",
            code="too_much",
        )
    return role


def _must_be_free(context: Context, enrolment: Entry, name: str) -> None:
    """Raise when another member has the name.

    A name is the caller's when the secret was made for it, or has enrolled it before.
    """
    team = str(enrolment.body["team"])
    tokens = context.store.entries(EntryQuery(EntryKind.TOKEN, owner=name, limit=MOST_TOKENS))
    tokens_of_team = [token for token in tokens if token.body.get("team") == team]
    mine = [token for token in tokens_of_team if token.body.get("enrolment") == enrolment.id]
    ended = StoredRevocations(context.store)
    sent_away = ended((name_key(name), name_key(name, team)), enrolment.at)
    if sent_away or any(token.body.get("revoked_at") for token in mine):
        _wrong(f"The tokens of {name} were revoked, so that secret cannot enrol {name} again.")
    if name not in RESERVED and (mine or enrolment.owner == name):
        return
    seen = context.store.entry(EntryKind.MEMBER, team, name)
    if tokens_of_team or seen is not None or name in RESERVED:
        raise Refused(
            f"The name {name} is taken in team {team}.",
            fix="Choose another, or ask for a secret of your own: fleet token enrol --name NAME",
            code="taken",
        )


def _must_have_uses(enrolment: Entry) -> None:
    most = int(enrolment.body.get("most", MOST_USES))
    if _uses(enrolment) >= most:
        raise Refused(
            f"That secret has been used {most} times, which is its limit.",
            fix="Ask for another: `fleet token enrol --uses NUMBER`.",
            code="used_up",
        )


def must_have_few_tokens(context: Context, name: str) -> None:
    """A good secret or session is no licence to fill the store."""
    now = context.store.now()
    query = EntryQuery(EntryKind.TOKEN, owner=name, counting_at=now, limit=MOST_TOKENS)
    if len(context.store.entries(query)) >= MOST_TOKENS:
        raise Refused(
            f"{name} has {MOST_TOKENS} valid tokens, and cannot have more at once.",
            fix="Use one of them until it expires.",
            code="too_many_tokens",
        )


def _uses(enrolment: Entry) -> int:
    return int(enrolment.body.get("uses", 0))


def hash_of(secret: str) -> str:
    """A plain hash is enough: the secret is long and random."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _row(entry: Entry, *, is_ended: bool = False) -> EnrolmentRow:
    body = entry.body
    return EnrolmentRow(
        entry.id, body["role"], body["team"], entry.owner, entry.at, entry.until,
        body.get("revoked_at"), _uses(entry), int(body.get("most", MOST_USES)), revoked=is_ended,
    )  # fmt: skip


_P = Permission
OPERATIONS = (
    Operation("enrolment.create", CreateEnrolment, _P.ADMIN, create, "Create an enrolment secret.",
              idempotent=False),
    Operation("enrolment.list", ListEnrolments, _P.ADMIN, list_enrolments,
              "List the enrolment secrets.", reads=True),
    Operation("enrolment.revoke", RevokeEnrolment, _P.ADMIN, revoke, "Revoke an enrolment secret."),
    Operation("enrolment.show", ShowEnrolment, _P.ADMIN, show,
              "Show what an enrolment secret is for.", reads=True),
    Operation("enrolment.use", Enrol, _P.ADMIN, enrol, "Exchange a secret for a token.",
              idempotent=False),
)  # fmt: skip
