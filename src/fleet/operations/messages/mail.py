"""Mail: a message to one member of a team, unread until they read it."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Time
from fleet.domain.access import Permission
from fleet.domain.addressing import TO_ALL
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import Forbidden, NotFound, Refused
from fleet.domain.event import Kind
from fleet.domain.limits import Name, Rows, TextLimit
from fleet.domain.message import Details, Message, MessageKind, MessageState, order_of
from fleet.domain.message import read as as_read
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.addresses import address, at_work, is_person, own_names, reader_of
from fleet.operations.messages.deliver import speak, speak_all
from fleet.operations.messages.speech import new_message, the_message
from fleet.operations.shared.entries import (
    Recipient,
    a_name,
    must_be_self,
    must_own,
    page,
    the_team,
)
from fleet.operations.shared.names import the_task
from fleet.ports import MessageQuery, Put

if TYPE_CHECKING:
    from typing import Any

    from fleet.operations.catalogue import Context

MOST_MEMBERS = 1000

MailText = Annotated[str, TextLimit(100_000, some=True, what="mail")]
Subject = Annotated[str, TextLimit(200, what="subject")]
_RUN = re.compile(r"t-[0-9]+\.[0-9]+$")  # a member that is a run: its agent gets mail by its task


@dataclass(frozen=True, slots=True)
class MailRow:
    id: str
    sender: str
    to: str
    team: str
    subject: str
    text: str
    at: Time
    read_at: Time | None


@dataclass(frozen=True, slots=True)
class SendMail(Request[MailRow]):
    """`sender`: the caller's own name, or empty."""

    to: Recipient
    text: MailText
    subject: Subject = ""
    sender: str = ""
    team: Name = ""


@dataclass(frozen=True, slots=True)
class Broadcast(Request[tuple[MailRow, ...]]):
    """Sends it to every member of the team and every agent at work, except the sender."""

    text: MailText
    subject: Subject = ""
    sender: str = ""
    team: Name = ""


@dataclass(frozen=True, slots=True)
class ListMail(Request[tuple[MailRow, ...]]):
    """Newest first. `to`: another member, for a team-lead; empty: the caller."""

    to: Name = ""
    unread: bool = False
    team: Name = ""
    before: str = ""
    limit: Rows = 50


@dataclass(frozen=True, slots=True)
class ReadMail(Request[MailRow]):
    """Only the recipient can mark a mail as read."""

    mail: str


@dataclass(frozen=True, slots=True)
class TakeMail(Request[tuple[MailRow, ...]]):
    """Newest first, as it was before the call; all of it is marked as read."""

    unread: bool = True
    team: Name = ""
    limit: Rows = 50


def send(context: Context, request: SendMail) -> MailRow:
    must_be_self(context, request.sender)
    team = the_team(context, request.team, Permission.MAIL)
    to, agent = address(context.store, team, a_name(request.to))
    mail = _mail(context, request, team=team, to=to)
    event = context.event(Kind.MAIL_SENT, "", message=mail.id, team=team)
    return mail_row(speak(context, mail, [agent] if agent else [], event))


def _mail(context: Context, request: SendMail | Broadcast, **fields: Any) -> Message:
    text, details = request.text.strip(), Details(subject=request.subject.strip())
    return new_message(context, MessageKind.MAIL, text, is_open=True, details=details, **fields)


def broadcast(context: Context, request: Broadcast) -> tuple[MailRow, ...]:
    must_be_self(context, request.sender)
    team = the_team(context, request.team, Permission.BROADCAST)
    members = page(context, EntryKind.MEMBER, team=team, limit=MOST_MEMBERS)
    agents = {t.id: t for t in at_work(context.store, team) if t.id != context.actor.task}
    people = [m.owner for m in members if m.owner != context.actor.name and not _RUN.match(m.owner)]
    others = list(dict.fromkeys([*people, *agents]))
    if not others:
        raise Refused(
            f"No other member has been seen in {team}.", fix="Send it once they are there."
        )
    fields: dict[str, Any] = {"team": team, "data": {TO_ALL: True}}
    mails = [_mail(context, request, to=name, **fields) for name in others]
    audiences = [(mail, [agents[mail.to]] if mail.to in agents else []) for mail in mails]
    event = context.event(Kind.MAIL_BROADCAST, "", team=team)
    return tuple(map(mail_row, speak_all(context, audiences, event)))


def list_mail(context: Context, request: ListMail) -> tuple[MailRow, ...]:
    owner, own = request.to.strip() or context.actor.name, own_names(context.store, context.actor)
    team = the_team(context, request.team, Permission.MAIL)
    if owner not in own:
        must_own(context, owner, "This mail")
    names = own if owner == context.actor.name else _addressees(context, team, owner)
    query = MessageQuery(
        MessageKind.MAIL,
        team=team,
        state=str(MessageState.OPEN) if request.unread else "",
        before=request.before,
        limit=request.limit,
    )
    mails = [m for name in names for m in context.store.find_messages(query._replace(topic=name))]
    mails.sort(key=lambda mail: order_of(mail.id), reverse=True)
    return tuple(map(mail_row, mails[: request.limit]))


def _addressees(context: Context, team: str, name: str) -> tuple[str, ...]:
    """The name and, if it is an agent's, the id of its task, even if the agent has ended."""
    to, agent = address(context.store, team, name)
    if agent is None and to == name and not is_person(context.store, team, name):
        with suppress(NotFound):
            to = the_task(context, name, Permission.READ).id
    return tuple(dict.fromkeys((to, name)))


def read(context: Context, request: ReadMail) -> MailRow:
    reader = reader_of(context.store, context.actor)
    mail = the_message(context, MessageKind.MAIL, request.mail, Permission.MAIL)
    if mail.to not in reader.names:
        raise Forbidden(f"That mail is for {mail.to}.", fix="Only they can mark it as read.")
    if mail.state is MessageState.OPEN:
        (mail,) = _mark_read(context, [mail])
    return mail_row(mail)


def take(context: Context, request: TakeMail) -> tuple[MailRow, ...]:
    listing = ListMail(unread=request.unread, team=request.team, limit=request.limit)
    rows = list_mail(context, listing)
    if fresh := [context.store.message(row.id) for row in rows if not row.read_at]:
        _mark_read(context, fresh)
    return rows


def _mark_read(context: Context, mails: list[Message]) -> list[Message]:
    name, now = context.actor.name, context.store.now()
    mails = [as_read(mail, name, at=now) for mail in mails]
    events = [context.event(Kind.MAIL_READ, "", message=m.id, team=m.team) for m in mails]
    context.commit([Put(mail) for mail in mails], *events)
    return mails


def mail_row(mail: Message) -> MailRow:
    return MailRow(
        id=mail.id,
        sender=mail.author,
        to=mail.to,
        team=mail.team,
        subject=mail.details.subject,
        text=mail.text,
        at=mail.at,
        read_at=mail.receipt.closed_at or None,
    )


_P = Permission
OPERATIONS = (
    Operation("mail.send", SendMail, _P.MAIL, send, "Send mail to a member.", idempotent=False),
    Operation("mail.broadcast", Broadcast, _P.BROADCAST, broadcast, "Send mail to the whole team.",
              idempotent=False),
    Operation("mail.list", ListMail, _P.MAIL, list_mail, "List the caller's mail.", reads=True),
    Operation("mail.read", ReadMail, _P.MAIL, read, "Mark a mail as read."),
    Operation("mail.take", TakeMail, _P.MAIL, take, "List the caller's mail and mark it as read."),
)  # fmt: skip
