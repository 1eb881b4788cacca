"""More of the paths of claude-fleet's clients: users, chats, worktrees."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from fleet.domain.errors import Forbidden, Mismatch
from fleet.domain.limits import Name
from fleet.operations.messages.chats import Line, ListChats, MarkChat, OpenChat, ReadChat, Say
from fleet.operations.team.members import ShowMember, uid_of
from fleet.operations.worktrees import (
    CommitMessage,
    CommitWorktree,
    GitName,
    MergeWorktree,
    ProposeWorktree,
    PullBody,
    PullTitle,
    PushWorktree,
    ShowWorktree,
)
from fleet.server.claude_fleet import shapes
from fleet.server.claude_fleet.bodies import PageSize
from fleet.server.claude_fleet.routes import Body, OtherPath, must_be_uid

if TYPE_CHECKING:
    from fleet.operations.messages.chats import ChatRow, SayingRow
    from fleet.ports import CommitRow, MergeRow, PushRow, WorktreeRow
    from fleet.server.claude_fleet.routes import SeedCall


class ChatBody(Body):
    """A chat of two members, one of them the caller, or of a whole team."""

    uid1: str = ""
    uid2: str = ""
    team_name: Name = ""


class ChatsAsked(Body):
    before: str = ""
    limit: PageSize = 50


class MessagesAsked(Body):
    before: str = ""
    after: str = ""
    limit: PageSize = 50


class SayBody(Body):
    text: Line
    from_: str = msgspec.field(default="", name="from")
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


class ChatReadBody(Body):
    uid: str = ""


class CommitBody(Body):
    message: CommitMessage


class MergeBody(Body):
    onto: GitName = ""


class ProposeBody(Body):
    title: PullTitle
    body: PullBody = ""
    base: GitName = ""


def _open(call: SeedCall) -> OpenChat:
    body = call.as_(ChatBody)
    if body.team_name and not (body.uid1 or body.uid2):
        return OpenChat(team=body.team_name)
    own_uid = uid_of(call.actor.team, call.actor.name)
    if own_uid not in {body.uid1, body.uid2}:
        raise Forbidden(
            f"Neither uid1 nor uid2 is {call.actor.name}.",
            fix="Name yourself as one of them.",
            code="forged",
        )
    other = body.uid2 if body.uid1 == own_uid else body.uid1
    if other in {"", own_uid}:
        raise Mismatch("A chat needs two different members.", fix="Name two: uid1 and uid2.")
    return OpenChat((other,))


def _chats(call: SeedCall) -> ListChats:
    must_be_uid(call, call.path["uid"])
    query = call.query_as(ChatsAsked)
    return ListChats(before=query.before, limit=query.limit)


def _messages(call: SeedCall) -> ReadChat:
    query = call.query_as(MessagesAsked)
    return ReadChat(call.path["chat"], query.before, query.after, query.limit)


def _say(call: SeedCall) -> Say:
    body = call.as_(SayBody)
    must_be_uid(call, body.from_)
    return Say(call.path["chat"], body.text, json.dumps(body.metadata))


def _mark(call: SeedCall) -> MarkChat:
    must_be_uid(call, call.as_(ChatReadBody).uid)
    return MarkChat(call.path["chat"])


def _propose(call: SeedCall) -> ProposeWorktree:
    body = call.as_(ProposeBody)
    return ProposeWorktree(body.title, body.body, body.base, call.path["handle"])


def _saying(row: SayingRow) -> dict[str, Any]:
    return {
        "id": row.id, "chatId": row.chat, "fromHandle": row.author,
        "fromUid": uid_of(row.team, row.author), "text": row.text,
        "timestamp": shapes.iso(row.at), "status": "pending", "metadata": json.loads(row.data),
    }  # fmt: skip


def _chat(row: ChatRow) -> dict[str, Any]:
    return {
        "id": row.id, "participants": [uid_of(row.team, name) for name in row.participants],
        "isTeamChat": not row.participants, "teamName": row.team, "unread": row.unread,
        "lastMessage": _saying(row.last) if row.last else None,
        "createdAt": shapes.iso(row.at), "updatedAt": shapes.iso(row.last.at if row.last else row.at),
    }  # fmt: skip


def _standing(row: WorktreeRow, call: SeedCall) -> dict[str, Any]:
    return {
        "handle": call.path["handle"], "branch": row.branch, "path": row.path, "commit": row.head,
        "ahead": row.ahead, "behind": row.behind, "unpushed": row.unpushed,
        "hasChanges": row.changes > 0, "changes": row.changes,
        "files": [{"path": file.path, "change": file.change} for file in row.files],
        "inProgress": list(row.in_progress),
    }  # fmt: skip


def _committed(row: CommitRow, call: SeedCall) -> dict[str, Any]:
    return {"success": True, "commitHash": row.commit, "handle": call.path["handle"]}


def _pushed(row: PushRow, call: SeedCall) -> dict[str, Any]:
    return {"success": True, "handle": call.path["handle"], "branch": row.branch}


def _proposed(row: PushRow, call: SeedCall) -> dict[str, Any]:
    return {"success": True, "prUrl": row.url, "handle": call.path["handle"]}


def _merged(row: MergeRow, call: SeedCall) -> dict[str, Any]:
    handle = call.path["handle"]
    return {"success": True, "commitHash": row.commit, "onto": row.onto, "handle": handle}


_P = OtherPath
_TREE = "/orchestrate/worktree/{handle:path}"
TALK: tuple[OtherPath, ...] = (
    _P("GET", "/users/{uid}", lambda s: ShowMember(s.path["uid"]), lambda r, _: shapes.member(r)),
    _P("GET", "/users/{uid}/chats", _chats, lambda rows, _: [_chat(row) for row in rows]),
    _P("POST", "/chats", _open, lambda row, _: {"chatId": row.id}),
    _P(
        "GET",
        "/chats/{chat}/messages",
        _messages,
        lambda rows, _: [_saying(row) for row in reversed(rows)],
    ),
    _P("POST", "/chats/{chat}/messages", _say, lambda row, _: _saying(row)),
    _P("POST", "/chats/{chat}/read", _mark, lambda _row, _: {"success": True}),
    _P("GET", f"{_TREE}/status", lambda s: ShowWorktree(s.path["handle"]), _standing),
    _P(
        "POST",
        f"{_TREE}/commit",
        lambda s: CommitWorktree(s.as_(CommitBody).message, s.path["handle"]),
        _committed,
    ),
    _P("POST", f"{_TREE}/push", lambda s: PushWorktree(s.path["handle"]), _pushed),
    _P(
        "POST",
        f"{_TREE}/merge",
        lambda s: MergeWorktree(s.path["handle"], s.as_(MergeBody).onto),
        _merged,
    ),
    _P("POST", f"{_TREE}/pr", _propose, _proposed),
)
