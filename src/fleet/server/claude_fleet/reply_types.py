"""What the paths of claude-fleet's clients reply with, as types: for the description alone."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from fleet.operations.compat.mark import WORDS


class SeedReply(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Base of all replies. The JSON has `teamName` for the field `team_name`."""


class MemberReply(SeedReply):
    uid: str
    handle: str
    team_name: str
    agent_type: str
    created_at: str
    last_seen: str


class EnrolledReply(SeedReply):
    uid: str
    handle: str
    team_name: str
    agent_type: str
    token: str


class TaskReply(SeedReply):
    id: str
    team_name: str
    subject: str
    description: str
    owner_handle: str | None
    owner_uid: str | None
    created_by_handle: str
    created_by_uid: str
    status: Annotated[str, msgspec.Meta(extra_json_schema={"enum": list(WORDS)})]
    blocked_by: list[str]
    created_at: str
    updated_at: str


class WorkerReply(SeedReply):
    id: str
    handle: str
    team_name: str
    state: str
    health: str
    working_dir: str
    session_id: str | None
    spawned_at: int | None
    current_task_id: str
    restart_count: int
    spawn_mode: str
    swarm_id: str | None
    depth_level: int
    asks: str | None


class RoutingReply(SeedReply):
    complexity: str | None
    strategy: str
    model: str
    confidence: float


class SpawnedReply(SeedReply):
    id: str
    handle: str
    team_name: str
    working_dir: str
    state: str
    spawned_at: int | None
    spawn_mode: str
    routing: RoutingReply


class QueuedPayload(SeedReply):
    task: str


class QueuedReply(SeedReply):
    """`status`: pending, spawned or rejected; `state`: what Fleet calls it."""

    id: str
    request_id: str
    status: Literal["pending", "spawned", "rejected"]
    state: str
    priority: str
    task: str
    target_agent_type: str | None
    payload: QueuedPayload
    created_at: int | None
    spawned_worker_id: str | None


class QueueReply(SeedReply):
    queue: list[QueuedReply]
    pending: int


class OutputReply(SeedReply):
    handle: str
    output: list[str]


class SwarmAgentReply(SeedReply):
    id: str
    handle: str
    state: str
    depth_level: int


class SwarmReply(SeedReply):
    id: str
    name: str
    description: str
    status: str
    max_agents: int
    agent_count: int
    created_at: int | None
    agents: list[SwarmAgentReply] | msgspec.UnsetType = msgspec.UNSET


class KilledReply(SwarmReply, kw_only=True):
    success: bool
    swarm_id: str


class PostReply(SeedReply):
    id: str
    swarm_id: str
    sender_handle: str
    message_type: str
    target_handle: str | None
    priority: str
    payload: dict[str, Any]
    read_by: list[str]
    created_at: int | None
    archived_at: int | None


class MailReply(SeedReply):
    """`id` is a number, except for mail that an older version of Fleet stored."""

    id: int | str
    to: str
    from_handle: str
    to_handle: str
    subject: str
    body: str
    read_at: int | None
    created_at: int | None
    from_: str = msgspec.field(name="from")


class ReadReply(MailReply, kw_only=True):
    success: bool


class DoneReply(SeedReply):
    task: str
    files: list[str]


class HeldReply(SeedReply):
    goal: str
    now: str
    test: str
    done_this_session: list[DoneReply]
    blockers: list[str]
    questions: list[str]
    next: list[str]
    worked: list[str]
    failed: list[str]
    files: list[str]


class CheckpointReply(SeedReply):
    id: int | str
    goal: str
    from_handle: str
    to_handle: str
    status: str
    outcome: str | None
    created_at: int | None
    accepted_at: int | None
    checkpoint: HeldReply


class SettledReply(CheckpointReply, kw_only=True):
    success: bool


class MemoryReply(SeedReply):
    id: str
    agent_id: str
    key: str
    value: str
    memory_type: str
    tags: list[str]
    created_at: int | None
    updated_at: int | None


class MemoriesReply(SeedReply):
    memories: list[MemoryReply]


class ResultsReply(SeedReply):
    results: list[MemoryReply]


class SayingReply(SeedReply):
    id: str
    chat_id: str
    from_handle: str
    from_uid: str
    text: str
    timestamp: str
    status: str
    metadata: dict[str, Any]


class ChatReply(SeedReply):
    id: str
    participants: list[str]
    is_team_chat: bool
    team_name: str
    unread: int
    last_message: SayingReply | None
    created_at: str
    updated_at: str


class OpenedReply(SeedReply):
    chat_id: str


class FileReply(SeedReply):
    path: str
    change: str


class StandingReply(SeedReply):
    handle: str
    branch: str
    path: str
    commit: str
    ahead: int
    behind: int
    unpushed: int
    has_changes: bool
    changes: int
    files: list[FileReply]
    in_progress: list[str]


class CommittedReply(SeedReply):
    success: bool
    commit_hash: str
    handle: str


class PushedReply(SeedReply):
    success: bool
    handle: str
    branch: str


class ProposedReply(SeedReply):
    success: bool
    pr_url: str
    handle: str


class MergedReply(SeedReply):
    success: bool
    commit_hash: str
    onto: str
    handle: str


class EndedReply(SeedReply):
    success: bool
    handle: str
    id: str


class QueuedWordsReply(SeedReply):
    success: bool
    handle: str
    id: str
    status: str
    waits_for: str | None


class MarkedReply(SeedReply):
    success: bool
    count: int
    marked: int


class ArchivedReply(SeedReply):
    success: bool
    count: int
    archived: int


class SentReply(SeedReply):
    """`id`: of the first mail that was sent."""

    success: bool
    count: int
    id: str


class SuccessReply(SeedReply):
    success: bool
