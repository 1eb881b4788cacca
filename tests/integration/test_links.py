"""`/ws/host`: who may be a machine of this server, and what becomes of its answers."""

from __future__ import annotations

import asyncio
import json

import pytest

from fleet.domain.access import Actor, Role
from fleet.domain.errors import Refused, Unavailable
from fleet.operations.catalogue import find
from fleet.operations.tasks.transcript import ReadTranscript
from fleet.server.live.links import Link, Links
from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.integration.listeners import Ws

ADA = Actor("ada", Role.TEAM_LEAD, "red")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    made = Served(Scratch(tmp_path_factory.mktemp("links")))
    yield made
    made.close()


@pytest.mark.parametrize("role", ["worker", "team-lead", "monitor"])
def test_only_a_coordinator_can_be_a_machine(served, role):
    socket = Ws(served.port, "/ws/host")
    socket.send({"type": "auth", "token": served.token("wo", role), "host": "box-1"})
    assert socket.next() is None
    assert socket.closed == 1008
    socket.close()


def test_a_coordinators_machine_stays_connected(served):
    socket = Ws(served.port, "/ws/host")
    socket.send({"type": "auth", "token": served.token(), "host": "box-1"})
    socket.send(b"", kind=9)  # a ping
    assert socket.closed is None
    socket.close()


class Box:
    """A machine that answers each question with these parts."""

    def __init__(self, *parts: str) -> None:
        self.asked: list[dict] = []
        self._parts = parts
        self.link = Link(self._send)

    async def _send(self, message) -> None:
        frame = json.loads(message["text"])
        self.asked.append(frame)
        for part in self._parts:
            self.link.take({"id": frame["id"], "part": part, "last": part is self._parts[-1]})


def ask(box: Box):
    links = Links(lambda _token: None)
    links._links["box-1"] = box.link
    return asyncio.run(links.ask("box-1", find(ReadTranscript), ADA, ReadTranscript("t-1", 7)))


def test_an_answer_in_parts_is_the_reply_for_whoever_asked():
    text = json.dumps({"data": {"run": "t-1.1", "coder": "c", "lines": ["a"], "offset": 9, "live": True}})  # fmt: skip
    box = Box(text[:10], text[10:])
    reply = ask(box)
    assert (reply.run, reply.lines, reply.offset) == ("t-1.1", ("a",), 9)
    (frame,) = box.asked
    assert frame["actor"] == {"name": "ada", "role": "team-lead", "team": "red", "run": ""}
    assert frame["request"] == {"name": "t-1", "offset": 7}


def test_an_error_there_is_the_error_here():
    error = {"message": "No.", "fix": "Ask.", "code": "refused", "status": 409}
    with pytest.raises(Refused, match="No"):
        ask(Box(json.dumps({"error": error})))


def test_who_waits_is_told_when_the_machine_leaves():
    async def leave() -> None:
        box = Box()
        asking = asyncio.create_task(box.link.ask({}))
        await asyncio.sleep(0)
        box.link.end()
        await asking

    with pytest.raises(Unavailable, match="has left"):
        asyncio.run(leave())
