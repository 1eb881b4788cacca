"""The same commands against a server elsewhere: another home, an address and a token."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from tests.e2e.scratch import FLEET, Scratch
from tests.e2e.served import Served
from tests.wait import LIMIT, until


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    made = Served(Scratch(tmp_path_factory.mktemp("there")))
    yield made
    made.close()


@pytest.fixture(scope="module")
def away(served, tmp_path_factory):
    """Somebody with a home of their own, which stays empty."""
    scratch = Scratch(tmp_path_factory.mktemp("here"))
    scratch.env |= {"FLEET_URL": served.url, "FLEET_TOKEN": served.token("bob", "coordinator")}
    return scratch


def test_a_task_is_queued_there_done_there_and_shown_here(served, away):
    task = away.add("Greet", script="say Hello from there.")
    until(lambda: away.status(task) == "done", "the task to be done there")
    assert served.scratch.status(task) == "done"
    assert task in away("tasks", "--all")
    assert "Hello from there." in away("logs", task)
    assert not (away.home / "fleet.db").exists()


def test_what_needs_somebody_there_is_listed_here(served, away):
    task = away.add("Choose a licence", script="ask Which licence?")
    until(lambda: away.status(task) == "asking", "the question")
    assert f"fleet answer {task} TEXT" in away("inbox")
    assert f"cwd       {served.scratch.repo}" in away("show", task)
    away("cancel", task)


def test_an_agent_is_spoken_to_and_cancelled_from_here(served, away):
    task = away.add("Listen", script="hear 60\nsleep 600")
    until(lambda: away.status(task) == "running", "it to run")
    assert "has read the message" in away("send", task, "Go on", "--wait", "30")
    away("cancel", task)
    assert served.scratch.status(task) == "cancelled"
    assert served.scratch.data("show", task)["runs"][-1]["state"] == "ended"


def test_a_question_is_answered_from_here(served, away):
    task = away.add("Ask", script="ask Which colour?\nsay {answer}")
    until(lambda: away.data("questions"), "the question")
    (question,) = away.data("questions")
    away("answer", question["id"], "Blue")
    until(lambda: away.status(task) == "done", "it to be done")
    assert "Blue" in away("logs", task)


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        (("show", "t-999"), 2, "not_found"),
        (("cancel", "{done}"), 1, "ended"),
        (("add", " "), 2, "bad_input"),
    ],
)
def test_an_error_is_the_same_as_it_is_there(served, away, words, status, code):
    done = served.scratch.add("Done")
    served.scratch.wait_for(done, "done")
    typed = [word.format(done=done) for word in words]
    here, there = (scratch.type(*typed, "--json") for scratch in (away, served.scratch))
    assert here.returncode == there.returncode == status
    assert here.stderr == there.stderr
    assert f'"{code}"' in here.stderr


def test_a_command_of_this_machine_says_so_and_stays_here(away):
    done = away.type("run", "status")
    assert "acts on this machine" in done.stderr
    assert "stopped" in done.stdout


def test_attach_leads_to_the_terminal_of_an_agent_there(served, away):
    away("spawn", "seat", "say Hello from there.")
    (agent,) = away.data("list")
    until(lambda: away.data("show", agent["task"])["task"]["status"] == "running", "it to run")
    refused = away.fails("attach", "seat", status=1)
    assert "Standard input is not a terminal." in refused
    assert "acts on this machine" not in refused
    master, slave = pty.openpty()
    given = {"stdin": slave, "stdout": slave, "stderr": slave, "start_new_session": True}
    there = subprocess.Popen([FLEET, "attach", "seat"], cwd=away.repo, env=away.env, **given)
    os.close(slave)
    try:
        seen = b""
        until(lambda: select.select([master], [], [], 0)[0], "the terminal to be drawn")
        while b"Hello from there." not in seen:
            seen += os.read(master, 65536)
        os.write(master, b"\x11")  # Ctrl-Q
        assert there.wait(LIMIT) == 0
    finally:
        there.kill()
        os.close(master)
        away("dismiss", "seat")


def test_what_needs_this_machine_is_refused_and_nothing_of_it_done_there(served, away):
    before = served.scratch.data("tasks", "--all")
    assert "Unset FLEET_URL" in away.fails("create", "fix/login", "--prompt", "x", status=1)
    assert [row["id"] for row in served.scratch.data("tasks", "--all")] == [
        row["id"] for row in before
    ]
    task = away.add("Listen", script="sleep 600")
    until(lambda: away.status(task) == "running", "it to run")
    assert "Unset FLEET_URL" in away.fails("kill", task, status=1)
    assert away.status(task) == "running"
    away("cancel", task)


@pytest.mark.parametrize("where", ["here", "there"])
def test_the_commands_of_a_team_work_at_once_here_and_for_a_server_elsewhere(served, away, where):
    """Whoever started the server pastes nothing; somebody else has its address and a token."""
    scratch = served.scratch if where == "here" else away
    assert "ok" in scratch("health")
    assert "fleet_tasks" in scratch("metrics")
    scratch(
        "spawn", f"fix/{where}", "hear 60\nsleep 600", "--spawn-mode", "process", "--wait", "30"
    )
    assert f"fix/{where}" in scratch("workers")
    assert "has read the message" in scratch("send", f"fix/{where}", "Go on", "--wait", "30")
    assert scratch.data("worktree", "status", f"fix/{where}")["branch"] == f"fix/{where}"
    swarm = scratch.data("swarm-create", where, "3")["id"]
    assert where in scratch("swarms")
    scratch("blackboard-post", swarm, "Tests are green")
    assert "Tests are green" in scratch("blackboard", swarm)
    scratch("swarm-kill", swarm)
    assert where not in scratch("swarms")
    assert ("ada" if where == "here" else "bob") in scratch("teams", "local")
    assert "hear 60" in scratch("tasks", "local")
    assert "No checkpoints." in scratch("checkpoints")
    scratch("dismiss", f"fix/{where}")
    assert f"fix/{where}" not in scratch("workers")


def test_a_token_and_a_secret_are_made_by_who_may(served, away):
    said = served.scratch("token", "create", "zoe")
    assert f"export FLEET_URL={served.url}\nexport FLEET_TOKEN=ey" in said
    assert "# zoe is a worker of team local, until 20" in said
    assert "of all teams" in served.scratch("token", "create", "zoe", "--role", "coordinator")
    too_long = served.scratch.fails("token", "create", "zoe", "--days", "91", status=1)
    assert "at most 90 days" in too_long
    assert served.scratch("token", "enrol", "--role", "worker").startswith("enrol-")
    (made,) = served.scratch.data("token", "enrolments")
    assert (made["role"], made["secret"]) == ("worker", "")
    assert f"Revoked {made['id']}" in served.scratch("token", "revoke", made["id"])
    assert f"export FLEET_URL={served.url}\n" in away("token", "create", "zoe")
    lead = {"FLEET_TOKEN": served.token("tim", "team-lead")}
    assert "may not admin" in away.fails("token", "create", "zoe", status=1, env=lead)


def test_without_a_token_another_machine_is_not_asked(served, away):
    elsewhere = {"FLEET_URL": "http://fleet.example:3847", "FLEET_TOKEN": ""}
    assert "FLEET_TOKEN" in away.fails("tasks", status=1, env=elsewhere)
    assert "token" in away.fails("tasks", status=1, env={"FLEET_TOKEN": "x"})


def test_whoever_started_the_server_pastes_nothing(served):
    scratch = served.scratch
    for name in ("FLEET_URL", "CLAUDE_FLEET_URL"):
        words = ("tasks", "--all", "--everywhere")
        here, there = (scratch.data(*words, env=env) for env in ({}, {name: served.url}))
        assert [row["id"] for row in there] == [row["id"] for row in here]


def test_the_environment_names_a_team_and_a_name_and_may_only_lower_the_role(served):
    scratch = served.scratch
    url = {"FLEET_URL": served.url}
    red = {"CLAUDE_FLEET_TEAM": "red", "CLAUDE_CODE_AGENT_NAME": "rose"}
    for more in (url, {}):
        assert scratch.data("add", "Red", env=red | more)["team"] == "red"
        worker = {"CLAUDE_CODE_AGENT_TYPE": "worker", **more}
        task = scratch.data("add", "By a worker", "--prompt", "sleep 600", env=worker)["id"]
        assert "may not assign" in scratch.fails("cancel", task, status=1, env=worker)
        unknown = {"CLAUDE_CODE_AGENT_TYPE": "kraken", **more}
        assert "may not assign" in scratch.fails("cancel", task, status=1, env=unknown)
        scratch("cancel", task)


def test_the_environment_may_lower_the_role_of_a_token_as_well(away):
    task = away.add("By a coordinator", script="sleep 600")
    worker = {"CLAUDE_CODE_AGENT_TYPE": "worker"}
    assert "may not assign" in away.fails("cancel", task, status=1, env=worker)
    assert away.data("show", task, env=worker)["task"]["id"] == task
    away("cancel", task)


@pytest.mark.parametrize("url", ["ftp://x", "http://", "http://x:99999", "http://x:y"])
def test_an_address_that_is_none_is_refused(away, url):
    assert "not the address of a server" in away.fails("tasks", status=2, env={"FLEET_URL": url})


def test_a_server_of_somebody_else_is_given_no_token_of_ours(served, tmp_path):
    """It could use it with our own server."""
    scratch = Scratch(tmp_path)
    other = Served(scratch, "--no-run")
    seen = []

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self):
            seen.append(self.headers.get("Authorization"))
            self.send_response(401)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Listener) as theirs:
        thread = threading.Thread(target=theirs.handle_request)
        thread.start()
        url = f"http://127.0.0.1:{theirs.server_address[1]}"
        assert "No Fleet server" in scratch.fails("tasks", status=3, env={"FLEET_URL": url})
        thread.join()
    assert seen == [None]
    other.close()


def test_a_task_is_about_the_servers_directory_unless_another_is_named(served, away, tmp_path):
    lead = {"FLEET_TOKEN": served.token("ann", "team-lead")}
    there = str(served.scratch.repo)
    added = away("add", "Greet", "--coder", "scripted", "--prompt", "say Hi", env=lead)
    assert there in added
    named = away("add", "Greet", "--coder", "scripted", "--cwd", there, "--json", env=lead)
    assert json.loads(named)["data"]["project"] == there
    nowhere = away.fails("add", "Greet", "--cwd", str(tmp_path), status=2, env=lead)
    assert str(tmp_path) in nowhere
