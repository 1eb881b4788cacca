"""What claude-fleet's clients send: bodies and queries, by path."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from fleet.server.claude_fleet.routes import Body


class PageAsked(Body):
    before: str = ""
    limit: int = 50


class TaskBody(Body):
    subject: str
    to_handle: str = ""
    from_uid: str = ""
    team_name: str = ""
    description: str = ""
    blocked_by: tuple[str, ...] = ()


class StatusBody(Body):
    status: str


class SpawnBody(Body):
    handle: str
    team_name: str = ""
    working_dir: str = ""
    initial_prompt: str = ""
    session_id: str = ""
    swarm_id: str = ""
    depth_level: int = 0
    spawn_mode: Literal["process", "tmux", "native"] = "process"
    model: str = ""
    role: str = ""


class QueueBody(Body):
    task: str
    target_agent_type: str = ""
    requester_handle: str = ""
    swarm_id: str = ""
    depth_level: int = 0
    priority: Literal["low", "normal", "high", "critical"] = "normal"
    depends_on: tuple[str, ...] = ()
    team_name: str = ""


class WordsBody(Body):
    message: str


class BroadcastBody(Body):
    message: str = ""
    text: str = ""
    from_: str = msgspec.field(default="", name="from")


class SwarmsAsked(Body):
    include_agents: bool = False
    before: str = ""
    limit: int = 50


class KillBody(Body):
    """A swarm is always ended gracefully: whoever asks for less gets no less."""

    graceful: bool = True


class RejectBody(Body):
    reason: str = ""


class SwarmBody(Body):
    name: str
    description: str = ""
    max_agents: int = 10


class PostBody(Body):
    swarm_id: str
    message_type: str
    payload: dict[str, Any]
    sender_handle: str = ""
    target_handle: str = ""
    priority: str = "normal"


class BoardAsked(Body):
    message_type: str = ""
    unread_only: bool = False
    reader_handle: str = ""
    priority: str = ""
    before: str = ""
    limit: int = 100


class ReadBody(Body):
    message_ids: tuple[str, ...]
    reader_handle: str = ""


class ArchiveBody(Body):
    message_ids: tuple[str, ...]


class OldBody(Body):
    """The age in milliseconds is claude-fleet's word for it."""

    max_age_hours: int = 24
    max_age_ms: int = 0


class DoneBody(Body):
    task: str
    files: tuple[str, ...] = ()


class CheckpointBody(Body):
    goal: str
    now: str
    from_handle: str = ""
    to_handle: str = ""
    test: str = ""
    done_this_session: tuple[DoneBody, ...] = ()
    blockers: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    worked: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


class CheckpointsAsked(Body):
    status: str = ""
    before: str = ""
    limit: int = 50


class MailBody(Body):
    to: str
    body: str
    from_: str = msgspec.field(default="", name="from")
    subject: str = ""


class MemoryBody(Body):
    key: str
    value: str
    agent_id: str = ""
    memory_type: str = "fact"
    tags: tuple[str, ...] = ()


class SearchBody(Body):
    query: str
    agent_id: str = ""
    memory_type: str = ""
    limit: int = 20
