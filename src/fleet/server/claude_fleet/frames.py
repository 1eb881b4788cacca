"""What claude-fleet's clients call our events on the WebSocket."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.domain.errors import NotFound
from fleet.domain.event import TASK, Kind

if TYPE_CHECKING:
    from fleet.domain.event import Event
    from fleet.ports import Store

TOPIC = "chatId"  # where a frame of ours has `topic`
UPDATED, ASSIGNED = "task_updated", "task_assigned"
NAMES = {
    Kind.BOARD_POSTED: "blackboard_message",
    Kind.MAIL_BROADCAST: "broadcast",
    Kind.MAIL_SENT: "new_message",
    Kind.CHAT_SAID: "new_message",
    Kind.MESSAGE_ANSWERED: "new_message",
    Kind.MESSAGE_ASKED: "new_message",
    Kind.MESSAGE_POSTED: "new_message",
    Kind.MESSAGE_SENT: "new_message",
    Kind.RUN_ENDED: "worker_dismissed",
    Kind.RUN_STARTED: "worker_spawned",
    Kind.SWARM_ENDED: "swarm_killed",
    Kind.TASK_ASSIGNED: ASSIGNED,
}


def frame_of(event: Event, store: Store) -> dict[str, Any]:
    """How the frame begins; the event itself follows."""
    chat = {TOPIC: event.data["chat"]} if "chat" in event.data else {}
    return {"type": _name(event, store), "number": event.number, **chat}


def _name(event: Event, store: Store) -> str:
    if event.type == Kind.TASK_ADDED:
        return _added(event, store)
    return NAMES.get(event.type) or (UPDATED if event.type.startswith(TASK) else "event")


def _added(event: Event, store: Store) -> str:
    try:
        task = store.task(event.task)
    except NotFound:
        return UPDATED
    if task.join is not None:
        return "swarm_created"
    return ASSIGNED if task.spec.assignee else UPDATED
