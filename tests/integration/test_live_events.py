"""Events as they happen, over SSE and WebSocket, on one server."""

from __future__ import annotations

import threading

import pytest

from fleet.domain.access import LEEWAY
from tests.integration.listeners import Inside, Sse, Ws
from tests.wait import LIMIT, until


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    made = Inside(tmp_path_factory.mktemp("live"))
    yield made
    made.end()


@pytest.fixture(scope="module")
def strict(tmp_path_factory):
    """One that does not wait for long."""
    made = Inside(tmp_path_factory.mktemp("strict"), patience=1.0, ping=1.0)
    yield made
    made.end()


@pytest.fixture(scope="module")
def root(server):
    return server.token("root")


@pytest.fixture
def ws(server):
    made = []

    def opened(*words, **given):
        made.append(Ws(server.port, *words, **given))
        return made[-1]

    yield opened
    for each in made:
        each.close()


def newest(server, token) -> int:
    stream = Sse(server.port, token)
    number = stream.next()[1]
    stream.close()
    return number


def test_state_comes_first_and_then_every_event_after_it(server, root):
    known = server.add(root, "Known")
    stream = Sse(server.port, root)
    name, number, state = stream.next()
    assert (name, state["number"]) == ("ready", number)
    assert known in [task["id"] for task in state["tasks"]]
    fresh = server.add(root, "Fresh")
    name, _, event = stream.next()
    assert (name, event["task"], event["number"] > number) == ("task.added", fresh, True)
    stream.close()


def test_a_socket_hears_the_same_after_it_has_said_who_it_is(server, root, ws):
    known = server.add(root, "Known")
    socket = ws()
    socket.send({"type": "auth", "token": root})
    hello, state = socket.next(), socket.next()
    assert (hello["type"], len(hello["uid"])) == ("authenticated", 24)
    assert (state["type"], state["number"]) == ("state", hello["number"])
    assert known in [task["id"] for task in state["tasks"]]
    fresh = server.add(root, "Fresh")
    said = socket.next()
    assert (said["type"], said["event"]["type"]) == ("task_updated", "task.added")
    assert said["event"]["task"] == fresh
    assert said["number"] == said["event"]["number"] > hello["number"]


@pytest.mark.parametrize(
    "first",
    [
        {"type": "ping"},
        {"type": "subscribe", "chatId": "team"},
        {"type": "auth"},
        {"type": "auth", "token": "a.b.c"},
        {"type": "auth", "token": 7},
        b"[]",
        b"{",
    ],
)
def test_nothing_is_answered_before_that(server, ws, first):
    socket = ws()
    socket.send(first)
    said = socket.next()
    assert (said["type"], bool(said["message"])) == ("error", True)
    assert socket.next() is None
    assert socket.closed == 1008


def test_bytes_that_are_no_text_end_a_socket_and_nothing_else(server, root, ws):
    wrong, right = ws(), ws()
    right.auth(root)
    wrong.send(b'{"type": "auth", "token": "\xff"}')
    assert wrong.next() is None
    right.send({"type": "ping"})
    assert right.until("pong")


def test_who_says_nothing_is_not_waited_for(strict):
    socket = Ws(strict.port)
    assert "The socket did not authenticate in time" in socket.next()["message"]
    assert socket.next() is None
    assert socket.closed == 1008
    socket.close()


@pytest.mark.parametrize("name", ["token", "access_token", "Authorization"])
def test_a_token_in_an_address_is_refused_with_a_sentence(server, root, ws, name):
    status, said = server.ask("GET", f"/events?{name}={root}", token=root)
    assert (status, said["code"]) == (422, "token_in_url")
    assert "revoke" in said["fix"]
    socket = ws(f"/ws?{name}={root}")
    assert socket.status == 422
    assert b"token_in_url" in socket.file.read()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ("Origin: http://evil.example\r\n", 403),
        ("Origin: null\r\n", 403),
        ("Host: evil.example\r\n", 421),
    ],
)
def test_a_page_of_another_site_gets_no_socket(server, ws, headers, status):
    assert ws(headers=headers).status == status


def test_a_page_of_this_server_gets_one(server, ws):
    assert ws(headers=f"Origin: http://127.0.0.1:{server.port}\r\n").status == 101


def test_without_an_upgrade_it_is_said_what_the_path_is_for(server):
    status, said = server.ask("GET", "/ws")
    assert (status, said["code"]) == (426, "no_socket")


def test_ping_is_answered_and_what_nobody_knows_is_an_error(server, root, ws):
    socket = ws()
    socket.auth(root)
    socket.send({"type": "ping"})
    assert socket.until("pong")[-1] == {"type": "pong"}  # that somebody was seen may come first
    for wrong in ({"type": "dance"}, {"type": "subscribe"}, {"type": "auth", "token": root}, b"{"):
        socket.send(wrong)
        assert socket.until("error")[-1]["message"]
    socket.send({"type": "ping"})
    assert socket.until("pong")[-1] == {"type": "pong"}


@pytest.fixture
def forgetful(tmp_path):
    """A server of its own, whose events one may remove."""
    made = Inside(tmp_path)
    yield made
    made.end()


def test_who_missed_events_that_are_gone_is_told_to_start_from_the_state(forgetful):
    server, token = forgetful, forgetful.token("root")
    for title in ("One", "Two", "Three"):
        task = server.add(token, title)
        server.ask("POST", "/v1/task/cancel", {"task": task}, token=token)
    store = server.another_store()
    last = store.events(limit=1, newest=True)[-1].number
    while store.forget_events(upto=last, limit=100):
        pass
    first = store.first_event()
    store.close()
    assert first > 2
    status, reply = server.ask("GET", "/events?after=1", token=token)
    assert (status, reply["code"]) == (422, "events_gone")
    assert f"the oldest kept is {first}" in reply["detail"], reply
    socket = Ws(server.port)
    socket.send({"type": "auth", "token": token, "after": 1})
    assert socket.next()["code"] == "events_gone"
    socket.close()
    stream = Sse(server.port, token, first - 1)
    assert stream.status == 200
    stream.close()


@pytest.mark.parametrize("after", [10**15, "x", -1, 10**30])
def test_a_number_that_no_event_has_is_refused(server, root, ws, after):
    status, said = server.ask("GET", f"/events?after={after}", token=root)
    assert (status, said["code"] in {"bad_input", "no_such_event"}) == (422, True)
    socket = ws()
    socket.send({"type": "auth", "token": root, "after": after})
    assert socket.next()["type"] == "error"
    assert socket.next() is None


def test_a_reader_goes_on_from_the_number_it_saw_last(server, root, ws):
    start = newest(server, root)
    tasks = [server.add(root, f"Number {n}") for n in range(6)]
    stream = Sse(server.port, root, start)
    first = stream.events(2)
    stream.close()
    socket = ws()
    socket.auth(root, after=first[-1]["number"])
    then = [socket.next()["event"] for _ in range(2)]
    stream = Sse(server.port, root, then[-1]["number"])
    last = stream.events(2)
    stream.close()
    assert [e["task"] for e in (*first, *then, *last)] == tasks


def test_a_team_hears_only_its_own(server, root, ws):
    red, blue = (server.token("ann", "team-lead", team) for team in ("red", "blue"))
    socket, stream = ws(), Sse(server.port, blue)
    socket.auth(blue)
    stream.next()
    theirs, ours = server.add(red, "Theirs"), server.add(blue, "Ours")
    heard = [said["event"]["task"] for said in socket.until("task_updated") if "event" in said]
    assert (theirs in heard, heard[-1]) == (False, ours)
    while (event := stream.next())[0] != "task.added":
        pass
    assert event[2]["task"] == ours
    stream.close()
    for topic in (theirs, "t-999999", ours):  # theirs is as if there were none
        socket.send({"type": "subscribe", "topic": topic})
        assert socket.until("subscribed")[-1]["topic"] == topic
    server.ok(red, "message.comment", task=theirs, text="Secret")
    server.ok(blue, "message.comment", task=ours, text="Open")
    assert socket.until("new_message")[-1]["message"]["text"] == "Open"


def test_what_is_said_is_heard_by_who_subscribed_to_where_it_is_said(server, ws):
    ann = server.token("ann", "team-lead", "red")
    one, other = server.add(ann, "One"), server.add(ann, "Other")
    socket = ws()
    uid = socket.auth(ann)["uid"]
    socket.send({"type": "subscribe", "chatId": one, "uid": uid})
    assert socket.until("subscribed")[-1]["chatId"] == one
    server.ok(ann, "message.comment", task=other, text="Elsewhere")
    server.ok(ann, "message.comment", task=one, text="Here")
    said = [s for s in socket.until("new_message") if s["type"] == "new_message"]
    assert [(s["message"]["text"], s["event"]["type"]) for s in said] == [
        ("Here", "message.posted")
    ]
    socket.send({"type": "unsubscribe", "chatId": one})
    assert socket.next() == {"type": "unsubscribed", "topic": one, "chatId": one}
    server.ok(ann, "message.comment", task=one, text="Not any more")
    socket.send({"type": "ping"})
    assert socket.next() == {"type": "pong"}


def test_nobody_subscribes_as_somebody_else(server, root, ws):
    socket = ws()
    socket.auth(root)
    socket.send({"type": "subscribe", "chatId": "team", "uid": "0" * 24})
    assert socket.next()["code"] == "forged"


def test_a_subscription_brings_what_was_said_since_once(server, ws):
    ann = server.token("cleo", "team-lead", "green")
    task = server.add(ann, "Talk")
    start = newest(server, ann)
    for n in range(3):
        server.ok(ann, "message.comment", task=task, text=f"Before {n}")
    socket = ws()
    socket.auth(ann)
    for topic in (task, "team", task):
        socket.send({"type": "subscribe", "topic": topic, "after": start})
    server.ok(ann, "message.comment", task=task, text="After")
    heard, done = [], 0
    while done < 3 or "After" not in heard:
        said = socket.next()
        done += said["type"] == "subscribed"
        if said["type"] == "new_message":
            heard.append(said["message"]["text"])
    assert heard == ["Before 0", "Before 1", "Before 2", "After"]


def test_a_wider_subscription_brings_what_a_narrower_one_came_too_late_for(server, ws):
    fay = server.token("fay", "team-lead", "teal")
    task = server.add(fay, "Talk")
    start = newest(server, fay)
    server.ok(fay, "message.comment", task=task, text="Before")
    socket = ws()
    socket.auth(fay, topics=[task])
    socket.send({"type": "subscribe", "topic": "team", "after": start})
    said = socket.until("subscribed")
    assert [s["message"]["text"] for s in said if s["type"] == "new_message"] == ["Before"]


def test_topics_can_be_named_when_one_comes_back(server, ws):
    ann = server.token("dora", "team-lead", "gold")
    task = server.add(ann, "Talk")
    start = newest(server, ann)
    server.ok(ann, "message.comment", task=task, text="Meanwhile")
    socket = ws()
    socket.auth(ann, after=start, topics=["team"])
    assert socket.until("new_message")[-1]["message"]["text"] == "Meanwhile"


def test_private_words_are_read_by_whom_they_are_for(server, ws):
    ann, bob, eve = (
        server.token(name, role, "grey")
        for name, role in (("ann", "team-lead"), ("bob", "worker"), ("eve", "worker"))
    )
    sockets = {}
    for name, token in (("ann", ann), ("bob", bob), ("eve", eve)):
        sockets[name] = ws()
        sockets[name].auth(token, topics=["team"])
    server.ok(ann, "mail.send", to="bob", text="A secret")
    found = {name: s.until("new_message")[-1] for name, s in sockets.items()}
    assert found["bob"]["message"]["text"] == found["ann"]["message"]["text"] == "A secret"
    assert "message" not in found["eve"]


def test_a_chat_is_heard_by_those_who_are_in_it(server, ws):
    people = {
        name: server.token(name, role, "plum")
        for name, role in (("ann", "team-lead"), ("bob", "worker"), ("eve", "worker"))
    }
    for token in people.values():
        server.ok(token, "member.seen")
    chat = server.ok(people["bob"], "chat.open", members=["eve"])["id"]
    sockets = {name: ws() for name in people}
    for name, socket in sockets.items():
        socket.auth(people[name], topics=["team"])
    for name in ("ann", "eve"):
        sockets[name].send({"type": "subscribe", "chatId": chat})
    assert f"no chat '{chat}'" in sockets["ann"].next()["message"]
    assert sockets["eve"].next()["chatId"] == chat
    server.ok(people["bob"], "chat.say", chat=chat, text="Between us")
    found = {name: socket.until("new_message")[-1] for name, socket in sockets.items()}
    assert {found[name]["chatId"] for name in found} == {chat}
    assert found["bob"]["message"]["text"] == found["eve"]["message"]["text"] == "Between us"
    assert "message" not in found["ann"]


def test_events_have_the_names_that_older_clients_know(server, ws):
    ann, bob = server.token("ann", "team-lead", "pink"), server.token("bob", "worker", "pink")
    server.ok(bob, "member.seen")
    socket = ws()
    socket.auth(ann, topics=["team"])
    swarm = server.ok(ann, "swarm.create", name="Builders")["id"]
    task = server.add(ann, "Build")
    server.ok(ann, "task.assign", task=task, assignee="bob")
    server.ok(ann, "board.post", task=swarm, payload={"text": "Green"})
    server.ok(ann, "message.comment", task=task, text="Mind the tests")
    server.ok(ann, "mail.broadcast", text="Hello all")
    server.ok(ann, "task.cancel", task=task)
    server.ok(ann, "swarm.kill", swarm=swarm)
    said = [s for s in socket.until("swarm_killed") if s["type"] != "event"]
    assert [(s["type"], s["event"]["type"]) for s in said] == [
        ("swarm_created", "task.added"),
        ("task_updated", "task.added"),
        ("task_assigned", "task.assigned"),
        ("blackboard_message", "board.posted"),
        ("new_message", "message.posted"),
        ("broadcast", "mail.broadcast"),
        ("task_updated", "task.cancelled"),
        ("swarm_killed", "swarm.ended"),
    ]
    assert said[3]["message"]["data"]["payload"] == {"text": "Green"}


def test_a_token_that_ends_takes_its_readers_with_it(server, root, ws):
    made = server.ok(root, "token.create", name="gone", role="monitor")
    sockets, streams = [], []
    for token in (made["token"], server.token("short", "monitor", seconds=3.0 - LEEWAY)):
        sockets.append(ws())
        sockets[-1].auth(token)
        streams.append(Sse(server.port, token))
        streams[-1].next()
    server.ok(root, "token.revoke", token=made["id"])
    for stream, socket, code in zip(
        streams, sockets, ("revoked_token", "expired_token"), strict=True
    ):
        said = socket.until("error")[-1]
        assert (said["code"], socket.next(), socket.closed) == (code, None, 1008)
        while (event := stream.next())[0] != "ended":
            pass
        assert (event[2]["code"], stream.next()) == (code, None)
        assert said["after"] > 0
        stream.close()


def test_a_reader_that_speaks_http_1_0_gets_the_stream_without_chunks(server, root):
    from tests.integration.listeners import connected

    sock = connected(server.port)
    sock.sendall(
        f"GET /events HTTP/1.0\r\nHost: 127.0.0.1:{server.port}\r\n"
        f"Authorization: Bearer {root}\r\n\r\n".encode()
    )
    task = None
    text = b""
    while task is None or b'"task":"%s"' % task.encode() not in text:
        text += sock.recv(65536)
        if task is None and b"event: ready" in text:
            task = server.add(root)
    body = text.partition(b"\r\n\r\n")[2]
    assert body.startswith(b"retry: 1000\nid: ")
    sock.close()


def test_head_ends(server, root):
    assert server.ask("HEAD", "/events", token=root)[0] == 200


def test_a_socket_that_does_not_answer_pings_is_dropped(strict):
    root = strict.token("root")
    deaf, alive = Ws(strict.port), Ws(strict.port)
    alive.auth(root)
    reading = threading.Thread(target=alive.until, args=("pong",))  # it answers as it reads
    reading.start()
    deaf.auth(root)
    deaf.answers = False
    while deaf.next() is not None:
        pass
    assert deaf.closed == 1011
    alive.send({"type": "ping"})
    reading.join(LIMIT)
    assert (reading.is_alive(), alive.closed) == (False, None)
    until(lambda: len(strict.streams) == 1)
    deaf.close()
    alive.close()
