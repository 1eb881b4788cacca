"""Runs on another machine, read through the server to which that machine has dialled in."""

from __future__ import annotations

import signal

import pytest
import requests

from tests.free_ports import free_ports
from tests.real.several_hosts import RealHost
from tests.wait import LIMIT, until

pytestmark = pytest.mark.real


@pytest.fixture
def hosts(tmp_path, postgres_url):
    """`a` serves; `b` supervises, and has the same project by its path."""
    a = RealHost(tmp_path / "a", postgres_url)
    b = RealHost(tmp_path / "b", postgres_url)
    yield a, b
    a.type("serve", "--stop")
    b.end(signal.SIGKILL)
    b.kill_keepers()


def link(a: RealHost, b: RealHost) -> None:
    port = free_ports()
    a("serve", "--background", "--port", str(port), "--no-run")
    server = f"http://127.0.0.1:{port}"
    b("status")  # makes its home
    who = {
        "Authorization": f"Bearer {a.data('token', 'create', 'root', '--role', 'coordinator')['token']}"
    }
    made = requests.post(
        f"{server}/v1/host/token", json={"host": b.host_id}, headers=who, timeout=LIMIT
    )
    assert made.status_code == 201, made.text
    (b.home / "server.token").write_text(made.json()["data"]["token"])
    b.env["FLEET_HOST_SERVER"] = server


def test_logs_and_diff_of_a_run_on_another_machine_are_read_through_the_server(hosts):
    a, b = hosts
    link(a, b)
    b.supervise()
    script = "say Hello from there.\nwrite far.txt x\ncommit Far"
    task = a.add("Far", script=script)
    a.wait_for(task, "done")
    until(lambda: a.type("logs", task).returncode == 0, why=lambda: a.type("logs", task).stderr)
    assert "Hello from there." in a("logs", task)
    assert "far.txt" in a("diff", task, "--stat")


def test_what_an_agent_does_on_another_machine_is_explained_through_the_server(hosts):
    a, b = hosts
    link(a, b)
    b.supervise()
    task = a.add("Far", script="say Working.\nrun sleep 300")
    until(lambda: a.status(task) == "running", why=b.log.read_text)
    until(
        lambda: a.type("explain", task).returncode == 0, why=lambda: a.type("explain", task).stderr
    )
    seen = a.data("explain", task)
    assert (seen["run"], seen["doing"]) == (f"{task}.1", "working")
    assert "another host" not in seen["by"]
    a("kill", task, "--force")
    assert a.status(task) == "cancelled"


def test_without_a_link_it_is_said_where_the_run_is(hosts):
    a, b = hosts
    b.supervise()
    task = a.add("Far", script="say Hello from there.\nwrite far.txt x\ncommit Far")
    a.wait_for(task, "done")
    refused = a.fails("logs", task, status=3)
    assert f"{task}.1 was on {b.host_id}" in refused
    assert f"On {b.host_id}: fleet logs {task}" in refused
    assert "far.txt" in a("diff", task, "--stat"), "its commits are in the store"
    busy = a.add("Busy", script="run sleep 300")
    until(lambda: a.status(busy) == "running", why=b.log.read_text)
    for command in ("explain", "diff"):
        assert f"On {b.host_id}: fleet {command} {busy}" in a.fails(command, busy, status=3)


def test_work_that_its_agent_left_uncommitted_there_is_not_shown_as_nothing(hosts):
    a, b = hosts
    b.env["FLEET_RUN_COMMIT"] = "leave"
    b.supervise()
    task = a.add("Far", script="write far.txt x")
    a.wait_for(task, "done")
    assert f"On {b.host_id}: fleet diff {task}" in a.fails("diff", task, status=3)
    assert "has work that is not committed" in a.fails("merge", task, status=1)
