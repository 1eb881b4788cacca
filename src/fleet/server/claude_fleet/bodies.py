"""What claude-fleet's clients send: bodies and queries, by path."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from fleet.domain.limits import MOST_SECONDS, Items, Name, Whole
from fleet.domain.run import MAX_POINTS, Point, Points, SomePoint
from fleet.domain.task import Directory, Option
from fleet.operations.compat.mark import Mark
from fleet.operations.messages.ask_answer_send import Words
from fleet.operations.messages.boards import (
    AnyPriority,
    AnyType,
    PostPriority,
    PostType,
    SomePosts,
)
from fleet.operations.messages.mail import MailText, Subject
from fleet.operations.shared.entries import Recipient
from fleet.operations.tasks.change import Needs, Prompt, Title
from fleet.operations.tasks.spawn import Session, SomeHandle, SomePrompt
from fleet.operations.team.checkpoints import AnyStatus, WhyRejected
from fleet.operations.team.memory import (
    AnyMemoryType,
    Key,
    MemoryType,
    Query,
    Tags,
    Value,
)
from fleet.operations.team.swarms import MaxAgents, SwarmAbout, SwarmName
from fleet.server.claude_fleet.routes import Body
from fleet.server.http.pages import PAGES

PageSize = Annotated[int, PAGES]
SwarmId = Annotated[str, Meta(examples=["t-7"])]
MessageIds = Annotated[SomePosts, Meta(examples=[["m-12"]])]


class PageAsked(Body):
    before: str = ""
    limit: PageSize = 50


class TaskBody(Body):
    subject: Title
    to_handle: Name = ""
    from_uid: str = ""
    team_name: Name = ""
    description: Prompt = ""
    blocked_by: Needs = ()


class StatusBody(Body):
    status: Mark


class SpawnBody(Body):
    handle: SomeHandle
    team_name: Name = ""
    working_dir: Directory = ""
    initial_prompt: Prompt = ""
    session_id: Session = ""
    swarm_id: str = ""
    depth_level: int = 0
    spawn_mode: Literal["process", "tmux", "native"] = "process"
    model: Option = ""
    role: Name = ""


class QueueBody(Body):
    task: SomePrompt
    target_agent_type: Name = ""
    requester_handle: str = ""
    swarm_id: str = ""
    depth_level: int = 0
    priority: Literal["low", "normal", "high", "critical"] = "normal"
    depends_on: Needs = ()
    team_name: Name = ""


class WordsBody(Body):
    message: Words


class BroadcastBody(Body):
    message: MailText | None = None
    text: MailText | None = None
    from_: str = msgspec.field(default="", name="from")


class SwarmsAsked(Body):
    include_agents: bool = False
    before: str = ""
    limit: PageSize = 50


class KillBody(Body):
    """`graceful` has no effect: Fleet always lets the agents of a swarm end gracefully."""

    graceful: bool = True


class RejectBody(Body):
    reason: WhyRejected = ""


class SwarmBody(Body):
    name: SwarmName
    description: SwarmAbout = ""
    max_agents: MaxAgents = 10


class PostBody(Body):
    swarm_id: SwarmId
    message_type: Annotated[PostType, Meta(examples=["status"])]
    payload: dict[str, Any]
    sender_handle: str = ""
    target_handle: Name = ""
    priority: PostPriority = "normal"


class BoardAsked(Body):
    message_type: Annotated[AnyType, Meta(examples=["status"])] = ""
    unread_only: bool = False
    reader_handle: str = ""
    priority: AnyPriority = ""
    before: str = ""
    limit: PageSize = 100


class ReadBody(Body):
    message_ids: MessageIds
    reader_handle: str = ""


class ArchiveBody(Body):
    message_ids: MessageIds


class OldBody(Body):
    """`max_age_ms` is claude-fleet's own field; unless it is 0, it overrides `max_age_hours`."""

    max_age_hours: Annotated[int, Whole(0, MOST_SECONDS // 3600)] = 24
    max_age_ms: Annotated[int, Whole(0, MOST_SECONDS * 1000)] = 0


class DoneBody(Body):
    task: Point
    files: Points = ()


class CheckpointBody(Body):
    goal: SomePoint
    now: SomePoint
    from_handle: str = ""
    to_handle: Name = ""
    test: Point = ""
    done_this_session: Annotated[tuple[DoneBody, ...], Items(MAX_POINTS)] = ()
    blockers: Points = ()
    questions: Points = ()
    next: Points = ()
    worked: Points = ()
    failed: Points = ()
    files: Points = ()


class CheckpointsAsked(Body):
    status: AnyStatus = ""
    before: str = ""
    limit: PageSize = 50


class MailBody(Body):
    to: Recipient
    body: MailText
    from_: str = msgspec.field(default="", name="from")
    subject: Subject = ""


class MemoryBody(Body):
    key: Key
    value: Value
    agent_id: Name = ""
    memory_type: MemoryType = "fact"
    tags: Tags = ()


class SearchBody(Body):
    query: Query
    agent_id: Name = ""
    memory_type: AnyMemoryType = ""
    limit: PageSize = 20
