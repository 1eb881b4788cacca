"""Mail: words to one actor of a team, kept until they read them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fleet.domain.access import Permission
from fleet.domain.addressing import MAIL, as_mail
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import Forbidden, Refused
from fleet.domain.event import Kind
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.deliver import agent_named, as_read, at_work, own_names, words_for
from fleet.operations.shared.entries import (
    a_name,
    keep,
    must_be_self,
    must_own,
    new_entry,
    page,
    the_entry,
    the_team,
)
from fleet.operations.shared.names import clean_text, some_text
from fleet.ports import Put

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context

MOST_SUBJECT, MOST, MOST_MEMBERS = 200, 100_000, 1000
_RUN = re.compile(r"t-[0-9]+\.[0-9]+$")  # those at work are asked for by their tasks


@dataclass(frozen=True, slots=True)
class MailRow:
    id: str
    sender: str
    to: str
    team: str
    subject: str
    text: str
    at: int
    read_at: int | None


@dataclass(frozen=True, slots=True)
class SendMail(Request[MailRow]):
    """`sender` may be said, but only as who it is."""

    to: str
    text: str
    subject: str = ""
    sender: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True)
class Broadcast(Request[tuple[MailRow, ...]]):
    """To everyone who has been seen in the team and every agent at work, but whoever sends it."""

    text: str
    subject: str = ""
    sender: str = ""
    team: str = ""


@dataclass(frozen=True, slots=True)
class ListMail(Request[tuple[MailRow, ...]]):
    """One's own, or for who leads the team somebody's; newest first."""

    to: str = ""
    unread: bool = False
    team: str = ""
    before: str = ""
    limit: int = 50


@dataclass(frozen=True, slots=True)
class ReadMail(Request[MailRow]):
    """Only whom it is for says that it was read."""

    mail: str


@dataclass(frozen=True, slots=True)
class TakeMail(Request[tuple[MailRow, ...]]):
    """One's own as it was, newest first; all of that has been read then."""

    unread: bool = True
    team: str = ""
    limit: int = 50


def send(context: Context, request: SendMail) -> MailRow:
    must_be_self(context, request.sender)
    team = the_team(context, request.team, Permission.MAIL)
    body, to = _body(context, request), a_name("recipient", request.to)
    entry = new_entry(context, EntryKind.MAIL, team=team, key="", owner=to, body=body)
    agent = agent_named(context.store, team, to)
    text = as_mail(body["sender"], body["subject"], body["text"])
    words = words_for(context, agent, text, MAIL, entry.id) if agent else []
    event = context.event(Kind.MAIL_SENT, "", entry=entry.id, team=team)
    context.commit([Put(entry), *words], event)
    return mail_row(entry)


def _body(context: Context, request: SendMail | Broadcast) -> dict[str, str]:
    return {
        "sender": context.actor.name,
        "subject": clean_text("subject", request.subject.strip(), most=MOST_SUBJECT),
        "text": some_text("mail", request.text, most=MOST),
    }


def broadcast(context: Context, request: Broadcast) -> tuple[MailRow, ...]:
    must_be_self(context, request.sender)
    team, body = the_team(context, request.team, Permission.BROADCAST), _body(context, request)
    members = page(context, EntryKind.MEMBER, team=team, limit=MOST_MEMBERS)
    agents = {t.id: t for t in at_work(context.store, team) if t.id != context.actor.task}
    people = [m.owner for m in members if m.owner != context.actor.name and not _RUN.match(m.owner)]
    others = list(dict.fromkeys([*people, *agents]))
    if not others:
        raise Refused(f"Nobody else has been seen in {team}.", fix="Send it once they are there.")
    made = [
        new_entry(context, EntryKind.MAIL, team=team, key="", owner=name, body=body)
        for name in others
    ]
    text = as_mail(body["sender"], body["subject"], body["text"], to_all=True)
    words = [
        change
        for entry in made
        if entry.owner in agents
        for change in words_for(context, agents[entry.owner], text, MAIL, entry.id)
    ]
    event = context.event(Kind.MAIL_BROADCAST, "", team=team)
    context.commit([*map(Put, made), *words], event)
    return tuple(map(mail_row, made))


def list_mail(context: Context, request: ListMail) -> tuple[MailRow, ...]:
    owner, own = request.to.strip() or context.actor.name, own_names(context)
    if owner not in own:
        must_own(context, owner)
    team = the_team(context, request.team, Permission.MAIL)
    wanted = own if owner == context.actor.name else (owner,)
    found = [row for name in wanted for row in _mail_of(context, request, team, name)]
    found.sort(key=lambda row: int(row.id.rpartition("-")[2]), reverse=True)
    return tuple(found[: request.limit])


def _mail_of(context: Context, request: ListMail, team: str, owner: str) -> list[MailRow]:
    found: list[MailRow] = []
    before = request.before
    while len(found) < request.limit:
        some = page(
            context, EntryKind.MAIL, team=team, owner=owner, limit=request.limit, before=before
        )
        rows = map(mail_row, some)
        found += [row for row in rows if not (request.unread and row.read_at)]
        if len(some) < request.limit:
            break
        before = some[-1].id
    return found[: request.limit]


def read(context: Context, request: ReadMail) -> MailRow:
    entry = the_entry(context, EntryKind.MAIL, request.mail, Permission.MAIL)
    if entry.owner not in own_names(context):
        raise Forbidden(f"That mail is for {entry.owner}.", fix="Leave it to them.")
    if entry.body.get("read_at"):
        return mail_row(entry)
    return mail_row(keep(context, as_read(entry, context.store.now()), Kind.MAIL_READ))


def take(context: Context, request: TakeMail) -> tuple[MailRow, ...]:
    asked = ListMail(unread=request.unread, team=request.team, limit=request.limit)
    found, now = list_mail(context, asked), context.store.now()
    held = (context.store.entry_by_id(row.id) for row in found if not row.read_at)
    if fresh := [as_read(entry, now) for entry in held]:
        events = [context.event(Kind.MAIL_READ, "", entry=e.id, team=e.team) for e in fresh]
        context.commit([Put(entry) for entry in fresh], *events)
    return found


def mail_row(entry: Entry) -> MailRow:
    body = entry.body
    return MailRow(
        id=entry.id,
        sender=body["sender"],
        to=entry.owner,
        team=entry.team,
        subject=body["subject"],
        text=body["text"],
        at=entry.at,
        read_at=body.get("read_at"),
    )


_P = Permission
OPERATIONS = (
    Operation("mail.send", SendMail, _P.MAIL, send, "Send mail to somebody.", idempotent=False),
    Operation(
        "mail.broadcast", Broadcast, _P.BROADCAST, broadcast, "Mail the team.", idempotent=False
    ),
    Operation("mail.list", ListMail, _P.MAIL, list_mail, "List one's mail.", reads=True),
    Operation("mail.read", ReadMail, _P.MAIL, read, "Say that a mail was read."),
    Operation("mail.take", TakeMail, _P.MAIL, take, "List one's mail, and have it read."),
)
