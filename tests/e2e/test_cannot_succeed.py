"""What cannot succeed is refused when it is typed, or held with the reason; never tried in vain."""

from __future__ import annotations

import pytest

from tests.e2e.scratch import Scratch
from tests.wait import until


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


@pytest.fixture
def conflict(scratch):
    """Two tasks that are done, and whose branches conflict."""
    one = scratch.add("One", script="write same.txt one\ncommit One")
    two = scratch.add("Two", script="write same.txt two\ncommit Two")
    scratch.work()
    return one, two


def test_a_task_in_a_repository_without_a_commit_is_refused(scratch, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    scratch.git("init", "-q", cwd=empty)
    said = scratch.fails("add", "Fix the login", cwd=empty, status=1)
    assert f"{empty} has no commit yet" in said
    assert "git commit --allow-empty" in said
    assert scratch.data("tasks", "--all") == []


def test_a_base_that_does_not_exist_is_refused(scratch):
    said = scratch.fails("add", "Fix the login", "--base", "nosuchref", status=2)
    assert f"There is no commit 'nosuchref' in {scratch.repo} to start from." in said
    assert scratch.data("tasks", "--all") == []


def test_a_base_that_does_not_exist_is_refused_with_its_line_in_a_file(scratch):
    file = scratch.root / "tasks.yaml"
    file.write_text("tasks:\n- title: One\n- title: Two\n  base: nosuchref\n")
    said = scratch.fails("add", "--file", str(file), status=2)
    assert "tasks.yaml:3: There is no commit 'nosuchref'" in said
    assert scratch.data("tasks", "--all") == []


def test_dependencies_that_conflict_are_refused_once_their_commits_are_known(scratch, conflict):
    one, two = conflict
    said = scratch.fails("add", "Both", "--after", one, "--after", two, status=1)
    assert f"fleet/{two} conflicts with what the task starts from, in same.txt." in said
    assert "--base BRANCH" in said
    third = scratch.add("Third", "--after", one)
    assert "conflicts" in scratch.fails("dep", "add", third, two, status=1)
    assert scratch.data("show", third)["after"] == [one]


def test_dependencies_that_conflict_later_hold_the_task_until_its_base_has_both(scratch):
    one = scratch.add("One", script="write same.txt one\ncommit One")
    two = scratch.add("Two", script="write same.txt two\ncommit Two")
    both = scratch.add("Both", "--after", one, "--after", two, script="write it x\ncommit It")
    said = scratch.work()
    detail = scratch.data("show", both)
    assert (detail["task"]["status"], detail["failures"]) == ("paused", 0)
    assert len(detail["runs"]) == 1, said
    assert f"→ fleet edit {both} --base BRANCH" in said
    assert "fleet resume" not in said
    shown = scratch("show", both)
    assert f"fleet/{two} conflicts with what {both} starts from, in same.txt." in shown
    assert f"fleet edit {both} --base BRANCH" in shown
    assert detail["waits"][0]["fix"] == f"fleet edit {both} --base BRANCH"
    assert f"{both} has not begun yet" in scratch.fails("diff", both, status=1)
    (row,) = [line for line in scratch("status").splitlines() if f"fleet/{two} conflicts" in line]
    assert row.endswith(f"  fleet edit {both} --base BRANCH")
    scratch.git("checkout", "-q", f"fleet/{one}", "--detach")
    scratch.git("merge", "-q", "-s", "ours", f"fleet/{two}")
    scratch.git("branch", "both")
    scratch("edit", both, "--base", "both")
    scratch.work()
    assert scratch.status(both) == "done"
    assert scratch.data("show", both)["runs"][-1]["branch"] == f"fleet/{both}"


def test_a_base_that_went_away_holds_the_task_and_costs_no_attempt(scratch):
    scratch.git("branch", "soon-gone")
    task = scratch.add("Later", "--base", "soon-gone")
    scratch.git("branch", "-D", "soon-gone")
    scratch.work()
    detail = scratch.data("show", task)
    assert (detail["task"]["status"], detail["failures"]) == ("paused", 0)
    assert "There is no commit 'soon-gone'" in detail["waits"][0]["why"]
    scratch.git("branch", "soon-gone")
    scratch("resume", task)
    scratch.work()
    assert scratch.status(task) == "done"


def test_a_program_that_the_supervisor_does_not_find_holds_its_tasks_until_it_does(scratch):
    """In the home's settings, as a person's own coder is: a project's would need trust."""
    scratch.home.mkdir(exist_ok=True)
    (scratch.home / "config.yaml").write_text("coders:\n  mine:\n    command: [my-coder]\n")
    task = scratch.add("Fix it", "--coder", "mine")
    with scratch.supervisor():
        until(lambda: scratch.data("show", task)["waits"], "the reason")
        (wait,) = scratch.data("show", task)["waits"]
        assert wait["why"] == "my-coder is not on the supervisor's PATH."
        assert "fleet run restart" in wait["fix"]
        said = scratch.fails("create", "fix-it", "-a", "mine", "--headless", "-p", "Go", status=1)
        assert "waits: my-coder is not on the supervisor's PATH." in said
        assert scratch.data("show", task)["runs"] == []
        program = scratch.root / "bin" / "my-coder"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\necho done\n")
        program.chmod(0o755)
        path = f"{program.parent}:{scratch.env['PATH']}"
    done = scratch.type("run", "--once", env={"PATH": path})
    assert done.returncode == 0, done.stderr
    detail = scratch.data("show", task)
    assert (detail["task"]["status"], len(detail["runs"])) == ("done", 1)


def test_run_once_says_which_program_is_missing_and_ends(scratch):
    task = scratch.add("Fix it", "--coder", "codex")
    said = scratch.work()
    assert f"{task}: codex is not on the supervisor's PATH." in said
    left = f"{task} left codex is not on the supervisor's PATH. fleet show {task}"
    assert left in [" ".join(line.split()) for line in said.splitlines()]
    assert scratch.data("show", task)["failures"] == 0
    said = scratch.fails("create", "fix-it", "-a", "codex", status=1)
    assert "codex is not on PATH." in said
    assert len(scratch.data("tasks", "--all")) == 1


@pytest.mark.parametrize("coder", ["command", "acp"])
def test_an_agent_whose_command_is_not_trusted_says_what_trusts_it(scratch, coder):
    (scratch.repo / "fleet.yaml").write_text(
        f"agents: {{mine: {{coder: {coder}, command: [mine]}}}}\n"
    )
    said = scratch.fails("add", "Fix it", "--agent", "mine", status=1)
    assert "The command of the agent 'mine' is not trusted." in said
    assert "Read it in fleet.yaml, then: fleet trust" in said
    assert "Set agents." not in said


def test_a_set_up_that_fails_is_told_in_sentences_and_is_not_tried_again(scratch):
    (scratch.repo / "fleet.yaml").write_text(
        'workspace: {setup: ["echo no such package; exit 3"]}\n'
    )
    scratch("trust")
    task = scratch.add("Fix the login", "--attempts", "3")
    scratch.work()
    detail = scratch.data("show", task)
    assert (detail["task"]["status"], len(detail["runs"])) == ("failed", 1)
    said = (
        "Set-up failed (3): echo no such package; exit 3: no such package. Its whole output is in "
    )
    assert said in detail["waits"][0]["why"]


def test_a_terminal_is_refused_to_a_coder_that_cannot_have_one(scratch):
    said = scratch.fails("create", "fix-login", "--coder", "gemini", status=1)
    assert "gemini cannot be run in a terminal." in said
    assert "fleet create --headless" in said
    assert scratch.data("tasks", "--all") == []


def test_create_names_the_coders_where_it_is_given_another(scratch):
    said = scratch.fails("create", "fix-login", "--coder", "nosuch", status=2)
    assert "There is no coder 'nosuch'." in said
    assert "Coders: claude, codex" in said
    assert scratch.data("tasks", "--all") == []


def test_a_directory_that_no_commit_has_is_refused(scratch):
    inside = scratch.repo / "sub" / "dir"
    inside.mkdir(parents=True)
    said = scratch.fails("add", "Fix the login", cwd=inside, status=2)
    assert "sub/dir is not in the last commit" in said
    assert f"cd {scratch.repo}" in said
    assert scratch.data("tasks", "--all") == []
    (inside / "a.txt").write_text("x\n")
    scratch.git("add", "-A")
    scratch.git("commit", "-qm", "A directory")
    scratch("add", "Fix the login", cwd=inside)
