"""Waiting for tasks, and going where they are worked on, as a person types it."""

from __future__ import annotations

import json
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.e2e.scratch import Scratch
from tests.e2e.served import Served
from tests.wait import LIMIT, until


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def outcomes(scratch, *words, status, **given):
    done = scratch.type("wait", *words, "--json", **given)
    assert done.returncode == status, done.stdout + done.stderr
    return json.loads(done.stdout)["data"]


def test_the_status_tells_how_the_tasks_ended(scratch):
    good, bad = scratch.add("Good"), scratch.add("Bad", "--attempts", "1", script="fail 9 no luck")
    scratch.work()
    assert scratch("wait", good) == f"{good} is done: Good.\n"
    done = scratch.type("wait", good, bad)
    assert done.returncode == 1
    assert f"{bad} failed: Bad. Exit status 1. no luck  → fleet retry {bad}" in done.stdout
    assert scratch.type("wait", "--any", good, bad).returncode == 1
    assert [one["outcome"] for one in outcomes(scratch, good, bad, status=1)] == ["done", "failed"]
    assert [one["task"] for one in outcomes(scratch, "t-*", status=1)] == [good, bad]
    scratch("cancel", bad)
    assert outcomes(scratch, bad, status=1)[0]["status"] == "cancelled"
    assert "There is no task" in scratch.fails("wait", "t-99", status=2)


def test_it_returns_as_soon_as_the_last_has_ended(scratch):
    tasks = [scratch.add("Quick"), scratch.add("Slow", script="sleep 1\nsay Done.")]
    with scratch.supervisor():
        assert [o["outcome"] for o in outcomes(scratch, *tasks, status=0)] == ["done", "done"]


def test_any_waits_for_the_first(scratch):
    slow, quick = scratch.add("Slow", script="sleep 60"), scratch.add("Quick")
    with scratch.supervisor():
        waited = outcomes(scratch, "--any", slow, quick, status=0)
    assert [one["outcome"] for one in waited] == ["goes-on", "done"]


def test_the_time_that_it_waits_can_be_limited(scratch):
    task = scratch.add()
    done = scratch.type("wait", task, "--timeout", "0.3")
    assert (done.returncode, done.stdout) == (3, f"{task} is ready: Fix the login.\n")


def test_a_task_that_nobody_starts_or_whose_program_is_missing_is_told(scratch):
    task = scratch.add("Work", "--coder", "agy")
    off = "No supervisor is running, so nothing starts."
    assert off in scratch.type("wait", task, "--timeout", "0.3").stderr
    with scratch.supervisor():
        record, early = scratch.home / "supervisor.json", (FileNotFoundError, KeyError)
        until(lambda: json.loads(record.read_text())["supervising"], "it", errors=early)
        done = scratch.type("wait", task, timeout=LIMIT)
    assert done.returncode == 4
    assert "agy is not on the supervisor's PATH." in done.stdout
    assert "Install agy" in done.stdout
    assert off not in done.stderr


def test_a_question_is_said_at_once_and_ends_the_wait(scratch):
    task = scratch.add("Ask", script="ask Which way?\nsay {answer}")
    later = scratch.add("Later", "--after", task)
    last = scratch.add("Last", "--after", later)
    scratch.work()
    done = scratch.type("wait", task, later)
    assert done.returncode == 4
    said = f"{task} is asking: Ask. It asks (m-1): Which way?  → fleet answer {task} TEXT"
    assert said in done.stdout
    assert done.stderr == ""  # once is enough
    (one,) = outcomes(scratch, last, status=4)
    assert (one["outcome"], one["fix"]) == ("needs-you", f"fleet answer {task} TEXT")


def test_a_question_is_said_while_the_others_go_on(scratch):
    task = scratch.add("Ask", script="ask Which way?")
    scratch.work()
    ready = scratch.add("Ready")
    done = scratch.type("wait", task, ready, "--timeout", "3")
    assert f"{task} is asking: Ask." in done.stderr
    assert done.returncode == 3


def test_a_question_of_a_run_that_goes_on_is_said_too(scratch):
    task = scratch.add("Ask", script="run fleet ask Which --timeout 50\nsay Done.")
    with scratch.supervisor():
        (one,) = outcomes(scratch, task, status=4)
        assert (one["status"], one["why"]) == ("running", "It asks: Which")
        scratch("answer", task, "Left")
        assert outcomes(scratch, task, status=0)[0]["outcome"] == "done"


def test_what_failed_tasks_hold_up_needs_you(scratch):
    first = scratch.add("First", "--attempts", "1", script="fail 9 no")
    then = scratch.add("Then", "--after", first)
    review = scratch.add("Look", "--review")
    scratch.work()
    (one,) = outcomes(scratch, then, status=4)
    assert f"fleet retry {first}" in one["fix"]
    assert outcomes(scratch, review, status=4)[0]["fix"] == f"fleet diff {review}"


def test_it_waits_for_the_tasks_of_a_server_elsewhere(scratch):
    with closing(Served(scratch)) as served:
        task = scratch.add("Slow", script="sleep 1\nsay Done.")
        scratch("wait", task, env={"FLEET_URL": served.url})


def test_cd_prints_the_directory_of_the_work(scratch):
    task = scratch.add("Work", "--branch", "fix-login", script="write a.txt one\nsleep 60")
    assert "no run of it has started" in scratch.fails("cd", task, status=1)
    with scratch.supervisor():
        scratch.wait_for(task, "running")
        path = Path(scratch("cd", "fix-login").strip())
        assert path.is_dir()
        assert scratch.data("cd", task) == {"task": task, "path": str(path)}
        script = f"{scratch('completion', 'bash')}\nfleet-cd {task} && pwd"
        shell = ["bash", "-c", script]
        done = subprocess.run(
            shell, env=scratch.env, cwd=scratch.repo, capture_output=True, text=True, check=False
        )
        assert done.stdout == f"{path}\n", done.stderr
        words = scratch.fails("cd", task, status=1, env={"FLEET_URL": "http://127.0.0.1:9"})
        assert "acts on this machine" in words


def test_open_starts_your_editor_there(scratch, tmp_path):
    task = scratch.add("Work", script="write a.txt one\ncommit x")
    scratch.work()
    path = scratch("cd", task).strip()
    editor = tmp_path / "my editor"
    editor.write_text(f"#!/bin/sh\necho \"$1\" > '{tmp_path}/opened'\n")
    editor.chmod(0o755)
    assert scratch("open", task, env={"VISUAL": f"'{editor}'"}) == f"Opened {path}.\n"
    assert (tmp_path / "opened").read_text() == f"{path}\n"
    assert "--editor PROGRAM" in scratch.fails("open", task, status=2)
    assert "status 1" in scratch.fails("open", task, "--editor", "false", status=1)


def test_a_worktree_that_is_gone_is_not_printed(scratch):
    task = scratch.add("Work", "--branch", "fix-login", script="write a.txt one\ncommit x")
    scratch.work()
    scratch("kill", task)
    words = scratch.fails("cd", task, status=1)
    assert f"The worktree of {task} was removed" in words
    assert "Its branch is fix-login" in words


def test_a_directory_of_another_host_is_not_printed(scratch):
    task = scratch.add("Work")
    scratch.work()
    (scratch.home / "host").write_text("other-1234")
    assert "its directory is there" in scratch.fails("cd", task, status=1)
