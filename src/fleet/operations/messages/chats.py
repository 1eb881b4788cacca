"""Chats between some members of a team, or of the whole team; nobody else can read them.

The chat itself is an entry: it names its members and how far each has read. Its lines are messages.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Json, Time
from fleet.domain.access import GRANTS, Permission
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import Mismatch, NotFound
from fleet.domain.event import Kind
from fleet.domain.limits import Items, Name, Rows, TextLimit
from fleet.domain.message import MessageKind, order_of
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.addresses import address, at_work, is_person, own_names
from fleet.operations.messages.deliver import speak
from fleet.operations.messages.speech import new_message
from fleet.operations.shared.entries import a_name, keep, must_be_self, new_entry, the_team
from fleet.operations.shared.pages import pages
from fleet.operations.shared.untrusted import json_object
from fleet.operations.team.members import ShowMember, show_member, uid_of
from fleet.ports import EntryQuery, MessageQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.domain.entry import Entry
    from fleet.domain.message import Message
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context

MOST_UNREAD, PAGE = 1000, 200

Line = Annotated[str, TextLimit(100_000, some=True, what="message")]
Members = Annotated[
    tuple[Annotated[str, TextLimit(200, some=True, what="member", example="Name a member.")], ...],
    Items(50, example="Use the chat of the team."),
]


@dataclass(frozen=True, slots=True)
class SayingRow:
    """`data` is a JSON object, as text, for programs."""

    id: str
    chat: str
    author: str
    team: str
    text: str
    data: Json
    at: Time


@dataclass(frozen=True, slots=True)
class ChatRow:
    """`participants` is empty for the team's chat. `unread`: messages the caller has not read."""

    id: str
    team: str
    participants: tuple[str, ...]
    unread: int
    last: SayingRow | None
    at: Time


@dataclass(frozen=True, slots=True)
class OpenChat(Request[ChatRow]):
    """`members`: members or agents; empty: the whole team. The same members get the same chat."""

    members: Members = ()
    team: Name = ""


@dataclass(frozen=True, slots=True)
class ListChats(Request[tuple[ChatRow, ...]]):
    """Newest first. `before`: the last chat of the page before."""

    team: Name = ""
    before: str = ""
    limit: Rows = 50


@dataclass(frozen=True, slots=True)
class Say(Request[SayingRow]):
    """`sender`: the caller's own name, or empty."""

    chat: str
    text: Line
    data: Json = "{}"
    sender: str = ""
    team: Name = ""


@dataclass(frozen=True, slots=True)
class ReadChat(Request[tuple[SayingRow, ...]]):
    """Newest first. `before`: the last message of the page before; `after`: only newer messages."""

    chat: str
    before: str = ""
    after: str = ""
    limit: Rows = 50
    team: Name = ""


@dataclass(frozen=True, slots=True)
class MarkChat(Request[ChatRow]):
    """Marks all messages of the chat as read by the caller."""

    chat: str
    reader: str = ""
    team: Name = ""


def chat_id(team: str, participants: tuple[str, ...]) -> str:
    """The id of a chat: a hash of its members, so that the same members always have the same chat."""
    uids = sorted(uid_of(team, name) for name in participants)
    source = ":".join(uids) if uids else f"team:{team}"
    return hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()[:16]


def open_chat(context: Context, request: OpenChat) -> ChatRow:
    team = the_team(context, request.team, Permission.MAIL)
    own = {context.actor.name, uid_of(team, context.actor.name)}
    members = {a_name(name) for name in request.members} - own
    others = {_member(context, team, name) for name in members} - own
    if request.members and not others:
        raise Mismatch("A chat needs two different members.", fix="Name another member.")
    names = tuple(sorted(others | {context.actor.name})) if others else ()
    key = chat_id(team, names)
    chat = context.store.entry(EntryKind.CHAT, team, key)
    if chat is None:
        body = {"participants": list(names), "read": {}}
        chat = new_entry(context, EntryKind.CHAT, team=team, key=key, owner="", body=body)
        chat = keep(context, chat, Kind.CHAT_OPENED)
    return _row(context, chat)


def _member(context: Context, team: str, name: str) -> str:
    """A person by name or uid; an agent by any name that reaches it, as its task's id."""
    to, agent = address(context.store, team, name)
    if agent or is_person(context.store, team, name):
        return to
    return show_member(context, ShowMember(name, team)).name


def list_chats(context: Context, request: ListChats) -> tuple[ChatRow, ...]:
    team, limit = the_team(context, request.team, Permission.MAIL), request.limit
    before = ""
    if request.before:
        before = _the_chat(context, request.before, team).id
    query = EntryQuery(EntryKind.CHAT, team, before=before, limit=PAGE)
    chats = (chat for page in pages(context.store.entries, query) for chat in page)
    own = islice((chat for chat in chats if _is_in(context, chat)), limit)
    return tuple(_row(context, chat) for chat in own)


def say(context: Context, request: Say) -> SayingRow:
    must_be_self(context, request.sender)
    chat = _the_chat(context, request.chat, request.team)
    text, data = request.text.strip(), json_object("data", request.data, example='{"task": "t-3"}')
    line = new_message(context, MessageKind.CHAT, text, team=chat.team, chat=chat.key, data=data)
    agents = _agents(context, chat)
    event = context.event(Kind.CHAT_SAID, "", message=line.id, team=chat.team, chat=chat.key)
    return _saying(speak(context, line, agents, event))


def _agents(context: Context, chat: Entry) -> list[Task]:
    """The agents into whose conversations a line of this chat is copied.

    In the chat of the whole team, that is done only for a sender who may broadcast; agents find other
    lines when they read the chat.
    """
    store, names = context.store, chat.body["participants"]
    if names:
        agents = (address(store, chat.team, name).agent for name in names)
        return list({agent.id: agent for agent in agents if agent}.values())
    leads = Permission.BROADCAST in GRANTS[context.actor.role]
    return at_work(store, chat.team) if leads else []


def read_chat(context: Context, request: ReadChat) -> tuple[SayingRow, ...]:
    chat, limit = _the_chat(context, request.chat, request.team), request.limit
    rows = []
    for line in _lines(context, chat, request.before):
        if request.after and order_of(line.id) <= order_of(request.after):
            break
        rows.append(_saying(line))
        if len(rows) == (MOST_UNREAD if request.after else limit):
            break
    return tuple(rows[-limit:])  # with `after`, the oldest of the new lines


def mark(context: Context, request: MarkChat) -> ChatRow:
    must_be_self(context, request.reader)
    chat = _the_chat(context, request.chat, request.team)
    newest = next((line.id for line in _lines(context, chat)), "")
    name = context.actor.name
    if newest and chat.body["read"].get(name) != newest:
        body = {**chat.body, "read": {**chat.body["read"], name: newest}}
        chat = keep(context, replace(chat, body=body), Kind.CHAT_READ)
    return _row(context, chat)


def _the_chat(context: Context, chat: str, team: str) -> Entry:
    """The chat of this id. Raise `NotFound` unless it exists and the caller is a member of it."""
    checked_team = the_team(context, team, Permission.MAIL)
    entry = context.store.entry(EntryKind.CHAT, checked_team, chat.strip())
    if entry is None or not _is_in(context, entry):
        raise NotFound(f"You have no chat '{chat[:60]}'.", fix="`fleet chat list` lists yours.")
    return entry


def _is_in(context: Context, chat: Entry) -> bool:
    """Whether the caller is a member; an agent is also in the chats of its task's earlier runs."""
    names = chat.body["participants"]
    return not names or not set(names).isdisjoint(own_names(context.store, context.actor))


def _lines(context: Context, chat: Entry, before: str = "") -> Iterator[Message]:
    """The lines of a chat, newest first."""
    query = MessageQuery(
        MessageKind.CHAT, team=chat.team, topic=chat.key, before=before, limit=PAGE
    )
    return (line for page in pages(context.store.find_messages, query) for line in page)


def _row(context: Context, chat: Entry) -> ChatRow:
    name = context.actor.name
    seen, unread, last = order_of(chat.body["read"].get(name, "")), 0, None
    for line in _lines(context, chat):
        last = last or line
        if order_of(line.id) <= seen or unread == MOST_UNREAD:
            break
        unread += line.author != name and name not in line.receipt.readers
    return ChatRow(
        chat.key, chat.team, tuple(chat.body["participants"]), unread,
        _saying(last) if last else None, chat.at,
    )  # fmt: skip


def _saying(line: Message) -> SayingRow:
    data = json.dumps(line.data, ensure_ascii=False, separators=(",", ":"))
    return SayingRow(line.id, line.chat, line.author, line.team, line.text, data, line.at)


_P = Permission.MAIL
OPERATIONS = (
    Operation("chat.open", OpenChat, _P, open_chat, "Open a chat."),
    Operation("chat.list", ListChats, _P, list_chats, "List the caller's chats.", reads=True),
    Operation("chat.say", Say, _P, say, "Send a message to a chat.", idempotent=False),
    Operation("chat.read", ReadChat, _P, read_chat, "Read a chat.", reads=True),
    Operation("chat.mark_read", MarkChat, _P, mark, "Mark a chat as read."),
)
