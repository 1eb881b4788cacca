"""The server with the supervisor inside: one process, and agents that outlive it."""

from __future__ import annotations

import http.client
import signal
import threading

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.free_ports import free_ports
from tests.wait import LIMIT, until


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


@pytest.fixture
def serve(scratch):
    made = []

    def begin(*words, **given):
        made.append(Served(scratch, *words, **given))
        return made[-1]

    yield begin
    for served in made:
        served.close()


def test_the_server_does_the_tasks_too(scratch, serve):
    served = serve()
    task = served.ask(
        "POST",
        "/v1/task/add",
        {"title": "Greet", "prompt": "say Hello.", "spec": {"cwd": str(scratch.repo)}},
        token=served.token(),
    )[1]["data"]["id"]
    scratch.wait_for(task, "done")
    assert scratch.data("run", "status")["pid"] == served.process.pid
    assert served.end() == 0
    assert scratch.type("run", "status").returncode == 1


def test_a_task_posted_for_nobody_runs_and_one_for_a_member_is_left_to_them(scratch, serve):
    served = serve()
    token = served.token()
    body = {"subject": "Greet", "description": "say Hello."}
    theirs = served.ask("POST", "/tasks", body | {"toHandle": "bob"}, token=token)[1]
    queued = served.ask("POST", "/tasks", body, token=token)[1]
    assert (theirs["ownerHandle"], queued["ownerHandle"]) == ("bob", None)
    scratch.wait_for(queued["id"], "done")
    reply = served.ask("GET", f"/tasks/{queued['id']}", token=token)[1]
    assert (reply["status"], reply["description"]) == ("resolved", "say Hello.")
    assert reply["updatedAt"] > reply["createdAt"]
    assert scratch.data("show", theirs["id"])["task"]["status"] == "assigned"
    assert served.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopping_the_server_ends_no_agent_and_the_next_one_takes_it_up(scratch, serve, number):
    served = serve()
    task = scratch.add("Long", script="hear 60\nsay Done.")
    scratch.wait_for(task, "running")
    assert served.end(number) == 0
    assert "1 still run" in served.said()
    assert scratch.data("show", task)["task"]["status"] == "running"
    served.start()
    scratch("send", task, "Go on")
    scratch.wait_for(task, "done")
    assert [run["id"] for run in scratch.data("show", task)["runs"]] == [f"{task}.1"]


def test_without_the_supervisor_nothing_starts(scratch, serve):
    serve("--no-run")
    task = scratch.add("Waits")
    assert scratch.type("run", "status").returncode == 1
    assert scratch.status(task) == "ready"


def test_where_a_supervisor_runs_already_the_server_only_serves(scratch, serve):
    with scratch.supervisor() as process:
        until(lambda: scratch.type("run", "status").returncode == 0, "the supervisor")
        served = serve()
        until(lambda: "only serves" in served.said(), "the server to say so")
        assert f"(pid {process.pid})" in served.said()
        assert served.ask("GET", "/health")[0] == 200
        assert served.end() == 0
        assert process.poll() is None


def begun(scratch, task):
    until(lambda: "deaf" in scratch("logs", task), "its first words")


def test_a_supervisor_inside_the_server_is_not_stopped_without_it(scratch, serve):
    served = serve()
    until(lambda: "Supervising" in served.said(), "it to supervise")
    for words in (("stop",), ("restart",)):
        refused = scratch.type("run", *words)
        assert refused.returncode == 1
        assert f"runs inside the server (pid {served.process.pid})" in refused.stderr
        assert "ends both" in refused.stderr
    assert f"{served.process.pid}, inside the server" in scratch("run", "status")
    assert "It keeps running" in scratch("down")
    assert served.ask("GET", "/health")[0] == 200
    assert scratch.type("run", "status").returncode == 0


def test_a_cancel_is_answered_when_the_run_is_over_and_holds_up_nobody(scratch, serve):
    served = serve(env={"FLEET_RUN_GRACE": "0.5"})
    token = served.token()
    task = scratch.add("Deaf", script="ignore-term\nsay deaf\nsleep 600")
    scratch.wait_for(task, "running")
    begun(scratch, task)
    seen = []

    def cancel():
        answer = served.ask("POST", "/v1/task/cancel", {"task": task}, token=token)
        seen.append((*answer, scratch.data("show", task)["runs"][-1]["state"]))

    thread = threading.Thread(target=cancel)
    thread.start()
    between = 0
    while thread.is_alive():
        assert served.ask("GET", "/v1/task/list", token=token)[0] == 200
        note = {"task": task, "text": "Also"}
        assert served.ask("POST", "/v1/message/comment", note, token=token)[0] == 201
        between += 1
        thread.join(0.1)
    ((status, said, state),) = seen
    assert (status, said["data"]["id"], state) == (200, task, "ended")
    assert between > 2


def test_with_no_supervisor_here_the_server_ends_the_run_itself(scratch, serve):
    task = scratch.add("Deaf", script="say deaf\nsleep 600")
    process = scratch.start("run")
    scratch.wait_for(task, "running")
    begun(scratch, task)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=LIMIT)
    served = serve("--no-run")
    status, _ = served.ask("POST", "/v1/task/cancel", {"task": task}, token=served.token())
    assert (status, scratch.status(task)) == (200, "cancelled")


@pytest.mark.parametrize("words", [(), ("--no-run",)], ids=["inside", "no supervisor"])
def test_what_a_command_writes_is_streamed_at_once(scratch, serve, words):
    """Within less than the 15 s after which a stream looks by itself."""
    served = serve(*words)
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=LIMIT)
    connection.request("GET", "/events", headers={"Authorization": f"Bearer {served.token()}"})
    answer = connection.getresponse()
    while b"ready" not in answer.readline():
        pass
    task = scratch.add("Seen")
    while (line := answer.readline()) and b"task.added" not in line:
        pass
    assert task.encode() in answer.readline()
    connection.close()


def test_whoever_reads_events_is_let_go_when_the_server_stops(serve):
    served = serve("--no-run")
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=LIMIT)
    connection.request("GET", "/events", headers={"Authorization": f"Bearer {served.token()}"})
    answer = connection.getresponse()
    assert b"retry" in answer.readline()
    assert served.end() == 0
    answer.read()  # to its end: one that is cut off would raise
    connection.close()


def test_a_server_in_the_background_works_where_it_was_started(scratch):
    port = str(free_ports())
    (scratch.repo / "click.py").write_text("raise SystemExit('not this one')\n")
    scratch("serve", "--background", "--port", port)
    try:
        there = Served.__new__(Served)
        there.scratch, there.port = scratch, int(port)
        asked = {"handle": "hi", "initialPrompt": "say Hello."}
        status, made = there.ask("POST", "/orchestrate/spawn", asked, token=there.token())
        assert (status, made["workingDir"]) == (200, str(scratch.repo))
        scratch.wait_for(made["id"], "done")
        again = scratch("serve", "--background", "--port", port)
        assert f"http://127.0.0.1:{port}" in again
        assert again == scratch("serve", "--status")
        other = ("serve", "--background", "--port", str(free_ports()))
        assert f"already running at http://127.0.0.1:{port}." in scratch.fails(*other, status=1)
    finally:
        assert "Stopped." in scratch("serve", "--stop")
    assert "No server is running in the background" in scratch("serve", "--stop")
    assert scratch.data("serve", "--status")["running"] is False


def test_a_home_has_one_server_and_commands_do_not_lose_it(scratch, serve):
    served = serve("--no-run")
    for words in (("--port", "0"), ("--background", "--port", str(free_ports()))):
        assert f"already running at {served.url}" in scratch.fails(
            "serve", *words, status=1
        ).replace(", at", " at")
    found = scratch.data("serve", "--status")
    assert (found["pid"], found["background"]) == (served.process.pid, False)
    assert f"pid {served.process.pid}" in scratch("serve", "--stop")
    assert served.url in scratch("health")
    served.process.kill()  # nobody has waited for it yet, so its number is still there
    assert scratch.data("serve", "--status")["running"] is False


@pytest.mark.parametrize("kind", ["dynamodb", "s3", "firestore", "postgresql"])
def test_a_server_keeps_nothing_in_another_store_than_it_was_told_to(scratch, kind):
    for words in (
        ("serve", "--port", "0"),
        ("tasks",),
        ("add", "x"),
        ("list",),
        ("token", "list"),
    ):
        done = scratch.type(*words, env={"STORAGE_BACKEND": kind})
        assert done.returncode == 2, words
        assert "STORAGE_BACKEND" in done.stderr


def test_a_lead_lands_work_over_the_network(scratch, serve):
    served = serve()
    lead = served.token("ann", "team-lead", "--team", "red")
    body = {"title": "Greet", "prompt": "write a.txt a\ncommit Greet"}
    task = served.ask("POST", "/v1/task/add", body, token=lead)[1]["data"]["id"]
    scratch.wait_for(task, "done")
    status, reply = served.ask("POST", "/v1/land/add", {"tasks": [task]}, token=lead)
    assert (status, reply["data"][0]["task"]) == (200, task), reply
    scratch.wait_for(task, "landed")
    assert scratch.git("show", "main:a.txt") == "a\n"
