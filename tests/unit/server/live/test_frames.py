"""Bytes that we frame ourselves are what others read."""

from __future__ import annotations

import pytest
from wsproto.connection import Connection, ConnectionType
from wsproto.events import Message

from fleet.domain.access import Actor, Role
from fleet.domain.event import Event
from fleet.server.claude_fleet.frames import frame_of
from fleet.server.live.frames import EventForms, Wrap, framed, team_in, view_of
from fleet.testing.memory_store import MemoryStore


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 200_000])
def test_a_frame_is_read_whole_by_somebody_elses_websocket(size):
    client = Connection(ConnectionType.CLIENT)
    client.receive_data(framed(b"x" * size) + framed(b"next"))
    found = [event for event in client.events() if isinstance(event, Message)]
    whole, text = [], ""
    for event in found:
        text += event.data
        if event.message_finished:
            whole.append(text)
            text = ""
    assert whole == ["x" * size, "next"]


def test_readers_who_see_the_same_are_handed_the_same_bytes():
    store = MemoryStore()
    event = Event("file.claimed", "", "ann", 1, data={"team": "red"}, number=7)
    heard = EventForms(event, team_in(event, str), store, frame_of)
    one, two = (view_of(Actor(name, Role.WORKER, "red"), Wrap.CHUNKS) for name in ("ann", "bob"))
    assert one == two
    assert heard.sse is heard.sse
    assert one.said([heard]).startswith(b"%x\r\nid: 7\n" % len(heard.sse))


@pytest.mark.parametrize(
    ("data", "role", "team", "hears"),
    [
        ({"team": "red"}, Role.WORKER, "red", True),
        ({"team": "red"}, Role.TEAM_LEAD, "blue", False),
        ({"team": "red"}, Role.COORDINATOR, "blue", True),
        ({"team": ""}, Role.TEAM_LEAD, "blue", False),  # a token's: of no team
        ({}, Role.WORKER, "blue", True),  # everybody's
    ],
)
def test_who_hears_what_is_about_no_task(data, role, team, hears):
    event = Event("x.happened", "", "ann", 1, data=data, number=1)
    heard = EventForms(event, team_in(event, str), MemoryStore(), frame_of)
    for wrap in Wrap:
        assert view_of(Actor("bob", role, team), wrap).hears(heard) is hears
