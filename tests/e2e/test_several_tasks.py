"""Commands that take several tasks: ids, branches and patterns, one line for each."""

import json

import pytest

from fleet.cli.tasks.bulk import some
from tests.e2e.scratch import Scratch
from tests.wait import until


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


def add(scratch, *titles, **given):
    for title in titles:
        scratch("add", title, *(f"--{key}={value}" for key, value in given.items()))


def states(scratch):
    return {
        t["id"]: t["status"]
        for t in json.loads(scratch("tasks", "--all", "--everywhere", "--json"))["data"]
    }


def test_several_tasks_are_paused_resumed_and_cancelled_with_one_line_each(scratch):
    add(scratch, "One", "Two", "Three")
    assert scratch("pause", "t-1", "2") == (
        "t-1 does not start until you resume it.\nt-2 does not start until you resume it.\n"
    )
    assert scratch("resume", "t-1", "t-2") == "t-1 may start.\nt-2 may start.\n"
    assert scratch("cancel", "t-1", "t-2", "t-1") == "t-1 is cancelled.\nt-2 is cancelled.\n"
    assert scratch("close", "t-3", "--reason", "By hand") == "t-3 is done.\n"
    assert states(scratch) == {"t-1": "cancelled", "t-2": "cancelled", "t-3": "done"}


def test_one_that_is_refused_is_named_and_the_others_are_done(scratch):
    add(scratch, "One", "Two")
    scratch("cancel", "t-1")
    done = scratch.type("cancel", "t-1", "t-2")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "t-1 is already cancelled. `fleet show t-1` shows what happened.",
        "t-2 is cancelled.",
    ]
    missing = scratch.type("retry", "t-1", "t-9")
    assert missing.returncode == 2
    assert missing.stdout.splitlines() == [
        "t-1 is open again.",
        "There is no task 't-9'. `fleet tasks --all` lists them.",
    ]
    assert states(scratch) == {"t-1": "ready", "t-2": "cancelled"}


def test_json_has_each_task_or_its_error(scratch):
    add(scratch, "One")
    done = scratch.type("pause", "t-1", "t-9", "--json")
    data = json.loads(done.stdout)["data"]
    assert [(one["name"], one["error"] and one["error"]["code"]) for one in data] == [
        ("t-1", None),
        ("t-9", "not_found"),
    ]
    assert data[0]["task"]["status"] == "paused"
    assert json.loads(scratch("resume", "t-1", "--json"))["kind"] == "task"


def test_a_pattern_means_the_tasks_here_that_the_command_can_take(scratch, tmp_path):
    add(scratch, "One", branch="fix/login")
    add(scratch, "Two", branch="fix/logout")
    add(scratch, "Three", branch="docs")
    other = tmp_path / "other"
    other.mkdir()
    scratch.git("init", "-q", cwd=other)
    scratch.git("commit", "-q", "--allow-empty", "-m", "Begin", cwd=other)
    scratch("add", "Elsewhere", cwd=other)
    scratch("pause", "fix/*")
    assert states(scratch) == {"t-1": "paused", "t-2": "paused", "t-3": "ready", "t-4": "ready"}
    assert scratch("resume", "*") == "t-1 may start.\nt-2 may start.\n"
    scratch("cancel", "log*", "docs")
    scratch("cancel", "*", cwd=other)
    assert set(states(scratch).values()) == {"cancelled"}
    nothing = scratch.type("retry", "*")
    assert nothing.returncode == 2
    assert "No failed task here matches '*'." in nothing.stderr
    assert "No task here matches 'zz*'.\n" in scratch.fails("cancel", "zz*", status=2)
    said = scratch.fails("cancel", "t-*", status=2)
    assert "No task that matches 't-*' can be changed this way: they are cancelled.\n" in said


def test_retry_failed_opens_every_failed_task_of_the_project(scratch):
    assert scratch("retry", "--failed") == "No task of this project has failed.\n"
    add(scratch, "One", "Two", prompt="exit 3", attempts=1)
    add(scratch, "Three", prompt="say hi")
    scratch("run", "--once")
    assert states(scratch) == {"t-1": "failed", "t-2": "failed", "t-3": "done"}
    assert scratch("retry", "--failed") == "t-1 is open again.\nt-2 is open again.\n"
    assert states(scratch) == {"t-1": "ready", "t-2": "ready", "t-3": "done"}


def test_retry_takes_tasks_or_all_that_failed_not_both(scratch):
    add(scratch, "One", prompt="say hi")
    scratch("run", "--once")
    both = scratch.fails("retry", "--failed", "t-1", status=2)
    neither = scratch.fails("retry", status=2)
    assert both == neither
    assert "fleet retry t-3, or fleet retry --failed" in both
    assert states(scratch) == {"t-1": "done"}


def test_a_pattern_that_matches_nothing_says_what_it_is_compared_with(scratch):
    add(scratch, "Fix the login")
    said = scratch.fails("pause", "Fix*", status=2)
    assert "compared with ids (t-3) and branches, not with titles" in said


def test_without_a_task_the_command_says_which_argument_is_missing(scratch):
    for command in ("cancel", "retry", "pause", "resume", "close"):
        done = scratch.type(command)
        assert done.returncode == 2
        assert "task" in done.stderr.lower()


def test_kill_of_a_pattern_ends_what_the_list_shows_and_nothing_that_waits_for_a_person(scratch):
    add(scratch, "Look at it", prompt="write a.txt x\ncommit A", branch="waits-for-review")
    scratch("cancel", "t-1")
    scratch("add", "Review me", "--review", "--branch=for-review", "-p", "write a.txt x\ncommit A")
    scratch("add", "Asks", "--branch=asks", "-p", "ask Which licence?")
    scratch("run", "--once")
    assert {"review", "asking"} <= set(states(scratch).values())
    scratch("create", "at-work", "--headless", "-p", "sleep 60")
    listed = {a["task"] for a in json.loads(scratch("list", "--json"))["data"]}
    said = scratch("kill", "*", "--force")
    assert listed == {"t-4"}
    assert said.startswith("at-work (t-4) is cancelled.")
    assert states(scratch) == {
        "t-1": "cancelled",
        "t-2": "review",
        "t-3": "asking",
        "t-4": "cancelled",
    }


def test_a_name_is_free_again_once_its_agent_was_ended_without_work(scratch):
    scratch("create", "fix", "--headless", "-p", "sleep 60")
    scratch("kill", "fix", "--force")
    assert "fix" not in scratch.git("branch", "--format=%(refname:short)").split()
    scratch("create", "fix", "--headless", "-p", "write a.txt x\ncommit A\nsleep 60")
    until(lambda: "A" in scratch.git("log", "--format=%s", "fix").split(), "it has committed")
    scratch("kill", "fix", "--force")
    assert "fix" in scratch.git("branch", "--format=%(refname:short)").split()
    refused = scratch.fails("create", "fix", "--headless", "-p", "say hi", status=1)
    assert "There is already a branch fix." in refused


def test_a_list_says_when_there_are_more_than_it_shows(scratch):
    add(scratch, "One", "Two", "Three")
    for more in ((), ("--tree",)):
        cut = scratch.type("tasks", "-n", "2", *more)
        assert "There are more than these 2: `fleet tasks -n 20` lists more." in cut.stderr
        assert len({"t-1", "t-2", "t-3"} & set(cut.stdout.split())) == 2
        assert "There are more" not in scratch.type("tasks", "-n", "3", *more).stderr
    assert "There are more" in scratch.document("tasks", "-n", "2")["notes"][0]


def test_a_question_names_a_few_of_many_tasks():
    assert some(["t-1", "t-2"]) == "t-1, t-2"
    assert some([f"t-{n}" for n in range(1000)]).endswith("t-18, t-19 and 980 more")
