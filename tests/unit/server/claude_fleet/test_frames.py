from __future__ import annotations

import json

import pytest

from fleet.domain.event import Event, Kind
from fleet.domain.task import Join, Spec, Task, TaskState
from fleet.ports import Put
from fleet.server.claude_fleet.frames import frame_of
from fleet.server.live.frames import EventForms
from fleet.testing.memory_store import MemoryStore

TOLD = """
board.posted blackboard_message
mail.broadcast broadcast
mail.sent new_message
chat.said new_message
message.answered new_message
message.asked new_message
message.posted new_message
message.sent new_message
run.ended worker_dismissed
run.started worker_spawned
swarm.ended swarm_killed
task.assigned task_assigned
task.settled task_updated
task.praised task_updated
run.claimed event
member.joined event
host.praised event
"""


@pytest.mark.parametrize(("kind", "name"), [line.split() for line in TOLD.split("\n") if line])
def test_clients_of_claude_fleet_are_told_of_an_event_under_their_own_name_for_it(kind, name):
    event = Event(Kind(kind), "", "ann", 1, number=7)
    assert frame_of(event, MemoryStore()) == {"type": name, "number": 7}


@pytest.mark.parametrize(
    ("spec", "join", "name"),
    [
        (Spec(), None, "task_updated"),
        (Spec(assignee="bob"), None, "task_assigned"),
        (Spec(), Join.ALL, "swarm_created"),
    ],
)
def test_a_task_that_was_added_is_told_of_by_what_it_is(spec, join, name):
    store = MemoryStore()
    task = Task("t-1", 0, TaskState.OPEN, "Login", "", "/shop", "ann", 1, spec=spec, join=join)
    store.commit([Put(task)], [])
    assert frame_of(Event(Kind.TASK_ADDED, "t-1", "ann", 1), store)["type"] == name


def test_a_task_that_is_gone_is_told_of_all_the_same():
    assert (
        frame_of(Event(Kind.TASK_ADDED, "t-9", "ann", 1), MemoryStore())["type"] == "task_updated"
    )


def test_a_frame_has_our_event_whole_and_a_stream_of_events_has_our_name_alone():
    data = {"entry": "e-1", "team": "red", "chat": "c-1"}
    event = Event(Kind.CHAT_OPENED, "", "ann", 5, data=data, number=7)
    heard = EventForms(event, "red", MemoryStore(), frame_of)
    own = {
        "number": 7, "type": "chat.opened", "task": "", "run": "", "actor": "ann", "at": "1970-01-01T00:00:00.000005Z", "data": data,
    }  # fmt: skip
    frame = json.loads(heard.frame[4:] if heard.frame[1] == 126 else heard.frame[2:])
    assert frame == {"type": "event", "number": 7, "chatId": "c-1", "event": own}
    head, kind, body, *_ = heard.sse.split(b"\n")
    assert (head, kind) == (b"id: 7", b"event: chat.opened")
    assert json.loads(body.removeprefix(b"data: ")) == own
