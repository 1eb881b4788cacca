"""The paths and bodies of claude-fleet's clients, each as an operation of ours. Data, no rules."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from fleet.domain.causes import KINDS
from fleet.domain.errors import Refused
from fleet.domain.fleet import RUN_ROLES
from fleet.domain.run import DoneItem, Summary
from fleet.domain.task import PRIORITIES, Spec
from fleet.operations.compat.mark import MarkTask
from fleet.operations.compat.team_tasks import ListTeamTasks
from fleet.operations.messages.ask_answer_send import SendWords
from fleet.operations.messages.boards import ArchivePosts, MarkRead, Post, ReadBoard
from fleet.operations.messages.mail import Broadcast, ListMail, ReadMail, SendMail
from fleet.operations.tasks.at_work import ListAgents
from fleet.operations.tasks.change import AddTask, CancelTask
from fleet.operations.tasks.list import ListTasks
from fleet.operations.tasks.observe import LookAtAgents
from fleet.operations.tasks.show import ShowTask
from fleet.operations.tasks.spawn import SpawnAgent
from fleet.operations.tasks.transcript import ReadTranscript
from fleet.operations.team.checkpoints import (
    AcceptCheckpoint,
    LatestCheckpoint,
    ListCheckpoints,
    LoadCheckpoint,
    RejectCheckpoint,
    SaveCheckpoint,
)
from fleet.operations.team.members import ListMembers, uid_of
from fleet.operations.team.memory import ListMemory, Recall, SearchMemory, StoreMemory
from fleet.operations.team.swarms import CreateSwarm, KillSwarm, ListSwarms, ShowSwarm
from fleet.server.claude_fleet import shapes
from fleet.server.claude_fleet.bodies import (
    ArchiveBody,
    BoardAsked,
    BroadcastBody,
    CheckpointBody,
    CheckpointsAsked,
    KillBody,
    MailBody,
    MemoryBody,
    OldBody,
    PageAsked,
    PostBody,
    QueueBody,
    ReadBody,
    RejectBody,
    SearchBody,
    SpawnBody,
    StatusBody,
    SwarmBody,
    SwarmsAsked,
    TaskBody,
    WordsBody,
)
from fleet.server.claude_fleet.paths_talk import TALK
from fleet.server.claude_fleet.routes import OtherPath, message_id, must_be_uid

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.server.claude_fleet.routes import SeedCall

MOST_OUTPUT = 1 << 24


def _add_task(call: SeedCall) -> AddTask:
    """Queue a task for a run or, when `toHandle` names a member, assign it to them by hand."""
    body = call.as_(TaskBody)
    must_be_uid(call, body.from_uid)
    return AddTask(
        body.subject,
        body.description,
        call.directory,
        Spec(assignee=body.to_handle),
        body.blocked_by,
        team=body.team_name,
    )


def _spawn(call: SeedCall) -> SpawnAgent:
    body = call.as_(SpawnBody)
    is_role = body.role in RUN_ROLES or body.role in KINDS
    return SpawnAgent(
        body.handle,
        body.initial_prompt if body.initial_prompt.strip() else body.handle,
        body.team_name,
        body.working_dir or call.directory,
        model=body.model,
        swarm=body.swarm_id,
        session=body.session_id,
        depth=body.depth_level,
        terminal=body.spawn_mode == "tmux",
        role=body.role if is_role else "",
        kind="" if is_role else body.role,
    )


def _enqueue(call: SeedCall) -> SpawnAgent:
    body = call.as_(QueueBody)
    return SpawnAgent(
        "",
        body.task,
        body.team_name,
        call.directory,
        swarm=body.swarm_id,
        depth=body.depth_level,
        priority=PRIORITIES.index(body.priority),
        after=body.depends_on,
        sender=body.requester_handle,
        kind=body.target_agent_type,
    )


def _post(call: SeedCall) -> Post:
    body = call.as_(PostBody)
    return Post(
        body.swarm_id,
        json.dumps(body.payload),
        body.message_type,
        body.target_handle,
        body.priority,
        body.sender_handle,
    )


def _board(call: SeedCall) -> ReadBoard:
    query = call.query_as(BoardAsked)
    return ReadBoard(
        call.path["swarm"],
        query.message_type,
        query.priority,
        query.unread_only,
        query.reader_handle,
        query.before,
        query.limit,
    )


def _mark_read(call: SeedCall) -> MarkRead:
    body = call.as_(ReadBody)
    return MarkRead(body.message_ids, body.reader_handle)


def _archive_old(call: SeedCall) -> ArchivePosts:
    body = call.as_(OldBody)
    seconds = -(-body.max_age_ms // 1000) or body.max_age_hours * 3600
    return ArchivePosts(task=call.path["swarm"], older_than=seconds)


def _save(call: SeedCall) -> SaveCheckpoint:
    body = call.as_(CheckpointBody)
    done = tuple(DoneItem(item.task, item.files) for item in body.done_this_session)
    summary = Summary(
        body.goal, body.now, body.test, done, body.blockers, body.questions, body.next,
        body.worked, body.failed, body.files,
    )  # fmt: skip
    return SaveCheckpoint(summary, body.to_handle, body.from_handle)


def _checkpoints(call: SeedCall) -> ListCheckpoints:
    query = call.query_as(CheckpointsAsked)
    limit = query.limit
    return ListCheckpoints(call.path["handle"], query.status, before=query.before, limit=limit)


def _mail(call: SeedCall) -> SendMail:
    body = call.as_(MailBody)
    return SendMail(body.to, body.body, body.subject, body.from_)


def _mails(call: SeedCall, *, unread: bool) -> ListMail:
    query = call.query_as(PageAsked)
    limit = query.limit
    return ListMail(call.path["handle"], unread, before=query.before, limit=limit)


def _broadcast(call: SeedCall) -> Broadcast:
    body = call.as_(BroadcastBody)
    own_names = {call.actor.name, uid_of(call.actor.team, call.actor.name)}
    sender = "" if body.from_ in own_names else body.from_
    text = body.message or body.text
    if text is None:
        raise Refused("There is no message.", fix='Send {"message": "…"}.', code="no_message")
    return Broadcast(text, sender=sender, team=call.path["team"])


def _swarm(call: SeedCall) -> CreateSwarm:
    body = call.as_(SwarmBody)
    return CreateSwarm(body.name, body.max_agents, body.description, project=call.directory)


def _swarms(call: SeedCall) -> ListSwarms:
    query = call.query_as(SwarmsAsked)
    return ListSwarms(before=query.before, limit=query.limit)


def _agents_if_asked(call: SeedCall) -> ListAgents | None:
    return ListAgents() if call.query_as(SwarmsAsked).include_agents else None


def _kill(call: SeedCall) -> KillSwarm:
    call.as_(KillBody)
    return KillSwarm(call.path["id"])


def _reject(call: SeedCall) -> RejectCheckpoint:
    return RejectCheckpoint(message_id(call), call.as_(RejectBody).reason)


def _members(call: SeedCall) -> ListMembers:
    query = call.query_as(PageAsked)
    return ListMembers(call.path["team"], query.before, query.limit)


def _team_tasks(call: SeedCall) -> ListTeamTasks:
    query = call.query_as(PageAsked)
    return ListTeamTasks(call.path["team"], before=query.before, limit=query.limit)


def _waiting(call: SeedCall) -> ListTasks:
    query = call.query_as(PageAsked)
    statuses = ("ready", "waiting", "postponed", "starting")
    return ListTasks(statuses=statuses, before=query.before, limit=query.limit)


def _remember(call: SeedCall) -> StoreMemory:
    body = call.as_(MemoryBody)
    return StoreMemory(body.key, body.value, body.memory_type, body.tags, body.agent_id)


def _search(call: SeedCall) -> SearchMemory:
    body = call.as_(SearchBody)
    return SearchMemory(body.query, body.agent_id, body.memory_type, limit=body.limit)


def _memories(call: SeedCall) -> ListMemory:
    query = call.query_as(PageAsked)
    return ListMemory(call.path["agent"], before=query.before, limit=query.limit)


def _one(show: Callable[[Any], Any]) -> Callable[[Any, SeedCall], Any]:
    return lambda reply, _call: show(reply)


def _many(show: Callable[[Any], Any]) -> Callable[[Any, SeedCall], Any]:
    return lambda reply, _call: [show(row) for row in reply]


def _counted(name: str) -> Callable[[Any, SeedCall], Any]:
    """Reply with the number of rows, as `count` and under `name`."""
    return lambda reply, _call: {"success": True, "count": len(reply), name: len(reply)}


def _sent(reply: Any, _call: SeedCall) -> Any:
    """Reply with the number of mails (one for each member) and the id of the first."""
    return {"success": True, "count": len(reply), "id": reply[0].id}


def _done(reply: Any, call: SeedCall) -> Any:
    return {"success": True, "handle": call.path.get("handle", reply.id), "id": reply.id}


def _queued_words(reply: Any, call: SeedCall) -> Any:
    """Reply with the message's status and, if the agent asks for permission, what it waits for."""
    asks = next((sight.asks for sight in call.beside if sight.asks), "")
    why = f"{reply.task} asks a person for permission first: {asks}" if asks else None
    return {**_done(reply, call), "status": reply.status, "waitsFor": why}


def _named(name: str, show: Callable[[Any], Any]) -> Callable[[Any, SeedCall], Any]:
    return lambda reply, _call: {name: [show(row) for row in reply]}


def _settled(show: Callable[[Any], Any]) -> Callable[[Any, SeedCall], Any]:
    return lambda reply, _call: {"success": True, **show(reply)}


def _killed(reply: Any, _call: SeedCall) -> Any:
    return {"success": True, "swarmId": reply.id, **shapes.swarm(reply)}


def _queue(reply: Any, _call: SeedCall) -> Any:
    return {"queue": [shapes.queued(row) for row in reply], "pending": len(reply)}


_P = OtherPath
PATHS: tuple[OtherPath, ...] = (
    _P("GET", "/teams/{team}/agents", _members, _many(shapes.member)),
    _P("GET", "/teams/{team}/tasks", _team_tasks, _many(shapes.listed_task)),
    _P("POST", "/teams/{team}/broadcast", _broadcast, _sent),
    _P("POST", "/tasks", _add_task, shapes.added),
    _P("GET", "/tasks/{id}", lambda s: ShowTask(s.path["id"], brief=True), _one(shapes.task)),
    _P(
        "PATCH",
        "/tasks/{id}",
        lambda s: MarkTask(s.path["id"], s.as_(StatusBody).status),
        _one(shapes.task),
        lambda row: ShowTask(row.id),
    ),
    _P("POST", "/orchestrate/spawn", _spawn, shapes.spawned),
    _P("POST", "/orchestrate/dismiss/{handle:path}", lambda s: CancelTask(s.path["handle"]), _done),
    _P(
        "POST",
        "/orchestrate/send/{handle:path}",
        lambda s: SendWords(s.path["handle"], s.as_(WordsBody).message),
        _queued_words,
        beside=lambda s: LookAtAgents((s.path["handle"],)),
    ),
    _P(
        "GET",
        "/orchestrate/workers",
        lambda _: ListAgents(),
        shapes.workers,
        beside=lambda _: LookAtAgents(),
    ),
    _P(
        "GET",
        "/orchestrate/output/{handle:path}",
        lambda s: ReadTranscript(s.path["handle"], limit=MOST_OUTPUT),
        shapes.output,
    ),
    _P("POST", "/mail", _mail, _one(shapes.mail)),
    _P("GET", "/mail/{handle}", partial(_mails, unread=False), _many(shapes.mail)),
    _P("GET", "/mail/{handle}/unread", partial(_mails, unread=True), _many(shapes.mail)),
    _P("POST", "/mail/{id}/read", lambda s: ReadMail(message_id(s)), _settled(shapes.mail)),
    _P("POST", "/blackboard", _post, _one(shapes.post)),
    _P("POST", "/blackboard/mark-read", _mark_read, _counted("marked")),
    _P(
        "POST",
        "/blackboard/archive",
        lambda s: ArchivePosts(s.as_(ArchiveBody).message_ids),
        _counted("archived"),
    ),
    _P("GET", "/blackboard/{swarm}", _board, _one(shapes.board)),
    _P("POST", "/blackboard/{swarm}/archive-old", _archive_old, _counted("archived")),
    _P("POST", "/spawn-queue", _enqueue, _one(shapes.queued)),
    _P("GET", "/spawn-queue/status", _waiting, _queue),
    _P(
        "GET",
        "/spawn-queue/{id}",
        lambda s: ShowTask(s.path["id"]),
        lambda reply, _: shapes.queued(reply.task),
    ),
    _P("DELETE", "/spawn-queue/{id}", lambda s: CancelTask(s.path["id"]), _done),
    _P("POST", "/checkpoints", _save, _one(shapes.checkpoint)),
    _P(
        "GET", "/checkpoints/{id}", lambda s: LoadCheckpoint(message_id(s)), _one(shapes.checkpoint)
    ),
    _P(
        "GET",
        "/checkpoints/latest/{handle}",
        lambda s: LatestCheckpoint(s.path["handle"]),
        _one(shapes.checkpoint),
    ),
    _P("GET", "/checkpoints/list/{handle}", _checkpoints, _many(shapes.checkpoint)),
    _P(
        "POST",
        "/checkpoints/{id}/accept",
        lambda s: AcceptCheckpoint(message_id(s)),
        _settled(shapes.checkpoint),
    ),
    _P("POST", "/checkpoints/{id}/reject", _reject, _settled(shapes.checkpoint)),
    _P("POST", "/swarms", _swarm, _one(shapes.swarm)),
    _P("GET", "/swarms", _swarms, shapes.swarms, beside=_agents_if_asked),
    _P(
        "GET",
        "/swarms/{id}",
        lambda s: ShowSwarm(s.path["id"]),
        lambda row, s: shapes.swarm(row, s.beside),
        beside=lambda _: ListAgents(),
    ),
    _P("POST", "/swarms/{id}/kill", _kill, _killed),
    _P("POST", "/memory/store", _remember, _one(shapes.memory)),
    _P(
        "GET",
        "/memory/recall/{agent}/{key:path}",
        lambda s: Recall(s.path["key"], s.path["agent"]),
        _one(shapes.memory),
    ),
    _P("POST", "/memory/search", _search, _named("results", shapes.memory)),
    _P("GET", "/memory/{agent}", _memories, _named("memories", shapes.memory)),
    *TALK,
)
