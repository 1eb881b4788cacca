"""What readers are told of an event: encoded once for all who see the same."""

from __future__ import annotations

import struct
from enum import Enum
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fleet.base.outside import moment
from fleet.domain.access import Role
from fleet.domain.addressing import Reader, may_read
from fleet.domain.data import NamedTuple
from fleet.domain.entry import EntryKind
from fleet.domain.errors import NotFound
from fleet.domain.event import Kind
from fleet.domain.message import MessageKind
from fleet.server.http.codec import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fleet.domain.access import Actor
    from fleet.domain.event import Event
    from fleet.domain.message import Message
    from fleet.ports import Store

    FrameOf = Callable[[Event, Store], dict[str, Any]]

# Events that a socket gets only if it subscribed to their topic.
TALK = frozenset(
    {
        *(Kind.MAIL_BROADCAST, Kind.MAIL_SENT, Kind.CHAT_SAID),
        *(Kind.MESSAGE_ANSWERED, Kind.MESSAGE_ASKED, Kind.MESSAGE_POSTED, Kind.MESSAGE_SENT),
    }
)
ENTRIES = frozenset({Kind.MAIL_SENT, Kind.CHAT_SAID})  # in older stores these name an entry
TEAM = "team"  # the topic of everything that is said in the reader's team
NOBODY = Reader(frozenset())
TEXT, CLOSE = 1, 8  # kinds of a socket's frames


class Wrap(Enum):
    """How frames are written to a stream's connection."""

    CHUNKS = "chunks"
    PLAIN = "plain"  # for HTTP/1.0 clients
    FRAMES = "frames"  # a WebSocket

    def __call__(self, frame: bytes) -> bytes:
        if self is Wrap.CHUNKS and frame:
            return b"%x\r\n%b\r\n" % (len(frame), frame)
        return frame


class Content(NamedTuple):
    """The message that an event is about, its fields as clients get them, its chat's members."""

    message: Message | None = None
    said: Mapping[str, Any] = MappingProxyType({})
    members: tuple[str, ...] = ()

    @property
    def topics(self) -> frozenset[str]:
        """The chat or the member it was sent to."""
        message = self.message
        return frozenset({message.chat or message.to} - {""}) if message else frozenset()


NOTHING = Content()


class EventForms:
    """One event, encoded in each format when that is first needed."""

    def __init__(self, event: Event, team: str | None, store: Store, frame_of: FrameOf) -> None:
        self.event, self.team, self._store, self._frame_of = event, team, store, frame_of
        self.number = event.number

    @cached_property
    def sse(self) -> bytes:
        kind = self.event.type.encode()
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (self.number, kind, encode(self._own))

    @cached_property
    def frame(self) -> bytes:
        return framed(encode(self._frame))

    @cached_property
    def full_frame(self) -> bytes:
        if self.content is NOTHING:
            return self.frame
        return framed(encode(self._frame | {"message": dict(self.content.said)}))

    @cached_property
    def topics(self) -> frozenset[str]:
        """The topics whose subscribers get this event; empty: everyone gets it."""
        if self.event.type not in TALK:
            return frozenset()
        data = self.event.data
        named = (TEAM, self.event.task, str(data.get("chat", "")), str(data.get("to", "")))
        return self.content.topics | {name for name in named if name}

    @cached_property
    def content(self) -> Content:
        data = self.event.data
        spoken = data.get("message") or (self.event.type in ENTRIES and data.get("entry"))
        try:
            return _content(self._store, str(spoken)) if spoken else NOTHING
        except NotFound:
            return NOTHING

    @property
    def _own(self) -> dict[str, Any]:
        event = self.event
        return {
            "number": event.number, "type": event.type, "task": event.task, "run": event.run,
            "actor": event.actor, "at": moment(event.at), "data": dict(event.data),
        }  # fmt: skip

    @property
    def _frame(self) -> dict[str, Any]:
        return self._frame_of(self.event, self._store) | {"event": self._own}


def _content(store: Store, message_id: str) -> Content:
    m = store.message(message_id)
    fields = {
        "id": m.id, "kind": m.kind, "task": m.task, "author": m.author, "to": m.to,
        "text": m.text, "at": moment(m.at), "data": dict(m.data),
    }  # fmt: skip
    if m.chat:
        chat = store.entry(EntryKind.CHAT, m.team, m.chat)
        members = tuple(chat.body["participants"] if chat else ())
        return Content(m, fields | {"chat": m.chat}, members)
    if m.kind is MessageKind.MAIL:
        fields["subject"] = m.details.subject
    return Content(m, fields)


class View(NamedTuple):
    """Which events a reader gets, and in which format. Readers with equal views share the bytes.

    `team` None: those of all teams. `reader` decides which messages it may read.
    `topics`: what a socket subscribed to, each with the event number from which it applies; an
    SSE stream gets the events of all topics.
    """

    wrap: Wrap
    team: str | None
    reader: Reader = NOBODY
    topics: frozenset[tuple[str, int]] = frozenset()

    def hears(self, heard: EventForms) -> bool:
        if self.team is not None and heard.team not in {None, self.team}:
            return False
        if self.wrap is not Wrap.FRAMES or not heard.topics:
            return True
        topics = heard.topics if self.may_read(heard) else heard.topics - heard.content.topics
        return any(name in topics and heard.number > after for name, after in self.topics)

    def may_read(self, heard: EventForms) -> bool:
        message, _, members = heard.content
        return message is None or may_read(message, self.reader, members=members)

    def said(self, some: Iterable[EventForms]) -> bytes:
        wanted = (heard for heard in some if self.hears(heard))
        if self.wrap is Wrap.FRAMES:
            return b"".join(map(self.frame, wanted))
        return self.wrap(b"".join(heard.sse for heard in wanted))

    def frame(self, heard: EventForms) -> bytes:
        return heard.full_frame if self.may_read(heard) else heard.frame


def view_of(actor: Actor, wrap: Wrap, reader: Reader = NOBODY) -> View:
    """Return an actor's view. An SSE stream has no `reader`, so it gets no text of messages."""
    return View(wrap, None if actor.role is Role.COORDINATOR else actor.team, reader)


def framed(payload: bytes) -> bytes:
    """A whole WebSocket message in one frame, as a server sends it (RFC 6455, 5.2)."""
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", 0x80 | TEXT, size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", 0x80 | TEXT, 126, size)
    else:
        head = struct.pack("!BBQ", 0x80 | TEXT, 127, size)
    return head + payload


def team_in(event: Event, team_of: Callable[[str], str]) -> str | None:
    """Return the team whose event it is; None: every team's.

    Empty for a task that no longer exists: only coordinators see its events.
    """
    if not event.task:
        team = event.data.get("team")
        return None if team is None else str(team)
    try:
        return team_of(event.task)
    except NotFound:
        return ""
