"""Work in worktrees: `fleet diff`, `merge`, `kept` and `gc`, as they are typed."""

import shutil
from pathlib import Path

import pytest

from fleet.app import App
from fleet.app.workspaces import manage
from fleet.client import LocalClient
from tests.e2e.scratch import Scratch


@pytest.fixture
def scratch(tmp_path):
    return Scratch(tmp_path)


@pytest.fixture
def task(scratch):
    """A task that has left a file, which nobody has committed."""
    made = scratch.add("Write notes", script="say Done.")
    scratch.work()
    (root(scratch, made) / "notes.txt").write_text("Remember the milk\n")
    return made


def root(scratch, task) -> Path:
    (found,) = (scratch.home / "worktrees").glob(f"shop-*/{task}-????????")
    return found


def save(scratch, task):
    scratch.git("add", "-A", cwd=root(scratch, task))
    scratch.git("commit", "-q", "-m", "Notes", cwd=root(scratch, task))


def test_a_diff_shows_what_is_committed_and_what_is_not(scratch, task):
    shown = scratch("diff", task)
    assert "+Remember the milk" in shown
    assert "notes.txt | 1 +" in scratch("diff", f"fleet/{task}", "--stat")
    save(scratch, task)
    assert scratch("diff", task) == shown


def test_a_task_that_changed_nothing_has_no_diff(scratch):
    made = scratch.add("Look around")
    scratch.work()
    assert scratch("diff", made) == f"{made} has changed nothing.\n"


def merges(scratch) -> list[str]:
    events, *_ = scratch.facts()
    return [row for row in events if "worktree.merged" in row]


def test_a_merge_is_refused_until_the_work_is_committed(scratch, task):
    assert "has uncommitted work." in scratch.fails("merge", task, status=1)
    assert merges(scratch) == []
    save(scratch, task)
    commit = scratch.git("rev-parse", f"fleet/{task}")[:12]
    assert scratch("merge", task) == f"Merged fleet/{task} into main ({commit}).\n"
    assert (scratch.repo / "notes.txt").read_text() == "Remember the milk\n"
    assert scratch("merge", task) == f"main already has all of fleet/{task}.\n"


@pytest.mark.parametrize("words", [("merge",), ("worktree", "merge")])
def test_both_merge_commands_record_the_merge_and_reply_alike(scratch, task, words):
    save(scratch, task)
    scratch.git("commit", "-q", "--allow-empty", "-m", "Mine")
    before = scratch.git("rev-parse", "main").strip()
    document = scratch.document(*words, task)
    after = scratch.git("rev-parse", "main").strip()
    assert (document["kind"], document["data"]) == (
        "merged",
        {
            "task": task, "branch": f"fleet/{task}", "onto": "main", "commit": after,
            "fast_forward": False, "nothing": False, "before": before,
            "checkout": str(scratch.repo),
        },
    )  # fmt: skip
    assert len(merges(scratch)) == 1


@pytest.mark.parametrize("words", [("merge",), ("worktree", "merge")])
def test_a_worker_may_not_merge_by_either_command(scratch, task, words):
    save(scratch, task)
    error = scratch.fails(*words, task, status=1, env={"CLAUDE_CODE_AGENT_TYPE": "worker"})
    assert "may not merge" in error
    assert not (scratch.repo / "notes.txt").exists()


def test_a_conflict_is_named_and_changes_nothing(scratch, task):
    save(scratch, task)
    (scratch.repo / "notes.txt").write_text("Mine\n")
    scratch.git("add", "-A")
    scratch.git("commit", "-q", "-m", "Mine")
    before = scratch.git("rev-parse", "HEAD"), scratch.git("status", "--porcelain")
    said = scratch.fails("merge", task, status=1)
    assert f"fleet/{task} conflicts with main in notes.txt." in said
    assert (scratch.git("rev-parse", "HEAD"), scratch.git("status", "--porcelain")) == before


def test_gc_removes_what_ended_tasks_left_and_keeps_their_work(scratch, task):
    place = root(scratch, task)
    young = "1 finished worktree, none older than 7 days (--days 0 removes all).\n"
    assert scratch("gc") == young
    assert f"Would remove {place} ({task})." in scratch("gc", "--days", "0", "--dry-run")
    assert place.exists()
    told = scratch.data("gc", "--days", "0", "--dry-run")
    assert (told["dry_run"], told["cleared"][0]["paths"]) == (True, [str(place)])
    said = scratch("gc", "--days", "0")
    assert f"Removed {place} ({task})." in said
    assert f"Kept its work: {task}/1" in said
    assert not place.exists()
    assert [k["id"] for k in scratch.data("kept")] == [f"{task}/1"]


def test_gc_gives_back_the_pool_once_it_is_turned_off(scratch, task):
    scratch("kill", task, "--force")
    (record,) = (scratch.home / "worktrees" / "pool").glob("*/*.parked")
    assert scratch("gc") == "There is nothing to remove.\n"
    scratch("config", "set", "workspace.pool=0")
    pooled = record.with_suffix("")
    assert scratch("gc", "--dry-run") == f"Would remove {pooled}, which waited in the pool.\n"
    assert pooled.exists()
    assert scratch("gc") == f"Removed {pooled}, which waited in the pool.\n"
    assert not pooled.exists()
    assert scratch("gc") == "There is nothing to remove.\n"


def test_kept_work_is_restored_as_it_was_and_dropped(scratch, task, tmp_path):
    scratch("gc", "--days", "0")
    assert f"{task}/1" in scratch("kept", "list")
    made = scratch.data("kept", "restore", task, "--into", str(tmp_path / "back"))
    assert Path(made["path"], "notes.txt").read_text() == "Remember the milk\n"
    assert scratch.git("status", "--porcelain", cwd=tmp_path / "back") == "?? notes.txt\n"
    branch = scratch.data("kept", "restore", f"{task}/1", "--branch", "rescued")["branch"]
    assert scratch.git("show", f"{branch}:notes.txt") == "Remember the milk\n"
    scratch("kept", "drop", task)
    assert scratch("kept") == "Nothing is kept in this repository.\n"
    assert "Nothing is kept as" in scratch.fails("kept", "drop", task, status=2)


@pytest.mark.parametrize("wrong", ["shop", "other"])
def test_gc_goes_on_beside_a_project_whose_settings_are_wrong(scratch, task, wrong, tmp_path):
    other = tmp_path / "other"
    scratch.git("clone", "-q", str(scratch.repo), str(other))
    newer = scratch.data("add", "Later", "--prompt", "say Hi.", cwd=other)["id"]
    scratch.work()
    (tmp_path / wrong / "fleet.yaml").write_text("nosuchkey: 1\n")
    said = scratch("gc", "--days", "0", cwd=tmp_path / ("shop" if wrong == "other" else "other"))
    bad, good = (newer, task) if wrong == "other" else (task, newer)
    assert f"{bad}: fleet.yaml:1: nosuchkey: is not a setting." in said
    assert f"({good})." in said


def test_gc_lists_what_no_task_has_and_does_not_touch_it(scratch, task):
    stray = root(scratch, task).with_name("t-99-00000000")
    stray.mkdir()
    (stray / "precious").touch()
    scratch.git("branch", "fleet/t-77")
    said = scratch("gc", "--days", "0")
    assert f"The directory {stray} belongs to no task; it stays." in said
    assert "The branch fleet/t-77" in said
    assert (stray / "precious").exists()
    assert "fleet/t-77" in scratch.git("branch")


def test_a_name_that_could_mean_several_is_refused_with_the_candidates(scratch):
    one, two = (scratch.add("Fix", "--branch", f"{kind}/login") for kind in ("fix", "try"))
    said = scratch.fails("diff", "login", status=2)
    assert "'login' could mean 2 tasks" in said
    assert one in said
    assert two in said


def test_a_task_without_a_workspace_says_so(scratch):
    made = scratch.add("Later")
    said = scratch.fails("diff", made, status=1)
    assert f"{made} has not begun yet, so it has changed nothing." in said
    assert f"fleet show {made}" in said
    assert "There is no task or branch 'nope'" in scratch.fails("diff", "nope", status=2)


def test_gc_knows_the_worktrees_of_tasks_older_than_those_it_reads(scratch, monkeypatch):
    for number in range(1, 4):
        scratch("add", f"Task {number}", "--prompt", f"write f{number} x\ncommit F")
    scratch("run", "--once")
    for number in range(4, 8):
        scratch("add", f"Later {number}")
    monkeypatch.setattr(manage, "MAX_TASKS", 3)
    workspaces = LocalClient(App(scratch.repo, scratch.env)).workspaces
    noted = []
    done = workspaces.tidy(days=0, dry_run=False, note=lambda *step: noted.append(step))
    assert sorted(one.task for one in done.cleared) == ["t-1", "t-2", "t-3"]
    assert noted == [(0, 3), (3, 3)]  # a batch at a time
    assert done.orphans == ()


def test_a_run_starts_no_more_git_processes_with_more_finished_work_about(scratch, tmp_path):
    log, shim = tmp_path / "gits", tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho >> "{log}"\nexec {shutil.which("git")} "$@"\n')
    shim.chmod(0o700)
    counted = {"PATH": f"{shim.parent}:{scratch.env['PATH']}"}
    counts = []
    for _ in range(2):
        for number in range(3):
            scratch("add", f"Task {number}", "--prompt", f"write f{number} x\ncommit F")
        scratch("run", "--once")
        log.write_text("")
        scratch("run", "--once", env=counted)
        counts.append(len(log.read_text()))
    assert counts[0] == counts[1]
