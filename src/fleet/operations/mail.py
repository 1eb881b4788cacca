"""Mail: words to one actor of a team, kept until they read them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fleet.domain.access import Permission
from fleet.domain.entry import EntryKind
from fleet.domain.errors import Forbidden, Refused
from fleet.operations.catalogue import Operation, Request
from fleet.operations.entries import (
    a_name,
    keep,
    must_be_self,
    must_own,
    new_entry,
    page,
    the_entry,
    the_team,
)
from fleet.operations.naming import clean_text, some_text
from fleet.ports import Put

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context

MOST_SUBJECT, MOST, MOST_MEMBERS = 200, 100_000, 1000


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
    """To everyone who has been seen in the team, but whoever sends it."""

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


def send(context: Context, request: SendMail) -> MailRow:
    must_be_self(context, request.sender)
    team = the_team(context, request.team, Permission.MAIL)
    body, to = _body(context, request), a_name("recipient", request.to)
    entry = new_entry(context, EntryKind.MAIL, team=team, key="", owner=to, body=body)
    return mail_row(keep(context, entry, "mail.sent"))


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
    others = [m.owner for m in members if m.owner != context.actor.name]
    if not others:
        raise Refused(f"Nobody else has been seen in {team}.", fix="Send it once they are there.")
    made = [
        new_entry(context, EntryKind.MAIL, team=team, key="", owner=name, body=body)
        for name in others
    ]
    event = context.event("mail.broadcast", "", team=team)
    context.commit([Put(entry) for entry in made], event)
    return tuple(map(mail_row, made))


def list_mail(context: Context, request: ListMail) -> tuple[MailRow, ...]:
    owner = request.to.strip() or context.actor.name
    must_own(context, owner)
    team = the_team(context, request.team, Permission.MAIL)
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
    return tuple(found[: request.limit])


def read(context: Context, request: ReadMail) -> MailRow:
    entry = the_entry(context, EntryKind.MAIL, request.mail, Permission.MAIL)
    if entry.owner != context.actor.name:
        raise Forbidden(f"That mail is for {entry.owner}.", fix="Leave it to them.")
    if entry.body.get("read_at"):
        return mail_row(entry)
    body = {**entry.body, "read_at": context.store.now()}
    return mail_row(keep(context, replace(entry, body=body), "mail.read"))


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
)
