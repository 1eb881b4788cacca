"""The members of a team: everyone who has called the server in it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.data import dataclass
from fleet.domain.entry import Entry, EntryKind
from fleet.domain.errors import NotFound
from fleet.domain.event import Kind
from fleet.domain.limits import Name, Rows
from fleet.operations.catalogue import Operation, Request
from fleet.operations.shared.entries import keep, new_entry, page, the_team
from fleet.operations.shared.names import team_in_view
from fleet.operations.team.tokens import must_have_no_namesake
from fleet.ports import EntryQuery, Put

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context

SEEN_NOTE_PERIOD = 60_000_000  # microseconds between two writes of when a member was last seen


@dataclass(frozen=True, slots=True)
class MemberRow:
    """`since` is when the member was first seen."""

    id: str
    name: str
    role: str
    team: str
    since: Time
    seen_at: Time


@dataclass(frozen=True, slots=True)
class BeSeen(Request[MemberRow]):
    """Written at most once a minute."""

    team: Name = ""


@dataclass(frozen=True, slots=True)
class ListMembers(Request[tuple[MemberRow, ...]]):
    team: Name = ""
    before: str = ""
    limit: Rows = 100


@dataclass(frozen=True, slots=True)
class ShowMember(Request[MemberRow]):
    """`member`: a name, or the `uid` that other programs use (see `uid_of`)."""

    member: str
    team: Name = ""


@lru_cache(1024)
def uid_of(team: str, name: str) -> str:
    """The id of a member for other programs: it follows from the name, so it cannot be chosen."""
    return hashlib.sha256(f"{team}:{name}".encode("utf-8", "replace")).hexdigest()[:24]


def be_seen(context: Context, request: BeSeen) -> MemberRow:
    actor, now = context.actor, context.store.now()
    team = the_team(context, request.team, Permission.READ)
    body = {"role": str(actor.role), "seen_at": now}
    entry = context.store.entry(EntryKind.MEMBER, team, actor.name)
    if entry is None:
        must_have_no_namesake(context, team, actor.name)  # a token may be signed elsewhere
        entry = new_entry(
            context,
            EntryKind.MEMBER,
            team=team,
            key=actor.name,
            owner=actor.name,
            body=body,
            text=uid_of(team, actor.name),
        )
    elif entry.body["role"] == body["role"] and now - entry.body["seen_at"] < SEEN_NOTE_PERIOD:
        return member_row(entry)
    elif entry.body["role"] == body["role"]:
        (seen,) = context.commit([Put(replace(entry, body=body))])  # no news, so no event
        assert isinstance(seen, Entry)
        return member_row(seen)
    else:
        entry = replace(entry, body=body)
    return member_row(keep(context, entry, Kind.MEMBER_JOINED))


def list_members(context: Context, request: ListMembers) -> tuple[MemberRow, ...]:
    entries = page(
        context, EntryKind.MEMBER, team=request.team, limit=request.limit, before=request.before
    )
    return tuple(map(member_row, entries))


def show_member(context: Context, request: ShowMember) -> MemberRow:
    name = request.member.strip()
    query = EntryQuery(EntryKind.MEMBER, team_in_view(context, request.team), limit=1)
    by_name, by_uid = query._replace(owner=name), query._replace(text_is=name)
    members = context.store.entries(by_name) or context.store.entries(by_uid) if name else []
    if not members:
        raise NotFound(f"There is no member '{name[:60]}'.", fix="`fleet teams` lists the members.")
    return member_row(members[0])


def member_row(entry: Entry) -> MemberRow:
    body = entry.body
    return MemberRow(entry.id, entry.owner, body["role"], entry.team, entry.at, body["seen_at"])


_READ = Permission.READ
OPERATIONS = (
    Operation(
        "member.seen", BeSeen, _READ, be_seen, "Record that the caller was seen.", reads=False
    ),
    Operation("member.list", ListMembers, _READ, list_members, "List the members of a team."),
    Operation("member.show", ShowMember, _READ, show_member, "Show a member."),
)
