"""What a token makes the server's machine do, with the supervisor inside the server."""

from __future__ import annotations

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.wait import until

ADD = "/v1/task/add"


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


@pytest.fixture
def serve(scratch):
    made = []

    def start(*words, **env):
        made.append(Served(scratch, *words, env=env))
        return made[-1]

    yield start
    for served in made:
        served.close()


def add(served, token, prompt, **spec):
    body = {"title": "x", "prompt": prompt, "spec": spec}
    return served.ask("POST", ADD, body, token=token)


@pytest.mark.parametrize("spec", [{"coder": "scripted"}, {"agent": "scripted"}], ids=str)
def test_a_token_below_a_coordinators_is_no_shell(serve, scratch, spec):
    """The server's own default is a model's program."""
    served = serve(FLEET_CODER="claude")
    stolen = scratch.root / "stolen"
    steal = f"run cp {scratch.home}/server.key {stolen}"
    for role in ("worker", "team-lead"):
        token = served.token(role, role, "--team", "red")
        status, said = add(served, token, steal, **spec)
        assert (status, said["code"]) == (403, "not_declared")
        assert said["fix"]
    root = served.token()
    task = add(served, root, "say Mine.", **spec)[1]["data"]["id"]
    until(lambda: scratch.data("show", task)["task"]["state"] == "done")
    assert not stolen.exists()


def test_a_workers_task_runs_once_a_lead_lets_it(serve, scratch):
    served = serve()
    tokens = {r: served.token(r, r, "--team", "red") for r in ("worker", "team-lead")}
    held = add(served, tokens["worker"], "say Hello.")[1]["data"]
    assert held["status"] == "held"
    later = add(served, tokens["team-lead"], "say Hello.")[1]["data"]["id"]
    until(lambda: scratch.data("show", later)["task"]["state"] == "done")
    shown = scratch("show", held["id"])
    assert "A worker asked for it: a team-lead or a coordinator must let it run." in shown
    assert f"fleet resume {held['id']}" in shown
    assert scratch.data("show", held["id"])["runs"] == []
    away = {"FLEET_URL": served.url}
    typed = scratch.type("add", "x", env={**away, "FLEET_TOKEN": tokens["worker"]})
    assert (typed.returncode, ", held, " in typed.stdout) == (0, True)
    assert "A team-lead or a coordinator must let it run: fleet resume" in typed.stderr
    assert len(scratch.data("tasks", "--status", "held")) == 2
    for role, status in (("worker", 1), ("team-lead", 0)):
        env = {**away, "FLEET_TOKEN": tokens[role]}
        assert scratch.type("resume", held["id"], env=env).returncode == status
    until(lambda: scratch.data("show", held["id"])["task"]["state"] == "done")


@pytest.mark.parametrize("mode", ["now", "terminal"])
def test_every_mode_counts_against_the_servers_limit(serve, scratch, mode):
    served = serve("--max", "1")
    for role in ("team-lead", "coordinator"):
        token = served.token(role, role, "--team", "red")
        for _ in range(2):
            assert add(served, token, "sleep 60", mode=mode)[0] < 300
    waiting = until(lambda: _full(scratch))
    assert len(waiting) == 3
    assert len([t for t in scratch.data("tasks") if t["run"]]) == 1
    for shown in waiting:
        scratch("cancel", shown["task"]["id"])


def _full(scratch):
    """The tasks that wait for room, once all but one do."""
    shown = [scratch.data("show", task["id"]) for task in scratch.data("tasks")]
    full = [s for s in shown if any("is full (1/1)" in wait["why"] for wait in s["waits"])]
    return full if len(full) == len(shown) - 1 else None
