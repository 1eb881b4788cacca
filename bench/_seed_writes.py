"""What a client of claude-fleet sends to each path that changes something, and what must be there first."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from fleet.domain.task import Spec
from fleet.operations.messages.chats import OpenChat
from fleet.operations.team.members import BeSeen, uid_of
from tests.unit.operations.samples import sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.domain.access import Actor
    from tests.unit.operations.conftest import Office

    Sent = tuple[dict[str, str], dict[str, Any]]  # parts of the path, and the body

_numbers = count(1)
_TREE = "/orchestrate/worktree/{handle:path}"
POST = {"messageType": "status", "payload": {"text": "x"}}


def _branch(office: Office) -> str:
    """Of a task that waits: what claude-fleet calls a handle."""
    branch = f"feat/new-{next(_numbers)}"
    office.add("Fix it", team="local", spec=Spec(branch=branch))
    return branch


def _of(operation: str, field: str, part: str, **body: Any) -> Callable[[Office], Sent]:
    """What the tests make for an operation, as a part of a path."""
    return lambda office: ({part: getattr(sample(operation, office), field)}, body)


def _posts(operation: str) -> Callable[[Office], Sent]:
    return lambda office: ({}, {"messageIds": list(sample(operation, office).posts)})


def _chat(office: Office) -> str:
    return str(office.call(OpenChat(team="local")).id)


def _pair(office: Office, ada: Actor, bob: Actor) -> Sent:
    office.call(BeSeen(), bob)
    return {}, {"uid1": uid_of("local", ada.name), "uid2": uid_of("local", bob.name)}


def seed_writes(ada: Actor, bob: Actor, board: str) -> dict[str, Callable[[Office], Sent]]:
    """By method and path; Ada asks. Each makes what it needs in the store, then what is sent."""
    uid = uid_of("local", ada.name)
    return {
        "POST /teams/{team}/broadcast": lambda _: ({"team": "local"}, {"message": "x"}),
        "POST /tasks": lambda _: (
            {},
            {"subject": "x", "toHandle": "bob", "blockedBy": [board], "fromUid": uid},
        ),
        "PATCH /tasks/{id}": _of("task.mark", "task", "id", status="in_progress"),
        "POST /orchestrate/spawn": lambda _: ({}, {"handle": f"h-{next(_numbers)}"}),
        "POST /orchestrate/dismiss/{handle:path}": lambda office: ({"handle": _branch(office)}, {}),
        "POST /orchestrate/send/{handle:path}": lambda office: (
            {"handle": _branch(office)},
            {"message": "x"},
        ),
        "POST /mail": lambda _: ({}, {"to": "bob", "body": "x"}),
        "POST /mail/{id}/read": _of("mail.read", "mail", "id"),
        "POST /blackboard": lambda _: ({}, POST | {"swarmId": board, "targetHandle": "bob"}),
        "POST /blackboard/mark-read": _posts("board.mark_read"),
        "POST /blackboard/archive": _posts("board.archive"),
        "POST /blackboard/{swarm}/archive-old": lambda _: (
            {"swarm": board},
            {"maxAgeHours": 24},  # none is as old: it must not look at each to know
        ),
        "POST /spawn-queue": lambda _: ({}, {"task": "x", "dependsOn": [board]}),
        "DELETE /spawn-queue/{id}": _of("task.cancel", "task", "id"),
        "POST /checkpoints": lambda _: ({}, {"goal": "x", "now": "y", "toHandle": "bob"}),
        "POST /checkpoints/{id}/accept": _of("checkpoint.accept", "checkpoint", "id"),
        "POST /checkpoints/{id}/reject": _of("checkpoint.reject", "checkpoint", "id", reason="x"),
        "POST /swarms": lambda _: ({}, {"name": f"s{next(_numbers)}"}),
        "POST /swarms/{id}/kill": _of("swarm.kill", "swarm", "id"),
        "POST /memory/store": lambda _: ({}, {"key": f"k{next(_numbers)}", "value": "v"}),
        "POST /memory/search": lambda _: ({}, {"query": "k14"}),
        "POST /chats": lambda office: _pair(office, ada, bob),
        "POST /chats/{chat}/messages": lambda office: ({"chat": _chat(office)}, {"text": "x"}),
        "POST /chats/{chat}/read": lambda office: ({"chat": _chat(office)}, {}),
        f"POST {_TREE}/commit": _of("worktree.commit", "task", "handle", message="x"),
        f"POST {_TREE}/push": _of("worktree.push", "task", "handle"),
        f"POST {_TREE}/merge": _of("worktree.merge", "task", "handle"),
        f"POST {_TREE}/pr": _of("worktree.pr", "task", "handle", title="x"),
    }
