"""What an agent did not commit: its task, and the tasks after it, never lose it."""

from __future__ import annotations

import json
import signal

from tests.contract.checkouts import git
from tests.wait import until


def test_work_that_was_not_committed_is_committed_with_the_title_of_its_task(supervised):
    task = supervised.add("write forgotten.txt hello")
    supervised.start()
    supervised.wait(task)
    commit = supervised.run(task).outcome.checkpoint.commit
    assert git(supervised.repo, "show", f"{commit}:forgotten.txt") == "hello"
    assert git(supervised.repo, "log", "-1", "--format=%s", commit) == "write forgotten.txt hello"
    (event,) = [e for e in supervised.store.events(task=task) if e.type == "run.committed"]
    assert event.data == {"commit": commit, "files": "1"}


def test_a_task_starts_from_what_its_dependency_did_not_commit(supervised):
    first = supervised.add("write forgotten.txt hello")
    second = supervised.add("run cat forgotten.txt", after=[first])
    supervised.start()
    supervised.wait(second)
    assert any("hello" in text for text in supervised.texts(second)) or "hello" in (
        supervised.transcript(second)
    )


def test_files_that_git_ignores_are_not_committed(supervised):
    task = supervised.add("write .gitignore build", "commit Ignore", "write build/x 1")
    supervised.start()
    supervised.wait(task)
    commit = supervised.run(task).outcome.checkpoint.commit
    assert git(supervised.repo, "log", "-1", "--format=%s", commit) == "Ignore"


def test_hold_leaves_a_task_with_uncommitted_work_to_a_person(supervised):
    first = supervised.add("write forgotten.txt hello")
    second = supervised.add("run cat forgotten.txt", after=[first])
    supervised.start(FLEET_RUN_COMMIT="hold")
    supervised.wait(first, state="review")
    shown = supervised.type("show", first).stdout
    assert "1 changed file is not committed" in shown
    assert supervised.state(second) == "open"
    assert supervised.type("worktree", "commit", first, "-m", "Mine").returncode == 0
    assert "not committed" not in supervised.type("show", first).stdout
    assert supervised.type("close", first).returncode == 0
    supervised.wait(second)
    assert "hello" in supervised.transcript(second)


def test_leave_makes_the_tasks_after_it_wait_and_says_what_to_type(supervised):
    first = supervised.add("write forgotten.txt hello")
    second = supervised.add("run cat forgotten.txt", after=[first])
    supervised.start(FLEET_RUN_COMMIT="leave")
    supervised.wait(first)
    shown = until(
        lambda: "not committed" in (text := supervised.type("show", second).stdout) and text,
        why=lambda: supervised.story(second),
    )
    assert f"fleet worktree commit {first}" in shown
    assert supervised.type("worktree", "commit", first, "-m", "Mine").returncode == 0
    supervised.wait(second)
    assert "hello" in supervised.transcript(second)


def test_a_conflict_that_an_agent_left_needs_a_person(supervised):
    task = supervised.add(
        "write a.txt one", "commit One", "run git checkout -q -b other HEAD~1",
        "write a.txt two", "commit Two", 'run sh -c "git -c user.name=a -c user.email=a@b merge -q - || true"',
    )  # fmt: skip
    supervised.start()
    supervised.wait(task, state="review")
    assert "files are in conflict" in supervised.type("show", task).stdout


def test_the_next_task_has_what_an_agent_committed_on_a_branch_of_its_own(supervised):
    first = supervised.add("run git checkout -q -b mine", "write own.txt hello", "commit Own")
    second = supervised.add("run cat own.txt", after=[first])
    supervised.start()
    supervised.wait(second)
    assert "hello" in supervised.transcript(second)
    branch = supervised.run(first).workspace.branch
    assert git(supervised.repo, "show", f"{branch}:own.txt") == "hello"


def test_a_branch_of_that_name_from_elsewhere_is_not_taken_for_the_work(supervised):
    first = supervised.add("write a.txt right", "commit A")
    second = supervised.add("run cat a.txt", after=[first])
    supervised.type("pause", second)
    supervised.start()
    supervised.wait(first)
    branch = supervised.run(first).workspace.branch
    assert supervised.type("worktree", "status", first).returncode == 0
    git(supervised.repo, "update-ref", f"refs/heads/{branch}", "HEAD")
    supervised.type("resume", second)
    supervised.wait(second)
    assert "right" in supervised.transcript(second)


def test_work_is_committed_once_when_the_supervisor_is_killed_after_the_commit(supervised):
    task = supervised.add("write forgotten.txt hello", gate="sleep 2")
    supervised.start()
    until((supervised.home / "runs" / "t-1.1.gate" / "keeper.json").exists, why=supervised.said)
    supervised.end(signal.SIGKILL)
    supervised.start()
    supervised.wait(task)
    commit = supervised.run(task).outcome.checkpoint.commit
    base = supervised.run(task).workspace.base
    assert git(supervised.repo, "rev-list", "--count", f"{base}..{commit}") == "1"
    events = json.dumps([e.type for e in supervised.store.events(task=task)])
    assert events.count("run.committed") == 1


def test_files_outside_of_a_sparse_checkout_are_committed_and_the_others_stay(supervised):
    repo = supervised.repo
    (repo / "web").mkdir()
    (repo / "api").mkdir()
    (repo / "web" / "page").write_text("1\n")
    (repo / "api" / "old").write_text("1\n")
    git(repo, "add", ".")
    git(repo, "commit", "--quiet", "-m", "Two parts")
    git(repo, "sparse-checkout", "set", "web")
    task = supervised.add("write api/new hello")
    supervised.start()
    supervised.wait(task)
    commit = supervised.run(task).outcome.checkpoint.commit
    assert git(repo, "diff", "--name-status", "HEAD", commit).split() == ["A", "api/new"]
