"""The board of a task: posts by the agents and people who work on it, to all of them or to one."""

from __future__ import annotations

import json
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from fleet.base.outside import Json, Time
from fleet.domain.access import Permission, allow
from fleet.domain.addressing import may_read
from fleet.domain.data import dataclass
from fleet.domain.errors import NotFound, Refused
from fleet.domain.event import Kind
from fleet.domain.limits import MOST_SECONDS, Items, Name, OneOf, Rows, Whole
from fleet.domain.message import MessageKind, MessageState, close, order_of
from fleet.domain.message import read as as_read
from fleet.domain.task import is_ended_swarm
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.addresses import address, readable_on_task, reader_of
from fleet.operations.messages.deliver import hearers, speak
from fleet.operations.messages.speech import new_message
from fleet.operations.shared.entries import must_be_self
from fleet.operations.shared.names import the_task
from fleet.operations.shared.pages import pages
from fleet.operations.shared.untrusted import json_object
from fleet.ports import MessageQuery, Put

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.domain.message import Message
    from fleet.operations.catalogue import Context

TYPES = ("request", "response", "status", "directive", "checkpoint")
PRIORITIES = ("low", "normal", "high", "critical")
MOST_AT_ONCE = 1000
MOST_SEARCHED = 10_000  # posts that are searched for those that match
SECOND = 1_000_000
POST_IDS = "A board's posts have ids: m-12."

PostType = Annotated[str, OneOf(TYPES, "type of post")]
PostPriority = Annotated[str, OneOf(PRIORITIES, "priority")]
SomePosts = Annotated[tuple[str, ...], Items(1000, 1, example=POST_IDS)]
AnyType = Annotated[str, OneOf(("", *TYPES), "type of post")]
AnyPriority = Annotated[str, OneOf(("", *PRIORITIES), "priority")]


@dataclass(frozen=True, slots=True)
class PostRow:
    """`payload` is a JSON object, as text."""

    id: str
    task: str
    author: str
    type: str
    to: str
    priority: str
    payload: Json
    readers: tuple[str, ...]
    at: Time
    archived_at: Time | None


@dataclass(frozen=True, slots=True)
class Post(Request[PostRow]):
    """`to`: only that member, the author and the team-lead can read it.

    `sender`: the caller's own name, or empty.
    """

    task: str
    payload: Json
    type: PostType = "status"
    to: Name = ""
    priority: PostPriority = "normal"
    sender: str = ""


@dataclass(frozen=True, slots=True)
class ReadBoard(Request[tuple[PostRow, ...]]):
    """Newest first. `unread`: only posts that the caller has not read.

    By `priority` and `unread` the newest 10,000 are searched. `before`: the last post of the page before.
    """

    task: str
    type: AnyType = ""
    priority: AnyPriority = ""
    unread: bool = False
    reader: str = ""
    before: str = ""
    limit: Rows = 100


@dataclass(frozen=True, slots=True)
class MarkRead(Request[tuple[PostRow, ...]]):
    """Marks the posts as read by the caller."""

    posts: SomePosts
    reader: str = ""


@dataclass(frozen=True, slots=True)
class ArchivePosts(Request[tuple[PostRow, ...]]):
    """Archives these `posts`, or those of a `task` that are older than `older_than` seconds."""

    posts: Annotated[tuple[str, ...], Items(1000, example=POST_IDS)] = ()
    task: str = ""
    older_than: Annotated[int, Whole(0, MOST_SECONDS, example="Give seconds, 0 or more.")] = 0


def post(context: Context, request: Post) -> PostRow:
    must_be_self(context, request.sender)
    task = the_task(context, request.task, Permission.BOARD)
    if is_ended_swarm(task) and task.join is not None:
        raise Refused(
            f"{task.id} was ended, so its board is closed.",
            fix="Post to another; `fleet swarms` lists them.",
            code="ended",
        )
    data = {
        "type": request.type,
        "priority": request.priority,
        "payload": json_object("payload", request.payload, example='{"text": "Done."}'),
    }
    to = request.to.strip()
    if to:
        to, agent = address(context.store, task.team, to)
        agents = [agent] if agent else []
    else:
        agents = hearers(context.store, task, by=context.actor.task)
    message = new_message(context, MessageKind.POST, "", task=task.id, to=to, data=data)
    event = context.event(Kind.BOARD_POSTED, task.id, message=message.id)
    return post_row(speak(context, message, agents, event))


def read(context: Context, request: ReadBoard) -> tuple[PostRow, ...]:
    must_be_self(context, request.reader)
    limit = request.limit
    task = the_task(context, request.task, Permission.READ)
    rows, reader = [], reader_of(context.store, context.actor)
    query = _on_board(task.id)._replace(
        type=request.type, before=request.before, limit=min(limit, 200)
    )
    for message in islice(_posts(context, query), MOST_SEARCHED):
        if may_read(message, reader) and _is_wanted(context, message, request):
            rows.append(post_row(message))
            if len(rows) == limit:
                break
    return tuple(rows)


def _on_board(task: str) -> MessageQuery:
    return MessageQuery(MessageKind.POST, task, state=str(MessageState.CLOSED), limit=200)


def _posts(context: Context, query: MessageQuery) -> Iterator[Message]:
    """Newest first."""
    return (post for page in pages(context.store.find_messages, query) for post in page)


def _is_wanted(context: Context, message: Message, request: ReadBoard) -> bool:
    name = context.actor.name
    return (
        request.type in {"", message.data["type"]}
        and request.priority in {"", message.data["priority"]}
        and not (request.unread and name in message.receipt.readers)
    )


def mark_read(context: Context, request: MarkRead) -> tuple[PostRow, ...]:
    must_be_self(context, request.reader)
    name = context.actor.name
    posts = [_the_post(context, i, Permission.BOARD) for i in dict.fromkeys(request.posts)]
    now = context.store.now()
    fresh = [as_read(m, name, at=now) for m in posts if name not in m.receipt.readers]
    if fresh:
        events = [context.event(Kind.BOARD_READ, m.task, message=m.id) for m in fresh]
        context.commit([Put(m) for m in fresh], *events)
    return tuple(post_row(m) for m in (*fresh, *(m for m in posts if name in m.receipt.readers)))


def _the_post(context: Context, name: str, permission: Permission) -> Message:
    message = readable_on_task(context, name)
    if message is None or message.kind is not MessageKind.POST:
        raise NotFound(
            f"There is no post '{name[:60]}'.", fix="`fleet blackboard SWARM` lists the posts."
        )
    allow(context.actor, permission)
    return message


def archive(context: Context, request: ArchivePosts) -> tuple[PostRow, ...]:
    now = context.store.now()
    posts = [m for m in _to_archive(context, request, now) if m.state is not MessageState.ARCHIVED]
    archived = [close(m, MessageState.ARCHIVED, at=now) for m in posts]
    if archived:
        events = [context.event(Kind.BOARD_ARCHIVED, m.task, message=m.id) for m in archived]
        context.commit([Put(m) for m in archived], *events)
    return tuple(map(post_row, archived))


def _to_archive(context: Context, request: ArchivePosts, now: int) -> list[Message]:
    if request.posts:
        return [_the_post(context, i, Permission.ASSIGN) for i in dict.fromkeys(request.posts)]
    task = the_task(context, request.task, Permission.ASSIGN)
    newest = now - request.older_than * SECOND
    query = _on_board(task.id)
    query = query._replace(before=_after_the_old(context, query, newest))
    return list(islice((m for m in _posts(context, query) if m.at <= newest), MOST_AT_ONCE))


def _after_the_old(context: Context, query: MessageQuery, newest: int) -> str:
    """The id before which all posts are at most as new as `newest`; empty when all posts are.

    It is found by bisection, since many posts may be newer: their ids are in the order of their times.
    """

    def newer(before: str) -> Message | None:
        posts = context.store.find_messages(query._replace(before=before, limit=1))
        return next((post for post in posts if post.at > newest), None)

    last = newer("")
    if last is None:
        return ""
    bottom, top = 0, order_of(last.id)
    while bottom < top:
        middle = (bottom + top + 1) // 2
        if last := newer(f"m-{middle}"):
            top = order_of(last.id)
        else:
            bottom = middle
    return f"m-{bottom}"


def post_row(message: Message) -> PostRow:
    m, data = message, message.data
    payload = json.dumps(data["payload"], ensure_ascii=False, separators=(",", ":"))
    archived_at = m.receipt.closed_at if m.state is MessageState.ARCHIVED else None
    return PostRow(
        m.id,
        m.task,
        m.author,
        data["type"],
        m.to,
        data["priority"],
        payload,
        m.receipt.readers,
        m.at,
        archived_at,
    )


_P = Permission
OPERATIONS = (
    Operation("board.post", Post, _P.BOARD, post, "Post to a task's board.", idempotent=False,
              shown_by="message.read"),
    Operation("board.read", ReadBoard, _P.READ, read, "Read a task's board."),
    Operation("board.mark_read", MarkRead, _P.BOARD, mark_read, "Mark posts as read."),
    Operation("board.archive", ArchivePosts, _P.ASSIGN, archive, "Archive posts of a board."),
)  # fmt: skip
