"""Agents in containers of bubblewrap: what works as outside, and what their caps stop."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.contained import Contained
from tests.isolation import folder_of_bwrap
from tests.wait import until


@pytest.fixture
def contained(supervised):
    if not folder_of_bwrap():
        pytest.skip("bubblewrap does not work here")
    made = Contained(supervised, PATH=f"{folder_of_bwrap()}:{supervised.env['PATH']}")
    yield made
    made.end()


def test_an_agent_asks_is_answered_and_commits(contained):
    contained.serve()
    contained.check_asking()


def test_its_words_reach_it_after_the_supervisor_was_killed(contained):
    contained.serve()
    contained.check_words_after_a_kill()


def test_an_agent_in_a_terminal_works_and_stops(contained):
    contained.serve()
    contained.check_terminal()


def test_of_the_machine_it_can_change_its_worktree_alone(contained):
    contained.serve()
    supervised = contained.supervised
    task = supervised.add(
        f"run sh -c 'touch {supervised.place}/outside /etc/outside {supervised.repo}/outside; true'",
        f"run sh -c 'head -c 1 {supervised.home}/server.key; true'",
        "write inside.txt yes",
    )
    supervised.wait(task)
    assert not [
        p for p in (supervised.place, Path("/etc"), supervised.repo) if (p / "outside").exists()
    ]
    assert (Path(supervised.run(task).workspace.path) / "inside.txt").exists()


def test_a_run_that_exceeds_its_memory_ends_so_and_not_for_ever(contained):
    contained.serve(FLEET_WORKSPACE_LIMITS_MEMORY="64MiB")
    contained.check_memory()


def test_a_fork_bomb_is_stopped_by_the_cap(contained):
    contained.serve(FLEET_WORKSPACE_LIMITS_PIDS="40")
    contained.check_pids()


def test_without_a_network_it_reaches_nothing_outside_but_can_ask(contained):
    contained.serve(FLEET_WORKSPACE_CONTAINER_NETWORK="none")
    contained.check_no_network()
    contained.check_asking("t-2")


def test_with_the_gateway_it_reaches_that_alone(contained):
    contained.check_gateway()


def test_a_gate_is_in_a_container_too(contained):
    contained.serve(FLEET_WORKSPACE_CONTAINER_NETWORK="none")
    supervised = contained.supervised
    with socket.create_server(("127.0.0.1", 0)) as outside:
        gate = f"! python3 connect.py {outside.getsockname()[1]}"
        task = supervised.add("say Done.", gate=gate)
        supervised.wait(task)


def test_the_doctor_tries_the_caps(contained):
    assert "memory" in contained.doctor()


def test_a_stop_ends_all_of_it(contained):
    contained.serve()
    supervised = contained.supervised
    task = supervised.add("ignore-term", "spawn 60", "say Ready.", "hear 60")
    supervised.heard(task, "Ready.")
    assert supervised.type("cancel", task).returncode == 0
    supervised.wait(task, state="cancelled")
    until(lambda: not supervised.strays())


RUN_STAND_IN = """\
#!/bin/sh
printf '%s\\n' "$@" > "$HOME/scope.txt"
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""
ASK_STAND_IN = """\
#!/bin/sh
echo oom-kill
"""


def test_a_scope_of_systemd_caps_it(contained):
    """By stand-ins that do what systemd would: the words are theirs, the container is real."""
    supervised = contained.supervised
    folder = supervised.place / "stand-ins"
    folder.mkdir()
    for name, text in (("systemd-run", RUN_STAND_IN), ("systemctl", ASK_STAND_IN)):
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    path = f"{folder}:{supervised.env['PATH']}"
    contained.serve(PATH=path, FLEET_WORKSPACE_CONTAINER_PROGRAM="systemd")
    task = supervised.add("exit 1", attempts=1)
    supervised.wait(task, state="failed")
    words = (supervised.place / "scope.txt").read_text().splitlines()
    assert words[:3] == ["--user", "--scope", "--quiet"]
    assert {"--property=MemoryMax=4294967296", "--property=TasksMax=1024"} < set(words)
    assert "--property=CPUQuota=200%" in words
    assert supervised.endings(task) == ["out_of_memory"]
