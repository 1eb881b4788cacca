"""Bad people: tokens that are none, names that are others', work where nobody said it may be."""

from __future__ import annotations

import time
from dataclasses import replace

import jwt
import pytest

from fleet.adapters.stores.sql import SqlStore
from fleet.adapters.stores.sqlite import Sqlite
from fleet.domain.access import Actor, Role, claims_of
from fleet.domain.choice import Choice
from fleet.domain.run import Run, RunState
from fleet.domain.task import TaskState
from fleet.ports import Put
from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.integration.hostile import HostileTeam
from tests.wait import until

LIST, ADD = "/v1/task/list", "/v1/task/add"


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = HostileTeam(tmp_path_factory.mktemp("people"))
    yield made
    assert made.served.ask("GET", "/health")[0] == 200
    made.served.end()


@pytest.fixture(scope="module")
def key(team):
    return bytes.fromhex((team.served.cwd / "home" / "server.key").read_text().strip())


def claims(role="coordinator", run="", until=600, **others):
    now = int(time.time())
    actor = Actor("mallory", Role(role), "red", run)
    return claims_of(actor, "f" * 16, at=now, until=now + until) | others


def refused(team, token: str) -> str:
    """Everywhere, and with the same words."""
    codes = set()
    asks = [("GET", LIST), ("POST", ADD), ("GET", "/swarms"), ("POST", "/mail"), ("POST", "/mcp"),
            ("GET", "/events"), ("GET", "/metrics/json")]  # fmt: skip
    for method, path in asks:
        status, said = team.served.ask(method, path, {} if method == "POST" else None, token=token)
        assert status == 401, (path, said)
        assert said["fix"]
        codes.add(said["code"])
    (code,) = codes
    return code


def test_a_token_that_nobody_here_signed_is_none(team, key):
    none = jwt.encode(claims(), None, algorithm="none")
    stripped = jwt.encode(claims(), key, algorithm="HS256").rpartition(".")[0] + "."
    forged = [none, stripped, jwt.encode(claims(), b"k" * 32, algorithm="HS256"),
              jwt.encode(claims(), key * 2, algorithm="HS512"), "x", "a.b.c", "." * 5000,
              "e" * 30_000]  # fmt: skip
    assert {refused(team, token) for token in forged} == {"bad_token"}


ODD = {
    "a role that is none": {"role": "god"},
    "for somebody else": {"aud": "other"},
    "an end that is no time": {"exp": "x"},
    "not yet": {"nbf": 1 << 40},
    **{f"no {name}": {name: None} for name in ("exp", "jti", "sub", "role", "team", "aud")},
}


@pytest.mark.parametrize("odd", ODD)
def test_a_token_that_does_not_say_all_is_none(team, key, odd):
    said = {name: held for name, held in (claims() | ODD[odd]).items() if held is not None}
    assert refused(team, jwt.encode(said, key, algorithm="HS256")) == "bad_token"


def test_a_token_whose_time_is_over_is_refused_as_such(team, key):
    assert refused(team, jwt.encode(claims(until=-90), key, algorithm="HS256")) == "expired_token"


def test_the_token_of_a_run_ends_with_the_run(team, key):
    task = team.ok("ann", "POST", ADD, {"title": "Runs"})["data"]["id"]
    token = jwt.encode(claims("worker", run=f"{task}.1"), key, algorithm="HS256")
    never = jwt.encode(claims("worker", run="t-999999.1"), key, algorithm="HS256")
    assert refused(team, never) == "stale_run"
    store = SqlStore(Sqlite(team.served.cwd / "home" / "fleet.db"))
    held = store.task(task)
    run = Run(f"{task}.1", 0, task, RunState.RUNNING, Choice("a", "c", "m"), "h", "#1", 5)
    going = replace(held, state=TaskState.RUNNING, tally=replace(held.tally, runs=1))
    held, run = store.commit([Put(going), Put(run)], [])
    later = jwt.encode(
        claims("worker", run=f"{task}.1") | {"jti": "a" * 16}, key, algorithm="HS256"
    )
    until(lambda: team.served.ask("GET", LIST, token=later)[0] == 200)
    comment = {"task": task, "text": "Half done"}
    assert team.served.ask("POST", "/v1/message/comment", comment, token=later)[0] == 201
    store.commit([Put(replace(run, state=RunState.ENDED, ended_at=9))], [])
    until(lambda: team.served.ask("GET", "/metrics/json", token=token)[0] == 401)
    assert refused(team, later) == "stale_run"
    store.close()


FORGED = {
    "/tasks": {"toHandle": "bob", "subject": "x", "fromUid": "0" * 24},
    "/spawn-queue": {"task": "x", "requesterHandle": "ann"},
    "/mail": {"to": "ann", "body": "x", "from": "ann"},
    "/blackboard": {
        "swarmId": "SWARM",
        "messageType": "status",
        "payload": {},
        "senderHandle": "ann",
    },
    "/blackboard/mark-read": {"messageIds": ["m-1"], "readerHandle": "ann"},
    "/checkpoints": {"goal": "g", "now": "n", "fromHandle": "ann"},
    "/memory/store": {"key": "k", "value": "v", "agentId": "ann"},
    "/teams/red/broadcast": {"message": "x", "from": "bob"},
    "/v1/mail/send": {"to": "ann", "text": "x", "sender": "ann"},
    "/v1/mail/broadcast": {"text": "x", "sender": "bob"},
    "/v1/board/post": {"task": "SWARM", "payload": {}, "sender": "ann"},
    "/v1/board/mark_read": {"posts": ["m-1"], "reader": "ann"},
    "/v1/checkpoint/save": {"summary": {"goal": "g", "now": "n"}, "sender": "ann"},
    "/v1/memory/store": {"key": "k", "value": "v", "agent": "ann"},
    "/v1/agent/spawn": {"handle": "x", "prompt": "x", "sender": "bob"},
    "/chats": {"uid1": "0" * 24, "uid2": "1" * 24},
}
LEADS = ("/spawn-queue", "/teams/red/broadcast", "/v1/mail/broadcast", "/v1/agent/spawn")


@pytest.mark.parametrize("path", FORGED)
def test_nobody_speaks_as_somebody_else(team, path):
    """Bob as Ann; where he may not speak at all, Ann as Bob."""
    swarm = team.ok("ann", "POST", "/v1/swarm/create", {"name": "Forged"})["data"]["id"]
    body = {name: swarm if held == "SWARM" else held for name, held in FORGED[path].items()}
    if path in LEADS:
        body = {name: "bob" if held == "ann" else held for name, held in body.items()}
    status, said = team.ask("ann" if path in LEADS else "bob", "POST", path, body)
    assert (status, said["code"]) == (403, "forged"), said


def test_a_team_neither_reads_nor_changes_what_is_anothers(team):
    swarm = team.ok("ann", "POST", "/swarms", {"name": "Ours"})["id"]
    task = team.ok("ann", "POST", ADD, {"title": "Ours"})["data"]["id"]
    mail = team.ok("ann", "POST", "/mail", {"to": "bob", "body": "secret"})["id"]
    saved = team.ok("ann", "POST", "/checkpoints", {"goal": "g", "now": "n"})["id"]
    team.ok("ann", "POST", "/memory/store", {"key": "k", "value": "secret"})
    post = {"swarmId": swarm, "messageType": "status", "payload": {"a": "secret"}}
    posted = team.ok("ann", "POST", "/blackboard", post)["id"]
    asks = [
        ("GET", f"/tasks/{task}", None), ("PATCH", f"/tasks/{task}", {"status": "resolved"}),
        ("GET", f"/swarms/{swarm}", None), ("POST", f"/swarms/{swarm}/kill", {}),
        ("GET", f"/blackboard/{swarm}", None), ("POST", "/blackboard", post),
        ("POST", "/blackboard/mark-read", {"messageIds": [posted]}),
        ("POST", "/blackboard/archive", {"messageIds": [posted]}),
        ("POST", f"/mail/{mail}/read", {}), ("GET", f"/checkpoints/{saved}", None),
        ("POST", f"/checkpoints/{saved}/accept", {}), ("GET", "/teams/red/tasks", None),
        ("GET", "/teams/red/agents", None), ("POST", "/teams/red/broadcast", {"message": "x"}),
        ("POST", f"/orchestrate/dismiss/{task}", {}), ("DELETE", f"/spawn-queue/{task}", None),
        ("POST", f"/orchestrate/send/{task}", {"message": "x"}), ("GET", f"/spawn-queue/{task}", None),
        ("GET", f"/orchestrate/output/{task}", None), ("GET", f"{LIST}?team=red", None),
        ("GET", f"{LIST}?before={task}", None), ("GET", f"/v1/task/ready?before={task}", None),
        ("GET", f"/v1/agent/list?before={task}", None), ("GET", f"/v1/task/issues?before={task}", None),
        ("POST", ADD, {"title": "x", "team": "red"}), ("POST", ADD, {"title": "x", "after": [task]}),
        ("POST", ADD, {"title": "x", "parent": swarm}), ("GET", "/memory/recall/ann/k", None),
        ("POST", "/v1/memory/recall", {"key": "k", "agent": "ann", "team": "red"}),
        ("POST", "/v1/token/create", {"name": "x", "team": "red"}),
        ("POST", "/tasks", {"toHandle": "x", "subject": "x", "teamName": "red"}),
    ]  # fmt: skip
    for method, path, body in asks:
        status, said = team.ask("eve", method, path, body)
        assert status in {403, 404}, (path, said)
        assert "secret" not in str(said)
    for path in (
        "/mail/bob",
        "/memory/ann",
        "/checkpoints/list/ann",
        "/swarms",
        "/orchestrate/workers",
    ):
        status, said = team.ask("eve", "GET", path)
        assert status in {200, 403}
        assert "secret" not in str(said)
        assert task not in str(said)


def spawned(repo, **others) -> dict:
    return {"handle": "x", "prompt": "x", "cwd": str(repo)} | others


def test_only_a_coordinator_names_a_command_or_any_directory(team, tmp_path):
    """What a request has run is as much as a shell on the server's machine."""
    (tmp_path / "way").symlink_to("/etc")
    outside = [
        "/etc",
        "/",
        str(tmp_path),
        f"{team.repo}/../../..",
        "relative",
        "~",
        f"{tmp_path}/way",
    ]
    for place in outside:
        for path, body in (
            (ADD, {"title": "x", "spec": {"cwd": place}}),
            (ADD, {"title": "x", "project": place}),
            ("/v1/agent/spawn", spawned(place)),
            ("/v1/swarm/create", {"name": "x", "project": place}),
            ("/orchestrate/spawn", {"handle": "x", "workingDir": place, "initialPrompt": "x"}),
        ):
            status, said = team.ask("ann", "POST", path, body)
            assert (status, said["code"]) == (404, "no_such_place"), (path, place, said)
    for spec in ({"gate": "id"}, {"in_place": True}):
        for who in ("ann", "bob"):
            status, said = team.ask(who, "POST", ADD, {"title": "x", "spec": spec})
            assert (status, said["code"]) == (403, "not_from_outside")
        team.ok("root", "POST", ADD, {"title": "x", "spec": spec})
    team.ok("root", "POST", ADD, {"title": "x", "project": str(tmp_path)})
    team.ok("ann", "POST", ADD, {"title": "x", "spec": {"cwd": str(team.repo)}})


def test_where_a_team_has_work_it_may_have_more(team, tmp_path):
    below = {"title": "x", "project": str(tmp_path / "project" / "src")}
    assert team.ask("ann", "POST", ADD, below)[0] == 404
    team.ok(
        "root", "POST", ADD, {"title": "x", "project": str(tmp_path / "project"), "team": "red"}
    )
    team.ok("ann", "POST", ADD, below)
    assert team.ask("eve", "POST", ADD, below)[1]["code"] == "no_such_place"


def test_a_tool_names_no_more_than_a_path_does(team):
    call = {"name": "team_spawn", "arguments": {"handle": "x", "prompt": "x", "workingDir": "/etc"}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    status, said = team.ask("ann", "POST", "/mcp", asked, headers=accept)
    assert (status, said["result"]["isError"]) == (200, True)
    assert said["result"]["structuredContent"]["code"] == "no_such_place"


@pytest.mark.parametrize("session", ["--help", "../x", "a b", "x" * 201, "a/b", "$(id)"])
def test_a_session_is_a_word_that_no_program_takes_for_an_option(team, session):
    status, said = team.ask("ann", "POST", "/v1/agent/spawn", spawned(team.repo, session=session))
    assert (status, said["code"]) == (422, "bad_input")


@pytest.mark.parametrize(
    "spec",
    [{"model": "--x"}, {"agent": "-x"}, {"base": "--x"}, {"branch": "../x"}, {"branch": "-x"}],
)
def test_no_name_is_taken_for_an_option(team, spec):
    status, said = team.ask("ann", "POST", ADD, {"title": "x", "spec": spec})
    assert (status, said["code"]) == (422, "bad_input")


def test_a_key_that_came_with_another_request_is_refused(team):
    headers = {"Idempotency-Key": "once"}
    first = team.ok("ann", "POST", ADD, {"title": "Once"}, headers=headers)
    assert team.ok("ann", "POST", ADD, {"title": "Once"}, headers=headers) == first
    status, said = team.ask("ann", "POST", ADD, {"title": "Other"}, headers=headers)
    assert (status, said["code"]) == (409, "repeated")
    assert team.ok("bob", "POST", ADD, {"title": "Other"}, headers=headers) != first


def test_nobody_is_taken_for_the_person_who_runs_the_server(tmp_path):
    served = Served(Scratch(tmp_path), "--no-run")  # by ada
    token = served.token("cat", "coordinator")
    made = {"role": "worker", "team": "local"}
    _, reply = served.ask("POST", "/v1/enrolment/create", made, token=token)
    secret = reply["data"]["secret"]
    for name in ("ada", "Ada"):
        asked = {"handle": name, "teamName": "local", "secret": secret}
        status, reply = served.ask("POST", "/auth", asked)
        assert (status, reply["code"]) == (409, "taken")
    served.ask("POST", ADD, {"title": "x", "spec": {"branch": "ada"}}, token=token)
    mail = {"to": "ada", "text": "for Ada alone"}
    assert served.ask("POST", "/v1/mail/send", mail, token=token)[0] == 201
    served.end()
    assert "for Ada alone" in served.scratch("mail", "list")
