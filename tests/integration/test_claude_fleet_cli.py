"""claude-fleet's own command line gets from our server what it prints.

`claude_fleet_requests.json` has the requests of its commands, recorded from the program itself
(3.0.0, commit ce49b59). What is in braces is an id of something that was made before.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.integration.team import Team
from tests.integration.test_seed_paths import filled, uid

RECORDED = json.loads(Path(__file__).with_name("claude_fleet_requests.json").read_text())
MAKES = {"task-create": "task", "checkpoint-create": "checkpoint", "swarm-create": "swarm"}
READS = {  # what its tables and its scripts read of a reply, or of each row of one
    "health": {"status", "version"},
    "teams": {"uid", "handle", "agentType", "lastSeen"},
    "tasks": {"id", "subject", "status", "ownerHandle"},
    "workers": {"handle", "state", "spawnedAt"},
    "spawn": {"id", "handle", "state"},
    "send": {"success", "handle"},
    "dismiss": {"success", "handle"},
    "task-create": {"id", "status"},
    "task": {"id", "status"},
    "task-update": {"id", "status"},
    "mail": {"id", "from", "subject"},
    "mail-send": {"id"},
    "checkpoint-create": {"id"},
    "checkpoints": {"id", "fromHandle", "status", "goal"},
    "checkpoint": {"id", "checkpoint"},
    "checkpoint-latest": {"id", "checkpoint"},
    "checkpoint-accept": {"success", "id"},
    "swarm-create": {"id", "name"},
    "swarms": {"id", "name", "status", "agentCount", "agents"},
    "blackboard-post": {"id"},
    "blackboard": {"id", "senderHandle", "messageType", "priority"},
    "spawn-queue": {"queue"},
    "swarm-kill": {"success", "swarmId"},
    "memory-store": {"key", "value"},
    "memory-recall": {"key", "value"},
    "memory-search": {"results"},
    "memory-list": {"memories"},
}
NO_RUN = {"output", "worktree-status", "worktree-commit", "worktree-push", "worktree-pr"}
REFUSED = NO_RUN | {"checkpoint-reject"}  # it is accepted by then
FILLED = {"teams", "tasks", "workers", "mail", "checkpoints", "swarms", "blackboard"}  # by then


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = Team(tmp_path_factory.mktemp("cli"))
    made.ok("bob", "GET", "/swarms")  # so that bob has been seen
    yield made
    made.served.end()


def test_every_command_gets_what_it_reads(team):
    made = {"uid": {"id": uid("red", "ann")}}
    team.ok("bob", "POST", "/mail", {"from": "bob", "to": "ann", "body": "Hi", "subject": "News"})
    hers = {"fromHandle": "bob", "toHandle": "ann", "goal": "Docs", "now": "Begun"}
    team.ok("bob", "POST", "/checkpoints", hers)  # both are for ann, who lists hers
    for asked in RECORDED:
        command = asked["command"].partition(" ")[0]
        path, body = filled(asked["path"], made), filled(asked.get("body"), made)
        who = "bob" if command == "task-update" else "ann"  # the task is bob's
        status, said = team.ask(
            who, asked["method"], path, body, headers={"Content-Type": "application/json"}
        )
        if command in REFUSED:
            assert (status, bool(said["error"])) == (409, True), (asked, said)
            continue
        assert status == 200, (asked, said)
        made |= {MAKES[command]: said} if command in MAKES else {}
        check(command, said)
    assert {asked["command"].partition(" ")[0] for asked in RECORDED} >= READS.keys()


def check(command: str, said) -> None:
    rows = said if isinstance(said, list) else [said]
    assert rows or command not in FILLED, command
    for row in rows:
        assert row.keys() >= READS.get(command, set()), (command, row)
