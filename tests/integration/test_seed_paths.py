"""The paths of claude-fleet's clients, with the bodies that they send, over real HTTP."""

from __future__ import annotations

import hashlib
import re

import pytest

from tests.integration.team import Team
from tests.wait import until

TASK = {
    *("id", "teamName", "subject", "description", "ownerHandle", "ownerUid", "createdByHandle"),
    *("createdByUid", "status", "blockedBy", "createdAt", "updatedAt"),
}
POST = {
    *("id", "swarmId", "senderHandle", "messageType", "targetHandle", "priority", "payload"),
    *("readBy", "createdAt", "archivedAt"),
}
CHECKPOINT = {
    *("id", "fromHandle", "toHandle", "checkpoint", "status", "outcome", "createdAt"),
    *("acceptedAt", "goal"),
}
WORKER = {
    *("id", "handle", "teamName", "state", "health", "workingDir", "sessionId", "spawnedAt"),
    *("currentTaskId", "restartCount", "spawnMode", "swarmId", "depthLevel"),
}
SPAWNED = {
    *("id", "handle", "teamName", "workingDir", "state", "spawnedAt", "spawnMode", "routing"),
}
SWARM = {"id", "name", "description", "maxAgents", "createdAt"}
MAIL = {
    *("id", "from", "to", "fromHandle", "toHandle", "subject", "body", "readAt", "createdAt"),
}
MEMORY = {"id", "agentId", "key", "value", "memoryType", "tags", "createdAt", "updatedAt"}


def uid(team: str, handle: str) -> str:
    return hashlib.sha256(f"{team}:{handle}".encode()).hexdigest()[:24]


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = Team(tmp_path_factory.mktemp("team"))
    yield made
    made.served.end()


@pytest.fixture(scope="module")
def made(team):
    """One of each thing, made by the exact bodies."""
    things = {}
    things["task"] = team.ok(
        "ann", "POST", "/tasks",
        {"fromUid": uid("red", "ann"), "toHandle": "bob", "teamName": "red",
         "subject": "Fix the login", "description": "It is broken.", "blockedBy": []},
    )  # fmt: skip
    things["swarm"] = team.ok(
        "ann", "POST", "/swarms", {"name": "Builders", "description": "All of it.", "maxAgents": 3}
    )
    things["post"] = team.ok(
        "bob", "POST", "/blackboard",
        {"swarmId": things["swarm"]["id"], "senderHandle": "bob", "messageType": "status",
         "payload": {"done": 3, "of": [1, None]}, "priority": "high"},
    )  # fmt: skip
    things["checkpoint"] = team.ok(
        "ann", "POST", "/checkpoints",
        {"fromHandle": "ann", "toHandle": "bob", "goal": "Login", "now": "Half done",
         "test": "make test", "doneThisSession": [{"task": "Form", "files": ["a.py"]}],
         "blockers": ["None"], "questions": ["Why?"], "next": ["The rest"]},
    )  # fmt: skip
    things["spawned"] = team.ok(
        "ann", "POST", "/orchestrate/spawn",
        {"handle": "fixer", "teamName": "red", "workingDir": str(team.repo),
         "initialPrompt": "Fix it.", "sessionId": "s-1", "swarmId": things["swarm"]["id"],
         "depthLevel": 1, "spawnMode": "process", "model": "opus"},
    )  # fmt: skip
    things["queued"] = team.ok(
        "ann", "POST", "/spawn-queue",
        {"requesterHandle": "ann", "targetAgentType": "scout", "task": "Look around.",
         "priority": "low", "dependsOn": [things["spawned"]["id"]]},
    )  # fmt: skip
    things["mail"] = team.ok(
        "ann", "POST", "/mail", {"from": "ann", "to": "bob", "subject": "Hi", "body": "Words."}
    )
    things["memory"] = team.ok(
        "bob", "POST", "/memory/store",
        {"agentId": "bob", "key": "db/port", "value": "It listens on 5433.",
         "memoryType": "fact", "tags": ["postgres"]},
    )  # fmt: skip
    return things


def test_the_replies_to_what_was_made_have_their_fields(made):
    task = made["task"]
    assert task.keys() == TASK
    assert (task["status"], task["ownerHandle"], task["ownerUid"]) == (
        "open",
        "bob",
        uid("red", "bob"),
    )
    assert (task["createdByHandle"], task["blockedBy"], task["teamName"]) == ("ann", [], "red")
    assert made["swarm"].keys() >= SWARM
    assert made["swarm"]["maxAgents"] == 3
    post = made["post"]
    assert post.keys() == POST
    assert (post["payload"], post["readBy"]) == ({"done": 3, "of": [1, None]}, [])
    checkpoint = made["checkpoint"]
    assert checkpoint.keys() == CHECKPOINT
    assert checkpoint["status"] == "pending"
    assert checkpoint["checkpoint"]["doneThisSession"] == [{"task": "Form", "files": ["a.py"]}]
    spawned = made["spawned"]
    assert spawned.keys() == SPAWNED
    assert (spawned["state"], spawned["routing"]["model"]) == ("starting", "opus")
    assert made["mail"].keys() == MAIL
    assert made["memory"].keys() == MEMORY


# who asks, method, path, body, and what is true of the reply
TABLE = [
    ("bob", "GET", "/teams/red/agents", None, lambda r: {m["handle"] for m in r} >= {"ann", "bob"}),
    ("bob", "GET", "/teams/red/tasks", None, lambda r: all(t.keys() == TASK for t in r)),
    ("ann", "POST", "/teams/red/broadcast", {"message": "Hear!"}, lambda r: (r["count"], r["id"][:2]) == (1, "m-")),
    ("bob", "GET", "/tasks/{task}", None, lambda r: r["subject"] == "Fix the login"),
    ("bob", "PATCH", "/tasks/{task}", {"status": "in_progress"}, lambda r: r["status"] == "in_progress"),
    ("bob", "PATCH", "/tasks/{task}", {"status": "open"}, lambda r: r["status"] == "open"),
    ("bob", "PATCH", "/tasks/{task}", {"status": "resolved"}, lambda r: r["status"] == "resolved"),
    ("ann", "PATCH", "/tasks/{task}", {"status": "open"}, lambda r: r["status"] == "open"),
    ("ann", "PATCH", "/tasks/{task}", {"status": "blocked"}, lambda r: r["status"] == "blocked"),
    ("bob", "GET", "/orchestrate/workers", None, lambda r: isinstance(r, list)),
    ("ann", "POST", "/orchestrate/send/fixer", {"message": "Faster."}, lambda r: r["success"]),
    ("bob", "GET", "/mail/bob", None, lambda r: {m["subject"] for m in r} >= {"Hi"}),
    ("bob", "GET", "/mail/bob/unread", None, lambda r: len(r) == 2),
    ("bob", "POST", "/mail/{mail}/read", None, lambda r: r["readAt"] > 0 and r["success"]),
    ("bob", "GET", "/mail/bob/unread", None, lambda r: [m["body"] for m in r] == ["Hear!"]),
    ("ann", "GET", "/blackboard/{swarm}", None, lambda r: [p["id"] for p in r] != []),
    ("ann", "GET", "/blackboard/{swarm}?messageType=request", None, lambda r: r == []),
    ("ann", "GET", "/blackboard/{swarm}?unreadOnly=true&readerHandle=ann", None, lambda r: len(r) == 1),
    ("ann", "POST", "/blackboard/mark-read", {"messageIds": ["{post}"], "readerHandle": "ann"},
     lambda r: r["count"] == r["marked"] == 1),
    ("ann", "GET", "/blackboard/{swarm}?unreadOnly=true", None, lambda r: r == []),
    ("ann", "GET", "/blackboard/{swarm}?priority=high&limit=5", None, lambda r: r[0]["readBy"] == ["ann"]),
    ("ann", "POST", "/blackboard/{swarm}/archive-old", {"maxAgeHours": 1}, lambda r: r["archived"] == 0),
    ("ann", "POST", "/blackboard/{swarm}/archive-old", {"maxAgeMs": 86400000}, lambda r: r["archived"] == 0),
    ("ann", "POST", "/blackboard/archive", {"messageIds": ["{post}"]}, lambda r: r["count"] == r["archived"] == 1),
    ("ann", "GET", "/blackboard/{swarm}", None, lambda r: r == []),
    ("ann", "GET", "/spawn-queue/status", None, lambda r: len(r["queue"]) == 2),
    ("ann", "GET", "/spawn-queue/{queued}", None, lambda r: (r["status"], r["state"]) == ("pending", "waiting")),
    ("ann", "DELETE", "/spawn-queue/{queued}", None, lambda r: r["success"]),
    ("ann", "GET", "/spawn-queue/{queued}", None, lambda r: (r["status"], r["state"]) == ("rejected", "cancelled")),
    ("bob", "GET", "/checkpoints/{checkpoint}", None, lambda r: r["fromHandle"] == "ann"),
    ("bob", "GET", "/checkpoints/latest/bob", None, lambda r: r["checkpoint"]["goal"] == "Login"),
    ("bob", "GET", "/checkpoints/list/bob", None, lambda r: len(r) == 1),
    ("bob", "POST", "/checkpoints/{checkpoint}/accept", None, lambda r: r["acceptedAt"] > 0 and r["success"]),
    ("bob", "GET", "/checkpoints/list/bob?status=pending", None, lambda r: r == []),
    ("bob", "GET", "/swarms", None, lambda r: [s["name"] for s in r] == ["Builders"]),
    ("bob", "GET", "/swarms?includeAgents=true", None, lambda r: isinstance(r[0]["agents"], list)),
    ("bob", "GET", "/swarms/{swarm}", None, lambda r: (r["maxAgents"], r["agents"]) == (3, [])),
    ("bob", "GET", "/memory/recall/bob/db/port", None, lambda r: r["value"].endswith("5433.")),
    ("ann", "POST", "/memory/search", {"query": "POSTGRES listens"}, lambda r: len(r["results"]) == 1),
    ("ann", "POST", "/memory/search", {"query": "mysql"}, lambda r: r == {"results": []}),
    ("bob", "GET", "/memory/bob", None, lambda r: [m["key"] for m in r["memories"]] == ["db/port"]),
    ("ann", "POST", "/orchestrate/dismiss/fixer", None, lambda r: r["success"]),
    ("ann", "POST", "/swarms/{swarm}/kill", {"graceful": True}, lambda r: r["success"] and r["id"] == r["swarmId"]),
]  # fmt: skip


def filled(value, made):
    """With the ids of what was made in place of the names."""
    if isinstance(value, str) and "{" in value:
        return value.format(**{name: thing["id"] for name, thing in made.items()})
    if isinstance(value, dict):
        return {key: filled(inner, made) for key, inner in value.items()}
    return [filled(inner, made) for inner in value] if isinstance(value, list) else value


def test_each_path_takes_its_body_and_replies_with_its_fields(team, made):
    team.ok("bob", "GET", "/swarms")  # so that bob has been seen
    for who, method, path, body, is_right in TABLE:
        reply = team.ok(who, method, filled(path, made), filled(body, made))
        assert is_right(reply), (method, path, reply)


def test_a_task_for_nobody_is_queued_and_one_for_a_member_is_theirs(team):
    theirs = team.ok("ann", "POST", "/tasks", {"subject": "By hand", "toHandle": "bob"})
    queued = team.ok("ann", "POST", "/tasks", {"subject": "By a run", "toHandle": None})
    assert (theirs["ownerHandle"], theirs["status"]) == ("bob", "open")
    assert (queued["ownerHandle"], queued["ownerUid"], queued["status"]) == (None, None, "open")
    ready = {row["id"] for row in team.ok("ann", "GET", "/v1/task/ready")["data"]}
    assert queued["id"] in ready
    assert theirs["id"] not in ready
    assert team.ok("ann", "GET", f"/tasks/{queued['id']}") == queued
    detail = team.ok("ann", "GET", f"/v1/task/show?task={queued['id']}")["data"]
    assert detail["task"]["project"] == str(team.repo.parent)  # the one that the server is in
    for task in (queued, theirs):
        team.ok("ann", "POST", "/v1/task/cancel", {"task": task["id"]})


def test_who_may_not_add_a_task_may_not_queue_one_here(team):
    team.join("max", "monitor", "red")
    for path, body in (("/tasks", {"subject": "x"}), ("/v1/task/add", {"title": "x"})):
        status, said = team.ask("max", "POST", path, body)
        assert (status, said["code"]) == (403, "forbidden")
    status, said = team.ask("bob", "POST", "/tasks", {"subject": "x", "teamName": "blue"})
    assert (status, said["code"]) == (403, "forbidden")


def test_the_description_of_the_paths_says_that_nobody_need_be_named(team):
    document = team.ok("ann", "GET", "/openapi.json")
    body = document["components"]["schemas"]["TaskBody"]
    assert (body["required"], "toHandle" in body["properties"]) == (["subject"], True)


FORGED = [
    ("POST", "/tasks", {"fromUid": uid("red", "ann"), "toHandle": "x", "subject": "Abc"}),
    ("POST", "/mail", {"from": "ann", "to": "x", "body": "Words."}),
    ("POST", "/blackboard", {"swarmId": "{swarm}", "senderHandle": "ann", "messageType": "status",
                             "payload": {}}),
    ("POST", "/blackboard/mark-read", {"messageIds": ["{post}"], "readerHandle": "ann"}),
    ("POST", "/checkpoints", {"fromHandle": "ann", "toHandle": "x", "goal": "g", "now": "n"}),
    ("POST", "/memory/store", {"agentId": "ann", "key": "k", "value": "v"}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body"), FORGED, ids=[path for _, path, _ in FORGED])
def test_nobody_speaks_as_somebody_else(team, made, method, path, body):
    status, said = team.ask("bob", method, path, filled(body, made))
    assert (status, said["code"]) == (403, "forged")


THEIRS = [
    ("GET", "/teams/red/agents", None), ("GET", "/teams/red/tasks", None),
    ("POST", "/teams/red/broadcast", {"message": "Hear!"}), ("GET", "/tasks/{task}", None),
    ("PATCH", "/tasks/{task}", {"status": "resolved"}),
    ("POST", "/tasks", {"toHandle": "bob", "teamName": "red", "subject": "Mine"}),
    ("POST", "/orchestrate/spawn", {"handle": "x", "teamName": "red", "initialPrompt": "x"}),
    ("POST", "/orchestrate/spawn", {"handle": "x", "swarmId": "{swarm}", "initialPrompt": "x"}),
    ("POST", "/orchestrate/dismiss/{spawned}", None),
    ("POST", "/orchestrate/send/{spawned}", {"message": "Stop."}),
    ("GET", "/orchestrate/output/{spawned}", None),
    *(("POST", "/orchestrate/worktree/{spawned}/" + what, body) for what, body in (
        ("commit", {"message": "x"}), ("push", None), ("merge", None),
        ("pr", {"title": "x", "body": "x"}))),
    ("GET", "/orchestrate/worktree/{spawned}/status", None),
    ("POST", "/blackboard", {"swarmId": "{swarm}", "messageType": "status", "payload": {}}),
    ("GET", "/blackboard/{swarm}", None), ("POST", "/blackboard/{swarm}/archive-old", {}),
    ("POST", "/blackboard/mark-read", {"messageIds": ["{post}"]}),
    ("POST", "/blackboard/archive", {"messageIds": ["{post}"]}),
    ("POST", "/spawn-queue", {"task": "x", "swarmId": "{swarm}"}),
    ("GET", "/spawn-queue/{queued}", None), ("DELETE", "/spawn-queue/{queued}", None),
    ("GET", "/swarms/{swarm}", None), ("POST", "/swarms/{swarm}/kill", None),
    ("GET", "/checkpoints/{checkpoint}", None), ("POST", "/checkpoints/{checkpoint}/accept", None),
    ("POST", "/checkpoints/{checkpoint}/reject", None), ("POST", "/mail/{mail}/read", None),
    ("POST", "/chats", {"teamName": "red"}),
]  # fmt: skip


@pytest.mark.parametrize(("method", "path", "body"), THEIRS)
def test_another_team_sees_and_changes_nothing(team, made, method, path, body):
    asked = filled(path, made), filled(body, made)
    status, said = team.ask("eve", method, *asked)
    if asked == (path, body):  # it names the team, not an id
        assert status == 403, said
        return
    nothing = {
        name: {"id": re.sub("[0-9]+", "999999", str(thing["id"]))} for name, thing in made.items()
    }
    other = team.ask("eve", method, filled(path, nothing), filled(body, nothing))
    assert without_ids(status, said) == without_ids(*other)
    assert status == 404


def without_ids(status: int, said: dict) -> tuple:
    return status, re.sub(r"\b([tm])-[0-9]+", r"\1-N", str({**said, "instance": ""}))


def test_lists_of_another_team_are_empty(team, made):
    assert team.ok("eve", "GET", "/swarms") == []
    assert team.ok("eve", "POST", "/memory/search", {"query": "listens"}) == {"results": []}
    assert team.ok("eve", "GET", "/mail/bob") == []
    assert team.ok("eve", "GET", "/memory/bob") == {"memories": []}
    assert team.ok("eve", "GET", "/spawn-queue/status")["queue"] == []
    assert team.ok("eve", "GET", "/orchestrate/workers") == []
    assert team.ask("eve", "GET", "/memory/recall/bob/db/port")[0] == 404
    assert team.ask("eve", "GET", "/checkpoints/latest/bob")[0] == 404


def test_what_nobody_knows_and_what_does_not_fit_is_said(team):
    status, said = team.ask("ann", "POST", "/swarms", {"name": "x", "maxAgent": 3})
    assert (status, said["code"]) == (422, "bad_input")
    assert "maxAgents" in said["fix"]
    assert team.ask("ann", "POST", "/swarms", {"name": "x", "maxAgents": 0})[0] == 422
    assert team.ask("ann", "POST", "/swarms", {"name": "x", "maxAgents": "3"})[0] == 422
    assert team.ask("ann", "GET", "/swarms?limit=100000")[0] == 422
    assert team.ask("ann", "POST", "/swarms", b"{")[1]["code"] == "not_json"


def test_an_error_has_the_field_that_claude_fleets_clients_read(team):
    for path in ("/swarms/t-999999", "/checkpoints/999999"):
        status, said, headers = team.asked("ann", "GET", path)
        assert (status, said["error"]) == (404, said["detail"])
        assert headers["content-type"] == "application/json"
    status, said = team.served.ask("GET", "/swarms")
    assert (status, said["error"]) == (401, "No token was sent.")
    status, said = team.served.ask("POST", "/auth", {"handle": "x"})
    assert (status, "error" in said) == (401, True)


def test_mail_and_checkpoints_are_numbered_as_claude_fleet_numbers_them(team):
    mail = team.ok("ann", "POST", "/mail", {"to": "ann", "body": "For me."})["id"]
    asked = {"goal": "Numbers", "now": "Here", "toHandle": "ann"}
    checkpoint = team.ok("ann", "POST", "/checkpoints", asked)["id"]
    assert isinstance(mail, int)
    assert isinstance(checkpoint, int)
    assert team.ok("ann", "POST", f"/mail/{mail}/read")["id"] == mail
    assert team.ok("ann", "GET", f"/checkpoints/m-{checkpoint}")["goal"] == "Numbers"
    rejected = team.ok("ann", "POST", f"/checkpoints/{checkpoint}/reject", {"reason": "Old."})
    assert (rejected["success"], rejected["outcome"]) == (True, "Old.")


def test_a_request_with_a_key_is_carried_out_once(team):
    body = {"to": "carol", "subject": "Once", "body": "Words."}
    key = {"Idempotency-Key": "k-1"}
    first = team.ok("ann", "POST", "/mail", body, headers=key)
    again = team.ok("ann", "POST", "/mail", body, headers=key)
    assert again == first
    assert team.ok("ann", "POST", "/v1/mail/send", {"to": "carol", "text": "x"})["data"]["id"]
    assert len(team.ok("ann", "GET", "/mail/carol")) == 2
    status, said = team.ask("ann", "POST", "/mail", body | {"body": "Others."}, headers=key)
    assert (status, said["code"]) == (409, "repeated")
    other = team.ok("bob", "POST", "/mail", body, headers=key)
    assert other["id"] != first["id"]


def test_a_key_that_is_none_is_refused_where_nothing_is_written_too(team):
    key = {"Idempotency-Key": "two words"}
    status, said = team.ask("ann", "POST", "/memory/search", {"query": "x"}, headers=key)
    assert (status, said["code"]) == (422, "bad_input")


def test_an_unknown_field_is_refused_also_when_it_is_null(team):
    body = {"to": "carol", "body": "Words.", "from": None}
    team.ok("ann", "POST", "/mail", body)
    status, said = team.ask("ann", "POST", "/mail", body | {"colour": None})
    assert (status, said["code"]) == (422, "bad_input")
    assert "colour" in said["detail"]


def test_lists_are_read_page_by_page(team):
    for number in range(5):
        team.ok("ann", "POST", "/mail", {"to": "dora", "body": f"Mail {number}"})
    seen, path = [], "/mail/dora?limit=2"
    while path:
        status, rows, headers = team.asked("ann", "GET", path)
        assert status == 200
        seen += [row["body"] for row in rows]
        path = headers.get("link", "").partition(">")[0].removeprefix("<")
    assert seen == [f"Mail {number}" for number in reversed(range(5))]


def test_a_file_is_claimed_by_one_and_the_second_learns_who_has_it(team):
    path = "/v1/file/claim"
    mine = team.ok("ann", "POST", path, {"path": "src/a.py", "seconds": 60})["data"]
    assert mine["holder"] == "ann"
    status, said = team.ask("bob", "POST", path, {"path": "./src/a.py"})
    assert (status, said["code"], said["holder"]) == (409, "claimed", "ann")
    team.ok("eve", "POST", path, {"path": "src/a.py"})
    team.served.end()
    team.served.start()
    assert team.ask("bob", "POST", path, {"path": "src/a.py"})[0] == 409
    team.ok("ann", "POST", "/v1/file/release", {"path": "src/a.py"})
    assert team.ok("bob", "POST", path, {"path": "src/a.py"})["data"]["holder"] == "bob"


def test_a_revoked_token_counts_no_more_within_a_second(team):
    root = team.tokens["root"]
    asked = {"name": "zoe", "role": "worker", "team": "red"}
    made = team.served.ask("POST", "/v1/token/create", asked, token=root)[1]["data"]
    assert team.served.ask("GET", "/swarms", token=made["token"])[0] == 200
    assert team.served.ask("POST", "/v1/token/revoke", {"token": made["id"]}, token=root)[0] == 200
    until(lambda: team.served.ask("GET", "/swarms", token=made["token"])[0] == 401)
    status, said = team.served.ask("GET", "/swarms", token=made["token"])
    assert (status, said["code"]) == (401, "revoked_token")
    rows = team.served.ask("GET", "/v1/token/list?all=true", token=root)[1]["data"]
    assert made["id"] in [row["id"] for row in rows]
    assert all(row["token"] == "" for row in rows)
