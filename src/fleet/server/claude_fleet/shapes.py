"""Replies in the shapes that claude-fleet's clients read."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from fleet.domain.task import PRIORITIES, TaskState
from fleet.operations.compat.mark import BEGUN
from fleet.operations.compat.states import to_team
from fleet.operations.team.members import uid_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.operations.compat.team_tasks import TeamTask
    from fleet.operations.messages.boards import PostRow
    from fleet.operations.messages.mail import MailRow
    from fleet.operations.tasks.at_work import AgentRow
    from fleet.operations.tasks.observe import SightRow
    from fleet.operations.tasks.rows import TaskRow
    from fleet.operations.tasks.show import TaskDetail
    from fleet.operations.tasks.transcript import Spoken
    from fleet.operations.team.checkpoints import CheckpointRow
    from fleet.operations.team.members import MemberRow
    from fleet.operations.team.memory import MemoryRow
    from fleet.operations.team.swarms import SwarmRow
    from fleet.server.claude_fleet.routes import SeedCall

LINES = 100  # of a transcript
SEATED = {  # what an agent in a terminal does, where that is not working
    **{name: name for name in ("permission", "panel", "first-start")},
    **dict.fromkeys(("waiting", "idle"), "ready"),
    "exited": "stopped",
}
WORKER = {"starting": "starting", "running": "working", "stopping": "stopping"}


def ms(at: int | None) -> int | None:
    return None if at is None else at // 1000


def iso(at: int) -> str:
    return datetime.fromtimestamp(at / 1e6, UTC).isoformat(timespec="milliseconds")


def member(row: MemberRow) -> dict[str, Any]:
    return {
        "uid": uid_of(row.team, row.name), "handle": row.name, "teamName": row.team,
        "agentType": row.role, "createdAt": iso(row.since), "lastSeen": iso(row.seen_at),
    }  # fmt: skip


def task(detail: TaskDetail) -> dict[str, Any]:
    row = detail.task
    running = row.run.id if row.run and row.state == TaskState.RUNNING else ""
    return _task(
        row,
        detail.prompt,
        detail.spec.assignee or running,
        detail.author,
        detail.after,
        detail.updated_at,
    )


def listed_task(row: TeamTask) -> dict[str, Any]:
    return _task(row.task, row.prompt, row.owner, row.author, row.after, row.updated_at)


def added(row: TaskRow, call: SeedCall) -> dict[str, Any]:
    """Return a task that was just created; fields that its row lacks come from the request."""
    body = call.body
    owner, after = body.get("toHandle") or "", body.get("blockedBy") or ()
    return _task(row, body.get("description") or "", owner, call.actor.name, after, row.created_at)


def _task(
    row: TaskRow, description: str, owner: str, author: str, after: Sequence[str], at: int
) -> dict[str, Any]:
    """`at`: when the task was last changed."""
    status = to_team(row.status)
    if row.status == "assigned" and BEGUN not in row.labels:
        status = "open"  # it is a member's, and they have not begun
    return {
        "id": row.id, "teamName": row.team, "subject": row.title, "description": description,
        "ownerHandle": owner or None, "ownerUid": uid_of(row.team, owner) if owner else None,
        "createdByHandle": author, "createdByUid": uid_of(row.team, author),
        "status": status, "blockedBy": list(after), "createdAt": iso(row.created_at),
        "updatedAt": iso(at),
    }  # fmt: skip


def workers(rows: Sequence[AgentRow], call: SeedCall) -> list[dict[str, Any]]:
    sights = {sight.run: sight for sight in call.beside}
    return [worker(row, sights.get(row.run)) for row in rows]


def worker(row: AgentRow, sight: SightRow | None = None) -> dict[str, Any]:
    """`asks` in the reply: what the agent waits for a person's permission to do."""
    state = WORKER.get(row.status, "stopped" if row.ended_at else row.status)
    if sight is not None and state == "working":
        state = SEATED.get(sight.doing, state)
    return {
        "id": row.task, "handle": row.branch or row.task, "teamName": row.team,
        "state": state, "asks": (sight.asks or None) if sight else None,
        "health": "unknown" if row.ended_at else "healthy", "workingDir": row.path or row.project,
        "sessionId": row.session or None, "spawnedAt": ms(row.started_at), "currentTaskId": row.task,
        "restartCount": max(0, int(row.run.rpartition(".")[2] or 1) - 1),
        "spawnMode": "tmux" if row.terminal else "process", "swarmId": row.batch or None,
        "depthLevel": row.depth,
    }  # fmt: skip


def spawned(row: TaskRow, call: SeedCall) -> dict[str, Any]:
    given = "model" in row.given
    return {
        "id": row.id, "handle": call.body.get("handle") or row.id, "teamName": row.team,
        "workingDir": row.cwd, "state": "starting", "spawnedAt": ms(row.created_at),
        "spawnMode": call.body.get("spawnMode") or "process",
        "routing": {
            "complexity": None, "strategy": "given" if given else "settings",
            "model": row.model, "confidence": 1,
        },
    }  # fmt: skip


QUEUED = {TaskState.OPEN: "pending", TaskState.CANCELLED: "rejected"}  # other states: "spawned"


def queued(row: TaskRow) -> dict[str, Any]:
    """`status` is claude-fleet's word for it, `state` is ours."""
    return {
        "id": row.id, "requestId": row.id, "status": QUEUED.get(TaskState(row.state), "spawned"),
        "state": row.status, "priority": PRIORITIES[min(row.priority, len(PRIORITIES) - 1)], "task": row.title,
        "targetAgentType": next(iter(row.labels), None), "payload": {"task": row.title},
        "createdAt": ms(row.created_at), "spawnedWorkerId": row.run.id if row.run else None,
    }  # fmt: skip


def output(spoken: Spoken, call: SeedCall) -> dict[str, Any]:
    return {"handle": call.path["handle"], "output": list(spoken.lines[-LINES:])}


def swarm(row: SwarmRow, agents: Sequence[AgentRow] | None = None) -> dict[str, Any]:
    """`agents`: the running agents of all swarms; None leaves the field `agents` out."""
    fields = {
        "id": row.id, "name": row.name, "description": row.description, "status": row.state,
        "maxAgents": row.max_agents, "agentCount": row.agents, "createdAt": ms(row.at),
    }  # fmt: skip
    if agents is None:
        return fields
    workers = [worker(agent) for agent in agents if agent.batch == row.id]
    names = ("id", "handle", "state", "depthLevel")
    return fields | {"agents": [{name: one[name] for name in names} for one in workers]}


def swarms(rows: tuple[SwarmRow, ...], call: SeedCall) -> list[dict[str, Any]]:
    return [swarm(row, call.beside) for row in rows]


def post(row: PostRow) -> dict[str, Any]:
    return {
        "id": row.id, "swarmId": row.task, "senderHandle": row.author, "messageType": row.type,
        "targetHandle": row.to or None, "priority": row.priority,
        "payload": json.loads(row.payload), "readBy": list(row.readers), "createdAt": ms(row.at),
        "archivedAt": ms(row.archived_at),
    }  # fmt: skip


def board(rows: tuple[PostRow, ...]) -> list[dict[str, Any]]:
    """The most urgent first, then the newest."""
    return [post(row) for row in sorted(rows, key=lambda row: PRIORITIES.index(row.priority))]


def number(message: str) -> int | str:
    """Return the number that claude-fleet's clients use for a message: 12 for m-12."""
    kind, _, digits = message.partition("-")
    return int(digits) if kind == "m" else message


def mail(row: MailRow) -> dict[str, Any]:
    return {
        "id": number(row.id), "from": row.sender, "to": row.to, "fromHandle": row.sender,
        "toHandle": row.to, "subject": row.subject, "body": row.text,
        "readAt": ms(row.read_at), "createdAt": ms(row.at),
    }  # fmt: skip


def checkpoint(row: CheckpointRow) -> dict[str, Any]:
    summary = row.summary
    done = [{"task": item.task, "files": list(item.files)} for item in summary.done]
    return {
        "id": number(row.id), "fromHandle": row.sender, "toHandle": row.to, "status": row.status,
        "goal": summary.goal, "outcome": row.why or None, "createdAt": ms(row.at),
        "acceptedAt": ms(row.settled_at) if row.status == "accepted" else None,
        "checkpoint": {
            "goal": summary.goal, "now": summary.now, "test": summary.test, "doneThisSession": done,
            "blockers": summary.blockers, "questions": summary.questions, "next": summary.next,
            "worked": summary.worked, "failed": summary.failed, "files": summary.files,
        },
    }  # fmt: skip


def memory(row: MemoryRow) -> dict[str, Any]:
    return {
        "id": row.id, "agentId": row.agent, "key": row.key, "value": row.value,
        "memoryType": row.type, "tags": list(row.tags), "createdAt": ms(row.at),
        "updatedAt": ms(row.changed_at),
    }  # fmt: skip
