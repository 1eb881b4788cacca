"""The folder of a task is written when the task is, whoever adds it and wherever it works."""

from __future__ import annotations

import json
import time

import pytest

from tests.integration.test_server import Served

MCP = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


def test_a_task_that_works_in_place_has_its_folder(supervised):
    task = supervised.add("say Hi.", in_place=True)
    supervised.start()
    supervised.wait(task)
    assert_folder(supervised.home, task)


def test_a_task_has_its_folder_before_any_supervisor_runs(supervised):
    assert_folder(supervised.home, supervised.add("say Hi."))


def test_a_task_is_added_though_its_folder_cannot_be_written(supervised):
    (supervised.home).mkdir(exist_ok=True)
    (supervised.home / "tasks").write_text("a file where the folders should be")
    task = supervised.add("say Hi.")
    assert supervised.store.task(task).title == "say Hi."


def test_a_supervisor_writes_the_folder_of_a_task_whose_writer_died_before(supervised):
    task = supervised.add("say Hi.", assignee="ada")  # no run is ever started
    folder = supervised.home / "tasks" / task
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()
    supervised.start()
    assert_folder_soon(supervised.home, task)


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    made = Served(tmp_path_factory.mktemp("served"))
    yield made
    made.end()


@pytest.fixture(scope="module")
def lead(served):
    return served.token("ann", "--role", "coordinator")


def test_a_task_added_over_http_has_its_folder(served, lead):
    body = {"title": "Fix the login", "project": str(served.cwd)}
    status, reply = served.ask("POST", "/v1/task/add", body, token=lead)
    assert status == 201, reply
    assert_folder_soon(home_of(served), reply["data"]["id"])


def test_a_task_added_over_mcp_has_its_folder(served, lead):
    tool = {"name": "team_assign", "arguments": {"agent": "ann", "task": "Fix the login"}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": tool}
    status, reply = served.ask("POST", "/mcp", call, token=lead, headers=MCP)
    assert status == 200, reply
    text = reply["result"]["content"][0]["text"]
    assert_folder_soon(home_of(served), json.loads(text)["id"])


def test_a_spawned_agent_has_its_folder(served, lead):
    body = {"handle": "scout", "initialPrompt": "Look around."}
    status, reply = served.ask("POST", "/orchestrate/spawn", body, token=lead)
    assert status == 200, reply
    newest = served.ask("GET", "/v1/task/list", token=lead)[1]["data"][0]["id"]
    assert_folder_soon(home_of(served), newest)


def test_what_was_changed_over_http_is_in_task_json(served, lead):
    body = {"title": "Fix the login", "project": str(served.cwd)}
    task = served.ask("POST", "/v1/task/add", body, token=lead)[1]["data"]["id"]
    status, reply = served.ask("POST", "/v1/task/cancel", {"task": task}, token=lead)
    assert status == 200, reply
    wait_for(lambda: state_of(served, task) == "cancelled")


def state_of(served, task: str) -> str:
    try:
        return json.loads((home_of(served) / "tasks" / task / "task.json").read_text())["status"]
    except FileNotFoundError:
        return ""


def home_of(served):
    return served.cwd / "home"


def assert_folder_soon(home, task: str) -> None:
    log = home / "tasks" / task / "log.jsonl"
    wait_for(lambda: log.is_file() and log.stat().st_size)
    assert_folder(home, task)


def assert_folder(home, task: str) -> None:
    folder = home / "tasks" / task
    assert json.loads((folder / "task.json").read_text())["id"] == task
    assert (folder / "artifacts" / "Q&A.md").is_file()
    assert "task.added" in (folder / "log.jsonl").read_text()


def wait_for(holds, limit: float = 30.0) -> None:
    end = time.monotonic() + limit
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)
