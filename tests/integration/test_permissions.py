"""Who may do what: every role, with every operation over HTTP and every tool over MCP."""

from __future__ import annotations

import pytest

from fleet.domain.access import GRANTS, Role
from fleet.operations.catalogue import operations
from fleet.server.claude_fleet.paths import PATHS
from fleet.server.mcp.tool_table import TOOLS as TABLE
from fleet.server.mcp.tool_table import property_of
from tests.integration.team import Team

OPERATIONS = {operation.name: operation for operation in operations()}
TOOLS = {tool.name: tool for tool in TABLE}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = Team(tmp_path_factory.mktemp("matrix"))
    for role in Role:
        made.join(str(role), str(role), "red")
    yield made
    made.served.end()


# It asks for a secret and for no token, and enough wrong ones from one address are slowed down.
NO_ROLE = {"host.join"}
CASES = [("http", name) for name in OPERATIONS if name not in NO_ROLE] + [
    ("mcp", name) for name in TOOLS
]


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize(("mouth", "name"), CASES)
def test_a_role_is_let_in_where_it_has_the_permissions_and_nowhere_else(team, mouth, name, role):
    """A request that names nothing that is there: who may ask is told so, who may not is sent off."""
    needed = TOOLS[name].permissions() if mouth == "mcp" else {OPERATIONS[name].permission}
    code, words = SAID[mouth](team, str(role), name)
    if needed <= GRANTS[role]:
        for_others = mouth == "mcp" and TOOLS[name].for_runs  # these are people
        assert code in ({"bad_input"} if for_others else LET_IN), words
    else:
        assert code == "forbidden"
        assert any(f"may not {permission}" in words for permission in needed - GRANTS[role])


def over_http(team, who, name):
    """The code of what was said, and the words; no code: it was done."""
    path = f"/v1/{name.replace('.', '/')}"
    status, said = team.ask(who, "POST", path, BODIES.get(name, {}))
    return ("", "") if status in {200, 201} else (said["code"], said["detail"])


def over_mcp(team, who, name):
    said = call(team, who, "tools/call", {"name": name, "arguments": given(TOOLS[name])})
    if not said.get("isError"):
        return "", ""
    refusal = said["structuredContent"]
    return refusal["code"], refusal["message"]


SAID = {"http": over_http, "mcp": over_mcp}
LET_IN = {
    "no_model",
    "",
    "no_ticket",
    "bad_input",
    "repeated",
    "not_found",
    "refused",
    "claimed",
    "bad_secret",
    "no_such_place",
    "store_not_shared",
    "taken",
}


def given(tool):
    names = {*tool.needs, *(tool.takes.keys() & {"handle", "swarm_id"})}
    if tool.operations == ("agent.spawn",) and "handle" in names:
        return {"handle": "fix/login"}
    return {name: EXAMPLES.get(name) or example(property_of(tool.takes[name])) for name in names}


def example(schema):
    if needed := schema.get("items", {}).get("required"):
        return [dict.fromkeys(needed, "x")]
    return schema["enum"][0] if "enum" in schema else KINDS[schema["type"]]


def call(team, who, method, params=None):
    said = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    status, answer = team.ask(who, "POST", "/mcp", said, headers=ACCEPT)
    assert status == 200, answer
    return answer["result"]


@pytest.mark.parametrize("role", Role)
def test_a_role_is_shown_the_tools_that_it_may_use_and_no_others(team, role):
    shown = {tool["name"] for tool in call(team, str(role), "tools/list")["tools"]}
    may = {t.name for t in TOOLS.values() if t.permissions() <= GRANTS[role] and not t.for_runs}
    assert shown <= may
    assert may - shown <= {t.name for t in TOOLS.values() if t.quiet and role is Role.WORKER}


@pytest.mark.parametrize("name", OPERATIONS)
def test_nobody_is_let_in_without_a_token(team, name):
    path = f"/v1/{name.replace('.', '/')}"
    assert team.served.ask("POST", path, BODIES.get(name, {}))[0] == 401


@pytest.mark.parametrize("path", PATHS, ids=[f"{p.method} {p.path}" for p in PATHS])
def test_the_other_paths_want_a_token_too(team, path):
    where = path.path.replace(":path", "").format(
        team="red", id="t-1", handle="x", swarm="t-1", agent="x", key="k", uid="u", chat="c"
    )
    assert team.served.ask(path.method, where)[0] == 401


NONE = "t-999999"
KINDS = {"string": NONE, "array": ["m-999999"], "object": {"a": 1}, "boolean": True, "integer": 2}
EXAMPLES = {
    "handle": NONE,
    "to": "x",
    "agent": "x",
    "branch": "other",
    "key": "nothing",
    "mail": "e-999999",
}
BODIES = {  # what has to be said for the request to be understood
    "message.unsend": {"message": "m-1"},
    "host.drain": {"host": "h-999999"},
    "host.resume": {"host": "h-999999"},
    "host.invite": {},
    "host.join": {"code": "none", "host": "h-999999", "key": "k" * 43},
    "host.token": {"host": "h-999999"},
    "host.forget": {"host": "h-999999"},
    "alert.raise": {"text": "x"},
    "alert.notice": {"text": "x"},
    "task.add": {"title": "x"},
    "search.find": {"text": "nothing"},
    "task.add_all": {"tasks": [{"title": "x"}], "again": True},
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
    "task.events": {"task": NONE},
    "task.gates": {"task": NONE},
    "task.files": {"task": NONE},
    "run.said": {"run": NONE},
    "run.attach": {"name": NONE},
    "run.interrupt": {"name": NONE},
    "run.screen": {"name": NONE},
    "run.transcript": {"name": NONE},
    "agent.fork": {"task": NONE, "branch": "x"},
    "run.permit": {"task": NONE, "allow": False},
    "run.stop_all": {"host": "nowhere"},
    "agent.spawn": {"handle": "x", "prompt": "x", "swarm": NONE, "cwd": "/nowhere"},
    "token.create": {"name": "x"},
    "token.revoke": {"token": "nobody"},
    "swarm.create": {"name": "x"},
    "swarm.show": {"swarm": NONE},
    "swarm.kill": {"swarm": NONE},
    "board.post": {"task": NONE, "payload": {}},
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
    "member.show": {"member": "nobody"},
    "enrolment.revoke": {"enrolment": "e-999999"},
    "enrolment.show": {"secret": "none"},
    "enrolment.use": {"secret": "none", "name": "x"},
    "land.undo": {"landing": NONE},
    "race.start": {"prompt": "x", "count": 2},
    "race.pick": {"batch": NONE},
    "race.show": {"batch": NONE},
    "inbox.seen": {"items": ["failed:t-1:t-1.1"]},
    "inbox.snooze": {"item": "failed:t-1:t-1.1"},
    "view.save": {"name": "Mine", "words": "label:ui"},
    "view.remove": {"name": "Mine"},
    "session.code": {"role": "worker"},
    "session.open": {"code": "none"},
    "chat.say": {"chat": "none", "text": "x"},
    "chat.read": {"chat": "none"},
    "chat.mark_read": {"chat": "none"},
    "task.diff": {"task": NONE},
    "review.submit": {"task": NONE, "verdict": "accept"},
    "review.ask": {"task": NONE, "agent": "implementer"},
    "worktree.diff": {"task": NONE},
    "worktree.status": {"task": NONE},
    "worktree.commit": {"task": NONE, "message": "x"},
    "worktree.push": {"task": NONE},
    "worktree.merge": {"task": NONE},
    "worktree.pr": {"task": NONE, "title": "x"},
    **{f"pull.{name}": {"task": NONE} for name in ("open", "show", "sync", "merge", "close")},
    "ticket.find": {"query": "x"},
    "ticket.add": {"url": "https://example.com/a/b/issues/1"},
    "land.add": {"tasks": [NONE]},
    "task.send_back": {"task": NONE},
    **{
        f"land.{name}": {"landing": NONE}
        for name in ("show", "hold", "give", "release", "drop", "move")
    },
    **{f"land.{name}": {"onto": "nowhere"} for name in ("pause", "resume")},
}
