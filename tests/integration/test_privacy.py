"""Messages for one member are read by that member, their author and those who lead: everywhere."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields
from urllib.parse import urlencode

import pytest

from fleet.operations.catalogue import operations
from tests.integration.hostile import HostileTeam
from tests.integration.listeners import Sse, Ws

FOR_BOB, FOR_AGENT, IN_CHAT = "walnut-bob", "walnut-agent", "walnut-chat"
SEED_READS = (
    "/tasks/{id}", "/teams/red/tasks", "/teams/red/agents", "/blackboard/{id}", "/swarms",
    "/swarms/{id}", "/checkpoints/{id}", "/checkpoints/list/bob", "/checkpoints/list/{id}",
    "/checkpoints/latest/bob", "/checkpoints/latest/{id}", "/mail/bob", "/mail/{id}",
    "/mail/bob/unread", "/orchestrate/workers", "/orchestrate/output/{id}", "/spawn-queue/status",
    "/spawn-queue/{id}", "/chats/{id}", "/chats/{id}/messages", "/memory/bob",
)  # fmt: skip


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = HostileTeam(tmp_path_factory.mktemp("privacy"))
    for name, role in (
        ("cat", "worker"), ("mon", "monitor"), ("nat", "notifier"), ("mia", "merger"),
        ("dan", "team-lead"),
    ):  # fmt: skip
        made.join(name, role, "red")
    for name in made.tokens:  # a member is one who has called
        made.ask(name, "POST", "/v1/member/seen", {})
    yield made
    made.served.end()


@pytest.fixture(scope="module")
def ids(team):
    """Ann writes to Bob and to an agent that waits to start, in every way there is."""

    def said(operation: str, **body) -> str:
        return team.ok("ann", "POST", f"/v1/{operation}", body)["data"]["id"]

    board = said("swarm/create", name="All")
    agent = said("task/add", title="Agent", spec={"branch": "seat"})
    chat = said("chat/open", members=["bob", agent])
    made = [board, agent, f"{agent}.1", chat]
    for to, text in (("bob", FOR_BOB), (agent, FOR_AGENT), ("seat", FOR_AGENT)):
        made.append(said("mail/send", to=to, text=text, subject=text))
        payload = {"text": text}
        made += [said("board/post", task=on, to=to, payload=payload) for on in (board, agent)]
        made.append(said("checkpoint/save", summary={"goal": text, "now": "n"}, to=to))
    made.append(said("chat/say", chat=chat, text=IN_CHAT))
    newest = max(int(name[2:]) for name in made if name.startswith("m-"))
    return [*made, *(f"m-{number}" for number in range(1, newest + 5))]


def read_requests(ids):
    """Every operation that reads, with every id and name in every field that it must have."""
    for operation in operations():
        if not operation.is_read:
            continue
        path = f"/v1/{operation.name.replace('.', '/')}"
        own = [f.name for f in fields(operation.request)]
        must = [f.name for f in fields(operation.request) if f.default is MISSING]
        values = ids if must else [""]
        for value in values:
            yield "GET", f"{path}?{urlencode(dict.fromkeys(must, value))}"
        for extra in {"to", "agent", "member"} & set(own) - set(must):
            yield from (("GET", f"{path}?{urlencode({extra: name})}") for name in ("bob", ids[1]))
    for path in SEED_READS:
        yield from (("GET", path.format(id=value)) for value in (ids if "{id}" in path else [""]))


def everything_read_by(team, who: str, ids) -> str:
    replies = []
    for method, path in read_requests(ids):
        status, reply = team.ask(who, method, path)
        assert status < 500, (path, reply)
        replies.append(json.dumps(reply))
    for take in ("/v1/mail/take", "/v1/message/take"):
        replies.append(json.dumps(team.ask(who, "POST", take, {})[1]))
    return "\n".join(replies)


READS = {
    "ann": {FOR_BOB, FOR_AGENT, IN_CHAT},
    "bob": {FOR_BOB, IN_CHAT},
    "dan": {FOR_BOB, FOR_AGENT},
    "root": {FOR_BOB, FOR_AGENT},
    "cat": set(), "mon": set(), "nat": set(), "mia": set(), "eve": set(),
}  # fmt: skip


@pytest.mark.parametrize("who", READS)
def test_a_message_for_one_is_read_by_that_one_its_author_and_who_leads(team, ids, who):
    read = everything_read_by(team, who, ids)
    assert {text for text in (FOR_BOB, FOR_AGENT, IN_CHAT) if text in read} == READS[who]


@pytest.mark.parametrize("who", ["cat", "mon", "mia", "eve"])
def test_nobody_else_is_told_of_it_as_it_happens(team, ids, who):
    board, agent = ids[:2]
    lead = "eve" if who == "eve" else "ann"
    last = team.ok(lead, "POST", "/v1/task/add", {"title": "Last"})["data"]["id"]
    stream, socket = Sse(team.served.port, team.tokens[who]), Ws(team.served.port)
    socket.auth(team.tokens[who])
    for topic in ("team", "bob", agent, board, last):
        socket.send({"type": "subscribe", "chatId": topic})
        socket.until("subscribed")
    for to in ("bob", agent):
        team.ok("ann", "POST", "/v1/mail/send", {"to": to, "text": FOR_BOB})
        post = {"task": board, "to": to, "payload": {"text": FOR_BOB}}
        team.ok("ann", "POST", "/v1/board/post", post)
    team.ok(lead, "POST", "/v1/message/comment", {"task": last, "text": "Over."})
    told = [socket.next()]
    while told[-1].get("message", {}).get("text") != "Over.":
        told.append(socket.next())
    streamed = [stream.next()]
    while streamed[-1][0] != "message.posted" or streamed[-1][2]["task"] != last:
        streamed.append(stream.next())
    assert FOR_BOB not in json.dumps([told, streamed])
    stream.close()
    socket.close()


def test_who_subscribes_to_anothers_name_does_not_learn_that_they_have_mail(team, ids):
    socket = Ws(team.served.port)
    socket.auth(team.tokens["cat"])
    socket.send({"type": "subscribe", "chatId": "bob"})
    socket.send({"type": "subscribe", "chatId": "cat"})
    socket.until("subscribed")
    team.ok("ann", "POST", "/v1/mail/send", {"to": "bob", "text": FOR_BOB})
    team.ok("ann", "POST", "/v1/mail/send", {"to": "cat", "text": "For Cat"})
    assert socket.until("new_message")[-1]["message"]["text"] == "For Cat"
    socket.close()


def test_a_branch_with_a_persons_name_takes_none_of_their_mail(team, ids):
    asked = {"title": "Trap", "prompt": "x", "spec": {"branch": "dan"}}
    trap = team.ok("bob", "POST", "/v1/task/add", asked)["data"]["id"]
    mail = team.ok("ann", "POST", "/v1/mail/send", {"to": "dan", "text": "For Dan"})["data"]
    assert mail["to"] == "dan"
    assert "For Dan" not in json.dumps(team.ok("bob", "GET", f"/v1/task/show?task={trap}"))
    unread = team.ok("dan", "GET", "/v1/mail/list?unread=true")["data"]
    assert [row["text"] for row in unread] == ["For Dan"]
