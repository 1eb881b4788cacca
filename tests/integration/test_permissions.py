"""Who may do what: every role with every operation, over real HTTP, on one server."""

from __future__ import annotations

import pytest
from team import Team

from fleet.domain.access import GRANTS, Role
from fleet.operations.catalogue import operations
from fleet.server.seed_paths import PATHS

OPERATIONS = {operation.name: operation for operation in operations()}


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = Team(tmp_path_factory.mktemp("matrix"))
    for role in Role:
        made.join(str(role), str(role), "red")
    yield made
    made.served.end()


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_role_is_let_in_where_it_has_the_permission_and_nowhere_else(team, role, name):
    """A request that names nothing that is there: who may ask is told so, who may not is sent off."""
    operation = OPERATIONS[name]
    path = f"/v1/{name.replace('.', '/')}"
    status, said = team.ask(str(role), "POST", path, BODIES.get(name, {}))
    if operation.permission in GRANTS[role]:
        assert status in {200, 404, 409}, said
    else:
        assert (status, said["code"]) == (403, "forbidden")
        assert str(operation.permission) in said["detail"]


@pytest.mark.parametrize("name", OPERATIONS)
def test_nobody_is_let_in_without_a_token(team, name):
    path = f"/v1/{name.replace('.', '/')}"
    assert team.served.ask("POST", path, BODIES.get(name, {}))[0] == 401


@pytest.mark.parametrize("path", PATHS, ids=[f"{p.method} {p.path}" for p in PATHS])
def test_the_other_paths_want_a_token_too(team, path):
    where = path.path.replace(":path", "").format(
        team="red", id="t-1", handle="x", swarm="t-1", agent="x", key="k"
    )
    assert team.served.ask(path.method, where)[0] == 401


NONE = "t-999999"
BODIES = {  # what has to be said for the request to be understood
    "task.add": {"title": "x"},
    "task.show": {"task": NONE},
    "task.cancel": {"task": NONE},
    "task.retry": {"task": NONE},
    "task.close": {"task": NONE},
    "task.pause": {"task": NONE},
    "task.resume": {"task": NONE},
    "task.depend": {"task": NONE, "needs": NONE},
    "task.independ": {"task": NONE, "needs": NONE},
    "task.assign": {"task": NONE},
    "task.edit": {"task": NONE},
    "task.mark": {"task": NONE, "status": "open"},
    "message.comment": {"task": NONE, "text": "x"},
    "message.send": {"task": NONE, "text": "x"},
    "message.read": {"message": "m-999999"},
    "message.ask": {"task": NONE, "text": "x"},
    "message.answer": {"name": NONE, "text": "x"},
    "message.take": {"question": "m-999999"},
    "run.transcript": {"name": NONE},
    "run.stop_all": {"host": "nowhere"},
    "agent.spawn": {"handle": "x", "prompt": "x", "swarm": NONE, "cwd": "/nowhere"},
    "token.create": {"name": "x"},
    "token.revoke": {"token": "nobody"},
    "swarm.create": {"name": "x"},
    "swarm.show": {"swarm": NONE},
    "swarm.kill": {"swarm": NONE},
    "board.post": {"task": NONE, "payload": "{}"},
    "board.read": {"task": NONE},
    "board.mark_read": {"posts": ["m-999999"]},
    "board.archive": {"posts": ["m-999999"]},
    "mail.send": {"to": "x", "text": "x"},
    "mail.broadcast": {"text": "x"},
    "mail.read": {"mail": "e-999999"},
    "checkpoint.save": {"summary": {"goal": "g", "now": "n"}},
    "checkpoint.load": {"checkpoint": "e-999999"},
    "checkpoint.accept": {"checkpoint": "e-999999"},
    "checkpoint.reject": {"checkpoint": "e-999999"},
    "memory.store": {"key": "k", "value": "v"},
    "memory.recall": {"key": "nothing"},
    "memory.search": {"query": "nothing"},
    "file.claim": {"path": "a.py"},
    "file.release": {"path": "b.py"},
}
