"""The tools that agents see, over HTTP and over pipes."""

from __future__ import annotations

import json
import subprocess
import threading

import pytest

from tests.e2e.scratch import BIN, Scratch
from tests.e2e.served import Served
from tests.wait import LIMIT, until

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
WORKER = {
    *("team_status", "team_tasks", "team_claim", "team_send", "mail_send", "mail_read"),
    *("blackboard_post", "blackboard_read", "checkpoint_create", "checkpoint_load"),
    *("memory_store", "memory_search"),
}
TOOL = """\
import json, subprocess

def ask(method, **given):
    said = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": given})
    done = subprocess.run(["claude-fleet-mcp"], input=said, capture_output=True, text=True)
    return json.loads(done.stdout)["result"]

print(sorted(tool["name"] for tool in ask("tools/list")["tools"]))
print(ask("tools/call", name="note", arguments={"text": "Half way"}))
print(ask("tools/call", name="ask_human", arguments={"question": "Which?"}))
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    made = Served(Scratch(tmp_path_factory.mktemp("mcp")))
    yield made
    made.close()


def rpc(served, method, params=None, *, token):
    said = {"jsonrpc": "2.0", "id": 1, "method": method} | ({"params": params} if params else {})
    status, answer = served.ask("POST", "/mcp", said, token=token, headers=ACCEPT)
    assert status == 200, answer
    return answer["result"]


def listed(served, token):
    return {tool["name"]: tool for tool in rpc(served, "tools/list", token=token)["tools"]}


def call(served, token, name, /, **given):
    """Whether it failed, and what it said."""
    said = rpc(served, "tools/call", {"name": name, "arguments": given}, token=token)
    (content,) = said["content"]
    failed = said["isError"]
    return failed, content["text"] if failed else json.loads(content["text"])


def test_a_program_is_greeted(served):
    said = rpc(served, "initialize", HELLO, token=served.token())
    assert said["serverInfo"]["name"] == "fleet"
    assert "tools" in said["capabilities"]


def test_nobody_sees_the_tools_without_a_token(served):
    said = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    for token in ("", "x"):
        status, headers, _ = served.raw("POST", "/mcp", said, token=token, headers=ACCEPT)
        assert (status, headers["www-authenticate"][:6]) == (401, "Bearer")


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_no_stream_is_kept_open_for_what_is_never_said(served, method):
    stream = {"Accept": "text/event-stream"}
    status, headers, _ = served.raw(method, "/mcp", token=served.token(), headers=stream)
    assert (status, headers["allow"]) == (405, "POST")


def test_each_role_sees_what_it_may_do(served):
    seen = {
        role: set(listed(served, served.token(role, role)))
        for role in ("coordinator", "team-lead", "worker", "monitor", "merger", "notifier")
    }
    assert seen["worker"] == WORKER
    assert seen["worker"] < seen["team-lead"] <= seen["coordinator"]
    assert {"team_assign", "team_spawn", "team_dismiss", "swarm_broadcast"} <= seen["team-lead"]
    assert seen["monitor"] >= {"team_status", "team_tasks", "team_workers"}
    for role in ("monitor", "merger", "notifier"):
        assert not seen[role] & {"team_spawn", "team_assign", "team_dismiss", "team_complete"}


def test_a_tool_that_one_may_not_use_is_refused(served):
    worker = served.token("wim", "worker")
    for name, given in (
        ("team_spawn", {"handle": "x"}),
        ("team_dismiss", {"handle": "t-1"}),
        ("swarm_broadcast", {"swarm_id": "t-1", "directive": "Stop"}),
        ("team_assign", {"agent": "bo", "task": "Mine"}),
    ):
        failed, said = call(served, worker, name, **given)
        assert failed
        assert "may not" in said


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("no_such", {}, "There is no tool 'no_such'"),
        ("team_send", {"handle": "t-1"}, "needs 'message'"),
        ("team_send", {"handle": "t-1", "message": "x", "colour": 1}, "has no 'colour'"),
        ("team_send", {"handle": 1, "message": "x"}, "'handle' must be string"),
        ("team_tasks", {"filter": "some"}, "must be all or mine or unassigned"),
        ("team_send", {"handle": "t-999", "message": "x"}, "t-999"),
    ],
)
def test_a_tool_that_is_called_wrongly_says_how_it_is_called(served, name, given, said):
    failed, text = call(served, served.token(), name, **given)
    assert failed
    assert said in text


def test_an_agent_is_started_seen_spoken_to_and_ended(served):
    lead = served.token("ann", "team-lead")
    failed, task = call(served, lead, "team_spawn", handle="fix/a", prompt="hear 60\nsleep 600")
    assert not failed, task
    served.scratch.wait_for(task["id"], "running")
    assert task["id"] in [row["task"] for row in call(served, lead, "team_workers")[1]]
    assert not call(served, lead, "team_send", handle="fix/a", message="Go on")[0]
    until(lambda: "Go on" in served.scratch("logs", task["id"]), "the words to be heard")
    assert not call(served, lead, "team_dismiss", handle="fix/a")[0]
    assert served.scratch.status(task["id"]) == "cancelled"


def test_a_team_works_together(served):
    lead, bo = served.token("ann", "team-lead"), served.token("bo", "worker")
    swarm = call(served, lead, "swarm_create", name="Login", max_agents=3)[1]["id"]
    assert swarm in json.dumps(call(served, lead, "swarm_list")[1])
    word = {"message_type": "status", "payload": {"done": "half"}, "swarm_id": swarm}
    assert not call(served, bo, "blackboard_post", **word)[0]
    call(served, lead, "swarm_broadcast", swarm_id=swarm, directive="Hurry")
    posts = json.dumps(call(served, bo, "blackboard_read", swarm_id=swarm)[1])
    assert "half" in posts
    assert "Hurry" in posts
    call(served, lead, "mail_send", to="bo", body="Read the board", subject="Hello")
    (mail,) = call(served, bo, "mail_read")[1]
    assert mail["text"] == "Read the board"
    call(served, bo, "mail_mark_read", mail=mail["id"])
    assert call(served, bo, "mail_read")[1] == []
    assert not call(served, bo, "team_claim", file="src/app.py")[0]
    failed, said = call(served, lead, "team_claim", file="src/app.py")
    assert failed
    assert "bo" in said
    done = {"goal": "Login", "now": "Tests", "done_this_session": ["Form"], "to_handle": "bo"}
    saved = call(served, lead, "checkpoint_create", **done)[1]
    assert call(served, bo, "checkpoint_load", checkpoint_id=saved["id"])[1]["id"] == saved["id"]
    call(served, bo, "memory_store", key="port", value="The port is 4000", tags=["net"])
    assert call(served, bo, "memory_recall", key="port")[1]["value"] == "The port is 4000"
    assert len(call(served, lead, "memory_search", query="port")[1]) == 1
    given = call(served, lead, "team_assign", agent="bo", task="Look at it")[1]
    assert given["id"] in json.dumps(call(served, bo, "team_tasks", filter="mine")[1])
    assert not call(served, bo, "team_complete", task_id=given["id"])[0]
    status = call(served, lead, "team_status")[1]
    assert status.keys() == {"members", "workers", "tasks", "questions"}


def test_a_queued_agent_waits_for_what_it_needs(served):
    lead = served.token("ann", "team-lead")
    first = served.scratch.add("First", script="sleep 600")
    asked = {"agent_type": "scout", "task": "say Second.", "priority": "high"}
    second = call(served, lead, "spawn_request", depends_on=[first], **asked)[1]
    assert second["priority"] == 1
    status = call(served, lead, "spawn_status", request_id=second["id"])[1]["task"]["status"]
    assert status == "waiting"
    assert not call(served, lead, "spawn_cancel", request_id=second["id"])[0]
    served.scratch("cancel", first)


class Pipes:
    """`claude-fleet-mcp`, as a program starts it."""

    def __init__(self, served, **env):
        self.process = subprocess.Popen(
            [str(BIN / "claude-fleet-mcp")],
            cwd=served.scratch.repo,
            env=served.scratch.env | env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def ask(self, method, params=None, number=1):
        said = {"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}
        self.process.stdin.write(json.dumps(said).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(LIMIT) == 0
        self.process.stdout.close()


def test_a_program_with_pipes_alone_needs_no_token_here(served):
    pipes = Pipes(served, CLAUDE_CODE_AGENT_TYPE="worker", CLAUDE_CODE_AGENT_NAME="rose")
    assert pipes.ask("initialize", HELLO)["result"]["serverInfo"]["name"] == "fleet"
    pipes.process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    assert {t["name"] for t in pipes.ask("tools/list", number=2)["result"]["tools"]} == WORKER
    said = {"name": "memory_store", "arguments": {"key": "who", "value": "me"}}
    answer = pipes.ask("tools/call", said, number=3)
    assert (answer["id"], answer["result"]["isError"]) == (3, False)
    assert json.loads(answer["result"]["content"][0]["text"])["agent"] == "rose"
    pipes.end()


def test_a_run_has_tools_for_its_own_task(served):
    scratch = served.scratch
    (scratch.root / "tool.py").write_text(TOOL)
    task = scratch.add("Tools", script=f"run python3 {scratch.root}/tool.py")
    until(lambda: scratch.data("questions"), "the question")
    (question,) = scratch.data("questions")
    assert (question["task"], question["text"]) == (task, "Which?")
    detail = scratch.data("show", task)
    assert "Half way" in json.dumps(detail)
    for name in ("ask_human", "task_done", "note", *WORKER):
        assert f"'{name}'" in scratch("logs", task)
    scratch("answer", question["id"], "This")
    scratch.wait_for(task, "done")


class Nobody:
    """Whom no server serves."""

    def __init__(self, root) -> None:
        self.scratch = Scratch(root)


def test_where_no_server_runs_the_tools_work_on_the_store(tmp_path):
    nobody = Nobody(tmp_path)
    pipes = Pipes(nobody, CLAUDE_CODE_AGENT_TYPE="worker", CLAUDE_CODE_AGENT_NAME="rose")
    assert pipes.ask("initialize", HELLO)["result"]["protocolVersion"] == "2025-06-18"
    assert {t["name"] for t in pipes.ask("tools/list")["result"]["tools"]} == WORKER
    said = {"name": "memory_store", "arguments": {"key": "who", "value": "me"}}
    assert pipes.ask("tools/call", said)["result"]["isError"] is False
    assert [m["agent"] for m in nobody.scratch.data("memory", "search", "me")] == ["rose"]
    refused = pipes.ask("tools/call", {"name": "team_spawn", "arguments": {"handle": "x"}})
    assert "may not" in refused["result"]["content"][0]["text"]
    assert pipes.ask("no/such")["error"]["code"] == -32601
    assert pipes.ask("tools/call", ["x"])["error"]["code"] == -32602
    for line in (b"{\n", b"[]\n"):
        pipes.process.stdin.write(line)
        pipes.process.stdin.flush()
        assert json.loads(pipes.process.stdout.readline())["error"]["code"] == -32700
    pipes.end()


def test_the_queue_of_landings_is_changed_by_tools(tmp_path):
    nobody = Nobody(tmp_path)
    scratch = nobody.scratch
    for name in ("a", "b"):
        scratch.add(f"Write {name}", script=f"write {name} 1\ncommit {name}")
    scratch.work()
    scratch("land", "t-1", "t-2")
    pipes = Pipes(nobody)

    def say(tool: str, **given: object):
        reply = pipes.ask("tools/call", {"name": tool, "arguments": given})["result"]
        assert not reply["isError"], reply
        return json.loads(reply["content"][0]["text"])

    assert say("land_hold", landing="t-1", why="Later.")["state"] == "held"
    assert say("land_release", landing="t-1")["state"] == "queued"
    say("land_move", landing="t-2")
    assert [row["task"] for row in say("land_list")] == ["t-2", "t-1"]
    assert say("land_pause", onto="main")[0]["paused"]
    assert not say("land_resume")[0]["paused"]
    assert [row["ready"] for row in say("land_forecast")] == [True, True]
    assert say("task_comment", task="t-1", text="Why?", path="a", line=1)["path"] == "a"
    wrong = {"task": "t-1", "text": "Why?", "path": "b"}
    reply = pipes.ask("tools/call", {"name": "task_comment", "arguments": wrong})["result"]
    assert "t-1 did not change 'b'. It changed a." in reply["content"][0]["text"]
    scratch.work()
    assert say("land_undo", landing="t-1")["task"] == "t-3"
    pipes.end()


def test_a_server_that_is_named_and_not_there_is_said(tmp_path):
    pipes = Pipes(Nobody(tmp_path), FLEET_URL="http://127.0.0.1:9", FLEET_TOKEN="x")
    assert "No Fleet server answers" in pipes.ask("initialize", HELLO)["error"]["message"]
    pipes.end()


def test_many_calls_at_once_are_all_answered(served):
    token = served.token()
    found = []

    def ask():
        found.append(call(served, token, "team_tasks")[0])

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [False] * 20


def test_a_body_that_is_too_large_is_refused(served):
    headers = ACCEPT | {"Content-Length": str(10 << 20)}
    assert served.ask("POST", "/mcp", b"{}", token=served.token(), headers=headers)[0] == 413


def test_it_is_registered_only_in_programs_that_are_there(tmp_path):
    scratch = Scratch(tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "claude").write_text("#!/bin/sh\n")
    (programs / "claude").chmod(0o755)
    scratch.env["PATH"] = f"{BIN}:/usr/bin:/bin"
    nothing = scratch.type("mcp", "install")
    assert nothing.returncode == 1
    assert "fleet mcp install --coder claude" in nothing.stderr
    scratch.env["PATH"] = f"{programs}:{BIN}:/usr/bin:/bin"
    said = scratch.type("mcp", "install")
    assert "Not installed here: codex, opencode." in said.stderr
    assert (tmp_path / ".claude.json").exists()
    assert not (tmp_path / ".codex").exists()
    assert not (tmp_path / ".config").exists()
    scratch("mcp", "install", "--coder", "codex")
    assert (tmp_path / ".codex" / "config.toml").exists()


def test_what_a_project_commits_names_no_path_of_this_machine(tmp_path):
    scratch = Scratch(tmp_path)
    scratch("mcp", "install", "--scope", "project", "--coder", "all")
    text = (scratch.repo / ".mcp.json").read_text()
    assert json.loads(text)["mcpServers"]["fleet"]["command"] == "fleet"
    assert str(BIN) not in text
