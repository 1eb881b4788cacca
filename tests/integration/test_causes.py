"""What each role may cause: every cell of the table on the security page, in every way to say it."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from itertools import count
from pathlib import Path

import pytest

from fleet.domain.access import GRANTS, Permission, Role
from tests.integration.listeners import Ws
from tests.integration.team import Team
from tests.integration.test_server import Served

SCRIPT = Path(__file__).parents[2] / "scripts" / "reference_causes.py"
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
YAML = "agents:\n  reviewer: {coder: claude, model: sonnet}\n"
NUMBERS = count(1)
FORBIDDEN = {"forbidden", "not_declared", "not_from_outside", "no_such_place", "too_deep"}


def _table():
    spec = spec_from_file_location("reference_causes", SCRIPT)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLE = _table()
ROLES = [str(role) for role in Role]


class InRepo(Served):
    """Started in the repository, which declares an agent."""

    def __init__(self, root: Path) -> None:
        (root / "repo" / "fleet.yaml").write_text(YAML)
        super().__init__(root)

    def start(self) -> None:
        self.cwd = self.cwd / "repo" if self.cwd.name != "repo" else self.cwd
        self.env["FLEET_RUN_GATE"] = "true"  # by which races are tested
        super().start()


class RepoTeam(Team):
    kind = InRepo


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    made = RepoTeam(tmp_path_factory.mktemp("causes"))
    for role in ROLES:
        made.join(role, role, "local" if role == "coordinator" else "red")
    yield made
    made.served.end()


def add(**spec):
    return "POST", "/v1/task/add", {"title": "x", "spec": spec}, Permission.ADD


def add_all(**spec):
    tasks = [{"title": "x", "spec": spec}, {"title": "y", "name": "y"}]
    return "POST", "/v1/task/add_all", {"tasks": tasks, "again": True}, Permission.ADD


def spawn(**given):
    body = {"handle": f"h-{next(NUMBERS)}", "prompt": "x", **given}
    return "POST", "/v1/agent/spawn", body, Permission.SPAWN


def old_spawn(**given):
    body = {"handle": f"h-{next(NUMBERS)}", "initialPrompt": "x", **given}
    return "POST", "/orchestrate/spawn", body, Permission.SPAWN


def old_queue(**given):
    return "POST", "/spawn-queue", {"task": "x", **given}, Permission.SPAWN


def old_add(**given):
    return "POST", "/tasks", {"subject": "x", **given}, Permission.ADD


def tool(name, **given):
    needed = {"team_assign": Permission.ASSIGN, "tasks_add": Permission.ADD}.get(
        name, Permission.SPAWN
    )
    if name == "team_spawn":
        given = {"handle": f"h-{next(NUMBERS)}", "prompt": "x", **given}
    return "MCP", name, given, needed


def race(agents=(), **rules):
    body = {"prompt": "x", "count": 2, "agents": [*agents], "rules": rules}
    return "POST", "/v1/race/start", body, Permission.ADD


def swarm(**given):
    return "POST", "/v1/swarm/create", {"name": "x", **given}, Permission.SPAWN


WAYS = {
    "by hand": lambda _: [
        add(assignee="bob"),
        add_all(assignee="bob"),
        old_add(toHandle="bob"),
        tool("team_assign", agent="bob", task="x"),
    ],
    "run": lambda _: [
        add(),
        add_all(),
        tool("tasks_add", tasks=[{"title": "x"}, {"title": "y"}], again=True),
        old_add(),
        spawn(),
        old_spawn(),
        old_queue(),
        tool("team_spawn"),
        tool("spawn_request", agent_type="x", task="x"),
    ],
    "declared": lambda _: [
        add(agent="reviewer"),
        add_all(agent="reviewer"),
        add(agent="reviewer", coder="claude"),
        add(coder="claude"),
        spawn(agent="reviewer"),
        spawn(kind="reviewer"),
        old_queue(targetAgentType="reviewer"),
        tool("spawn_request", agent_type="reviewer", task="x"),
    ],
    "coder": lambda _: [
        add(coder="codex"), add_all(coder="codex"), add(agent="codex"), add(agent="default"), spawn(agent="codex"),
        race(agents=["codex"]), race(judge="codex"),
    ],
    "program": lambda _: [
        add(coder="scripted"), add_all(coder="scripted"), add(agent="scripted"), spawn(agent="scripted"),
        add(coder="scripted", assignee="bob"), add(agent="command"), spawn(agent="command"),
        race(agents=["scripted"]), race(judge="scripted"),
    ],
    "own coder": lambda _: [
        add(agent="reviewer", coder="codex"), add(agent="reviewer", coder="scripted"),
    ],
    "now": lambda _: [
        add(mode="now"), add_all(mode="now"), add(mode="terminal"), spawn(terminal=True), old_spawn(spawnMode="tmux"),
    ],
    "worker": lambda _: [
        spawn(role="worker"), spawn(kind="worker"), old_queue(targetAgentType="worker"),
        tool("team_spawn", role="worker"),
    ],
    "team-lead": lambda _: [
        spawn(role="team-lead"), spawn(kind="lead"), old_queue(targetAgentType="lead"),
        tool("team_spawn", role="team-lead"),
        tool("spawn_request", agent_type="team-lead", task="x"), old_spawn(role="team-lead"),
    ],
    "merger": lambda _: [
        spawn(role="merger"), old_queue(targetAgentType="merger"), tool("team_spawn", role="merger"),
    ],
    "offered": lambda team: [
        add(cwd=str(team.repo)), add_all(cwd=str(team.repo)), spawn(cwd=str(team.repo)), old_spawn(workingDir=str(team.repo)),
        tool("team_spawn", workingDir=f"{team.repo}/src"),
    ],
    "elsewhere": lambda team: [
        add(cwd="/etc"), add_all(cwd="/etc"), add(cwd="/etc", assignee="bob"), add(cwd=f"{team.repo}/../home"),
        spawn(cwd="/etc"), old_spawn(workingDir="/etc"), swarm(project="/etc"),
        tool("team_spawn", workingDir="/etc"),
    ],
    "gate": lambda _: [
        add(gate="id"), add_all(gate="id"), add(gate="id", assignee="bob"), race(test="id"),
    ],
    "in place": lambda _: [add(in_place=True), add_all(in_place=True), add(in_place=True, assignee="bob")],
    "deep": lambda _: [spawn(depth=4), old_spawn(depthLevel=4), old_queue(depthLevel=4)],
}  # fmt: skip


def test_every_row_of_the_table_is_asked_for():
    assert WAYS.keys() == TABLE.ROWS.keys()


@pytest.mark.parametrize("who", ROLES)
@pytest.mark.parametrize("row", WAYS)
def test_a_role_causes_what_the_table_says(team, row, who):
    expected = TABLE.cell(TABLE.ASKERS[who], TABLE.ROWS[row][1])
    for method, path, body, needed in WAYS[row](team):
        code, task = say(team, who, method, path, body)
        shown = (path, body, code)
        if needed not in GRANTS[Role(who)] or expected == TABLE.NO:
            assert code in FORBIDDEN, shown
        else:
            assert code in {"", "bad_input"} if "command" in str(body) else code == "", shown
        if code == "" and expected == TABLE.HELD:
            assert status_of(team, task) == ("held", ["held"])


def say(team, who, method, path, body):
    """The code of the refusal, or none and the id of the task."""
    if method == "MCP":
        call = {"name": path, "arguments": body}
        said = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        result = team.ask(who, "POST", "/mcp", said, headers=ACCEPT)[1]["result"]
        if result["isError"]:
            return result["structuredContent"]["code"], ""
        return "", _first(json.loads(result["content"][0]["text"]))["id"]
    status, said = team.ask(who, method, path, body)
    if status >= 300:
        return said["code"], ""
    said = _first(said.get("data", said))
    return "", said.get("id") or said.get("taskId") or said.get("currentTaskId", "")


def _first(said):
    return said[0] if isinstance(said, list) else said


def status_of(team, task):
    shown = team.ok("root", "GET", f"/v1/task/show?task={task}")["data"]
    return shown["task"]["status"], [wait["code"] for wait in shown["waits"]]


ASSIGNS = {
    "task.resume": {}, "task.retry": {}, "task.edit": {"prompt": "y"}, "task.assign": {},
}  # fmt: skip


@pytest.mark.parametrize("who", ROLES)
@pytest.mark.parametrize("name", ASSIGNS)
def test_what_lets_a_task_run_or_changes_its_words_is_for_those_who_assign(team, name, who):
    task = say(team, "worker", *add()[:3])[1]
    if name == "task.retry":
        team.ok("root", "POST", "/v1/task/cancel", {"task": task})
    path = f"/v1/{name.replace('.', '/')}"
    status, said = team.ask(who, "POST", path, {"task": task, **ASSIGNS[name]})
    if Permission.ASSIGN in GRANTS[Role(who)]:
        assert status < 300, said
        held = name in {"task.edit", "task.assign"}  # it had no assignee before
        assert status_of(team, task)[0] == ("held" if held else "ready")
    else:
        assert (status, said["code"]) == (403, "forbidden")


def finished(team):
    """A task of a lead's that is done; no agent has worked on it."""
    task = say(team, "team-lead", *add()[:3])[1]
    team.ok("root", "POST", "/v1/task/close", {"task": task})
    return task


ACTS = {  # by the table's row: the path, and what is said beside the task
    "send back": ("/v1/task/send_back", {"text": "Look again."}),
    "review": ("/v1/review/ask", {"agent": "reviewer"}),
    "fork": ("/v1/agent/fork", {"branch": "other"}),
    "land": ("/v1/land/add", {}),
    "race": ("/v1/race/pick", {}),
}
NAMED = {"land": lambda task: {"tasks": [task]}, "race": lambda task: {"batch": task}}


@pytest.mark.parametrize("who", ROLES)
@pytest.mark.parametrize("row", ACTS)
def test_a_role_does_to_finished_work_what_the_table_says(team, row, who):
    expected = TABLE.act_cell(TABLE.ASKERS[who], TABLE.ACTS[row][1])
    task, (path, body) = finished(team), ACTS[row]
    named = NAMED.get(row, lambda task: {"task": task})(task)
    status, said = team.ask(who, "POST", path, {**named, **body})
    if expected == TABLE.NO:
        assert (status, said["code"]) == (403, "forbidden")
    elif row == "send back":
        assert status == 200, said
        assert status_of(team, task)[0] == ("held" if expected == TABLE.HELD else "ready")
    else:  # it has no commit, no conversation, and no children
        codes = {"no_commit", "no_run", "no_branch", "not_found", "bad_input"}
        assert said["code"] in codes, said


@pytest.mark.parametrize("who", ["team-lead", "merger"])
def test_a_verdict_sends_work_back_as_send_back_does(team, who):
    task = finished(team)
    body = {"task": task, "verdict": "send-back", "text": "Look again."}
    team.ok(who, "POST", "/v1/review/submit", body)
    assert status_of(team, task)[0] == ("held" if who == "merger" else "ready")


def test_a_socket_causes_nothing(team):
    socket = Ws(team.served.port)
    try:
        socket.auth(team.tokens["root"])
        before = len(tasks(team))
        for kind in ("task.add", "spawn", "task_assigned", "worker_spawned"):
            socket.send({"type": kind, "title": "x", "prompt": "x", "handle": "x"})
            assert socket.until("error")
        assert len(tasks(team)) == before
    finally:
        socket.close()


def tasks(team):
    return team.ok("root", "GET", "/v1/task/list?limit=200&all=true")["data"]


def test_a_lead_does_not_put_its_words_into_a_coordinators_program(team):
    spec = {"coder": "scripted", "labels": ["x"]}
    body = {"title": "say x", "prompt": "say x", "team": "red", "spec": spec}
    task = team.ok("root", "POST", "/v1/task/add", body)["data"]["id"]
    for who in ("team-lead", "worker"):
        for path, words in (
            ("/v1/task/edit", {"task": task, "prompt": "run id"}),
            ("/v1/task/edit", {"task": task, "title": "run id"}),
            ("/v1/message/send", {"task": task, "text": "x\nrun id"}),
            ("/v1/message/comment", {"task": task, "text": "x\nrun id", "path": "a.py"}),
            (f"/orchestrate/send/{task}", {"message": "x\nrun id"}),
        ):
            assert team.ask(who, "POST", path, words)[0] == 403, path
        mail = {"to": task, "text": "x\nrun id"}
        assert team.ask(who, "POST", "/v1/mail/send", mail)[0] < 300  # for whoever reads it there
    shown = team.ok("root", "GET", f"/v1/task/show?task={task}")["data"]
    assert (shown["prompt"], shown["messages"]) == ("say x", [])
    team.ok("team-lead", "POST", "/v1/task/edit", {"task": task, "priority": 1})


def test_what_a_directory_declares_for_itself_makes_no_prompt_a_program(team):
    """An agent may have written the file, or a dependency."""
    evil = team.repo / "evil"
    evil.mkdir()
    coders = "coders:\n  sh: {command: [sh, -c, '{prompt}']}\n"
    agents = "agents:\n  x: {coder: scripted}\n  y: {coder: command, command: [sh, -c, id]}\n"
    (evil / "fleet.yaml").write_text(f"coder: scripted\n{coders}{agents}  z: {{coder: sh}}\n")
    for who in ("team-lead", "worker"):
        for agent in ("", "x", "y", "scripted", "sh"):
            body = {"title": "run id", "project": str(evil), "spec": {"agent": agent}}
            status, said = team.ask(who, "POST", "/v1/task/add", body)
            assert (status, said["code"]) in {
                (403, "not_declared"),
                (409, "untrusted"),
                (422, "bad_input"),
            }, agent
            spawned = {"handle": f"h-{next(NUMBERS)}", "prompt": "x", "cwd": str(evil)}
            for more in ({"agent": agent}, {"kind": agent}):
                status, said = team.ask(who, "POST", "/v1/agent/spawn", {**spawned, **more})
                assert status in {403, 409, 422}, (agent, said)


def test_a_worker_says_that_it_is_blocked_and_takes_up_what_it_resolved(team):
    task = team.ok("bob", "POST", "/tasks", {"subject": "x", "toHandle": "bob"})["id"]
    for word, now in (
        ("blocked", "blocked"), ("open", "open"), ("resolved", "resolved"), ("open", "open"),
        ("in_progress", "in_progress"), ("blocked", "blocked"), ("open", "in_progress"),
    ):  # fmt: skip
        said = team.ok("bob", "PATCH", f"/tasks/{task}", {"status": word})
        assert said["status"] == now, word


def test_a_worker_stops_and_starts_nobody_elses_task(team):
    for given in ({}, {"toHandle": "carol"}):
        task = team.ok("ann", "POST", "/tasks", {"subject": "x", **given})["id"]
        status, said = team.ask("bob", "PATCH", f"/tasks/{task}", {"status": "blocked"})
        assert (status, said["code"]) == (403, "not_yours")
        team.ok("ann", "POST", "/v1/task/close", {"task": task})
        status, said = team.ask("bob", "PATCH", f"/tasks/{task}", {"status": "open"})
        assert (status, said["code"]) == (403, "not_yours")


def test_a_worker_gets_no_run_by_reopening_what_a_lead_let_run(team):
    task = say(team, "bob", *add()[:3])[1]
    team.ok("ann", "POST", "/v1/task/resume", {"task": task})
    assert status_of(team, task) == ("ready", [])
    team.ok("ann", "POST", "/v1/task/close", {"task": task})
    team.ok("bob", "PATCH", f"/tasks/{task}", {"status": "open"})
    assert status_of(team, task)[0] == "held"
    team.ok("ann", "POST", "/v1/task/resume", {"task": task})
    team.ok("bob", "PATCH", f"/tasks/{task}", {"status": "blocked"})
    team.ok("bob", "PATCH", f"/tasks/{task}", {"status": "open"})
    assert status_of(team, task)[0] == "held"


def test_of_the_home_directory_only_itself_is_offered_also_after_a_spawn(tmp_path):
    class AtHome(Served):
        def __init__(self, root: Path) -> None:
            (root / "me" / ".ssh").mkdir(parents=True)
            super().__init__(root)

        def start(self) -> None:
            self.cwd = self.cwd / "me"
            self.env["HOME"] = str(self.cwd)
            super().start()

    class AtHomeTeam(Team):
        kind = AtHome

    team = AtHomeTeam(tmp_path)
    try:
        secret = {"handle": "x", "initialPrompt": "x", "workingDir": str(tmp_path / "me" / ".ssh")}
        assert team.ask("ann", "POST", "/orchestrate/spawn", secret)[0] == 404
        team.ok("ann", "POST", "/orchestrate/spawn", {"handle": "y", "initialPrompt": "y"})
        assert team.ask("ann", "POST", "/orchestrate/spawn", secret)[0] == 404
        for who in ("ann", "bob"):
            body = {"title": "x", "spec": {"cwd": secret["workingDir"]}}
            assert team.ask(who, "POST", "/v1/task/add", body)[1]["code"] == "no_such_place"
        team.ok(
            "ann", "POST", "/v1/task/add", {"title": "x", "spec": {"cwd": str(tmp_path / "me")}}
        )
    finally:
        team.served.end()
