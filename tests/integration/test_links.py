"""`/ws/host`: who may be a machine of this server, and what becomes of its answers."""

from __future__ import annotations

import asyncio
import json
import time

import pytest

from fleet.domain.access import Actor, Role
from fleet.domain.errors import Refused, Unavailable
from fleet.operations.catalogue import find
from fleet.operations.tasks.transcript import ReadTranscript
from fleet.server.http.connections import GUEST
from fleet.server.live.links import MOST_AHEAD, MOST_ASKED, WINDOW, Link, Links
from fleet.server.tokens import TokenGrant
from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.integration.listeners import Ws

ADA = Actor("ada", Role.TEAM_LEAD, "red")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    made = Served(Scratch(tmp_path_factory.mktemp("links")))
    yield made
    made.close()


def host_token(served, host: str, known: str = "") -> dict:
    body = {"host": host, "id": known}
    status, answer = served.ask("POST", "/v1/host/token", body, token=served.token())
    assert status == 201, answer
    return answer["data"]


def dial(served, token: str, host: str) -> Ws:
    socket = Ws(served.port, "/ws/host")
    socket.send({"type": "auth", "token": token, "host": host})
    return socket


@pytest.mark.parametrize("role", ["coordinator", "worker", "team-lead", "monitor"])
def test_the_token_of_a_person_is_no_machine(served, role):
    socket = dial(served, served.token("wo", role), "box-1")
    assert "not the token of a machine" in socket.next()["message"]
    assert socket.next() is None
    assert socket.closed == 1008
    socket.close()


def test_a_machine_cannot_be_another_one(served):
    socket = dial(served, host_token(served, "box-1")["token"], "box-2")
    assert "the token of box-1, not of box-2" in socket.next()["message"]
    assert socket.next() is None
    assert socket.closed == 1008
    socket.close()


def test_a_machine_stays_connected_with_its_own_token(served):
    socket = dial(served, host_token(served, "box-1")["token"], "box-1")
    socket.send(b"", kind=9)  # a ping
    assert socket.closed is None
    socket.close()


def test_a_machine_that_connects_again_has_one_connection(served):
    token = host_token(served, "box-1")["token"]
    first = dial(served, token, "box-1")
    first.send(b"", kind=9)
    second = dial(served, token, "box-1")
    assert "has connected again" in first.next()["message"]
    assert first.next() is None
    second.send(b"", kind=9)
    assert second.closed is None
    for each in (first, second):
        each.close()


def test_a_machine_keeps_its_token_until_half_of_its_life_is_over(served):
    made = host_token(served, "box-3")
    again = host_token(served, "box-3", made["id"])
    assert (again["id"], again["token"]) == (made["id"], "")
    assert host_token(served, "box-4", made["id"])["token"]  # it is not that one's


def test_a_machines_token_reads_and_does_nothing_else(served):
    token = host_token(served, "box-1")["token"]
    assert served.ask("GET", "/v1/host/list", token=token)[0] == 200
    wishes = {
        "task/add": {"title": "x"},
        "host/token": {"host": "box-2"},
        "token/create": {"name": "x"},
    }
    for path, body in wishes.items():
        assert served.ask("POST", f"/v1/{path}", body, token=token)[0] == 403
    members = served.ask("GET", "/v1/member/list", token=served.token())[1]["data"]
    assert "box-1" not in {row["name"] for row in members}


def test_a_machine_with_an_old_token_is_sent_a_new_one():
    """Half of the life of this one is over."""

    async def talk() -> list[dict]:
        old = TokenGrant("x", Actor("box-1", Role.MONITOR), time.time() + 10, "k", 1, (), "box-1")
        frames: list[dict] = []
        told = asyncio.Event()

        async def admit(_token: str) -> TokenGrant:
            return old

        async def renew(_grant: TokenGrant) -> str:
            return "new"

        async def send(message) -> None:
            if "text" in message:
                frames.append(json.loads(message["text"]))
                told.set()

        first = {"type": "auth", "token": "old", "host": "box-1"}
        messages = [{"type": "websocket.connect"}, {"type": "", "text": json.dumps(first)}]

        async def receive() -> dict:
            if messages:
                return messages.pop(0)
            await told.wait()
            return {"type": "websocket.disconnect"}

        await Links(admit, renew)({"state": {GUEST: Guest()}}, receive, send)
        return frames

    assert asyncio.run(talk()) == [{"type": "token", "token": "new"}]


class Guest:
    def prove(self) -> None:
        pass


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
    links = Links(lambda _token: None, lambda _grant: None)
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


def test_of_one_member_only_so_many_questions_wait_for_other_machines():
    async def flood() -> list:
        links = Links(lambda _token: None, lambda _grant: None)
        mute = links._links["box-1"] = Box().link
        question = find(ReadTranscript), ADA, ReadTranscript("t-1", 7)
        waiting = [asyncio.create_task(links.ask("box-1", *question)) for _ in range(MOST_ASKED)]
        await asyncio.sleep(0)
        with pytest.raises(Refused, match="waits for 20 answers"):
            await links.ask("box-1", *question)
        other = find(ReadTranscript), Actor("bob", Role.WORKER, "red"), ReadTranscript("t-1", 7)
        waiting.append(asyncio.create_task(links.ask("box-1", *other)))
        await asyncio.sleep(0)
        mute.end()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert not links._unanswered
        return ended

    assert {type(error) for error in asyncio.run(flood())} == {Unavailable}


def test_an_error_there_is_the_error_here():
    error = {"message": "No.", "fix": "Ask.", "code": "refused", "status": 409}
    with pytest.raises(Refused, match="No"):
        ask(Box(json.dumps({"error": error})))


@pytest.mark.parametrize(
    "answer",
    ["", "no JSON", "[]", "7", "{}", '{"data": 7}', '{"error": "x"}', '{"error": {"status": []}}'],
)
def test_an_answer_that_is_none_is_that_machines_fault(answer):
    with pytest.raises(Unavailable, match="box-1 sent a reply that") as failed:
        ask(Box(answer))
    assert failed.value.fix == "Install this release there: fleet host add box-1"


def test_a_machine_that_sends_without_end_fills_no_memory():
    """It was told to send no more than its window ahead of who reads."""

    async def flood() -> int:
        async def send(message) -> None:
            frame = json.loads(message["text"])
            if "seat" in frame:
                link.take({"id": frame["id"], "part": '{"data": {}}', "last": True})

        link = Link(send)
        _, terminal = await link.sit({"seat": "t-1.1"})
        for _ in range(100):
            link.hear({"bytes": (1).to_bytes(4, "big") + b"x" * WINDOW})
        taken = 0
        while data := await terminal.read():
            taken += len(data)
        return taken

    assert asyncio.run(flood()) <= MOST_AHEAD


def test_who_waits_is_told_when_the_machine_leaves():
    async def leave() -> None:
        box = Box()
        asking = asyncio.create_task(box.link.ask({}))
        await asyncio.sleep(0)
        box.link.end()
        await asking

    with pytest.raises(Unavailable, match="has disconnected"):
        asyncio.run(leave())


def test_what_a_far_terminal_shows_is_read_no_faster_than_it_is_taken():
    """The machine is told what was read, in parts of its window."""

    async def read() -> list[dict]:
        frames: list[dict] = []

        async def send(message) -> None:
            if "text" not in message:
                frames.append({"bytes": message["bytes"]})
                return
            frame = json.loads(message["text"])
            frames.append(frame)
            if "seat" in frame:
                link.take({"id": frame["id"], "part": '{"data": {}}', "last": True})

        link = Link(send)
        _, terminal = await link.sit({"seat": "t-1.1"})
        chunk = (1).to_bytes(4, "big") + b"x" * (WINDOW // 4)
        for _ in range(3):
            link.hear({"bytes": chunk})
        link.take({"id": 1, "left": True})
        await terminal.write(b"ls")
        while await terminal.read():
            pass
        await terminal.leave()
        return frames

    seat, typed, *read_frames, leave = asyncio.run(read())
    assert (seat["seat"], typed["bytes"]) == ("t-1.1", b"\0\0\0\1ls")
    assert read_frames == [{"id": 1, "read": WINDOW // 4}] * 3
    assert leave == {"id": 1, "leave": True}
