"""Work in worktrees: `fleet diff`, `merge`, `kept` and `gc`, as they are typed."""

from pathlib import Path

import pytest
from desk import Desk


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


@pytest.fixture
def task(desk):
    """A task that has left a file, which nobody has committed."""
    made = desk.add("Write notes", script="say Done.")
    desk.work()
    (root(desk, made) / "notes.txt").write_text("Remember the milk\n")
    return made


def root(desk, task) -> Path:
    (found,) = (desk.home / "worktrees").glob(f"shop-*/{task}-????????")
    return found


def save(desk, task):
    desk.git("add", "-A", cwd=root(desk, task))
    desk.git("commit", "-q", "-m", "Notes", cwd=root(desk, task))


def test_a_diff_shows_what_is_committed_and_what_is_not(desk, task):
    shown = desk("diff", task)
    assert "+Remember the milk" in shown
    assert "notes.txt | 1 +" in desk("diff", f"fleet/{task}", "--stat")
    save(desk, task)
    assert desk.data("diff", task) == {"task": task, "diff": shown}


def test_a_task_that_changed_nothing_has_no_diff(desk):
    made = desk.add("Look around")
    desk.work()
    assert desk("diff", made) == f"{made} has changed nothing.\n"


def test_a_merge_is_refused_until_the_work_is_committed_and_then_goes_forward(desk, task):
    assert "work that is not committed" in desk.fails("merge", task, status=1)
    save(desk, task)
    assert f"main went forward to fleet/{task}" in desk("merge", task)
    assert (desk.repo / "notes.txt").read_text() == "Remember the milk\n"
    assert desk.data("merge", task)["nothing"] is True


def test_a_conflict_is_named_and_changes_nothing(desk, task):
    save(desk, task)
    (desk.repo / "notes.txt").write_text("Mine\n")
    desk.git("add", "-A")
    desk.git("commit", "-q", "-m", "Mine")
    before = desk.git("rev-parse", "HEAD"), desk.git("status", "--porcelain")
    said = desk.fails("merge", task, status=1)
    assert f"fleet/{task} conflicts with main in notes.txt." in said
    assert (desk.git("rev-parse", "HEAD"), desk.git("status", "--porcelain")) == before


def test_gc_removes_what_ended_tasks_left_and_keeps_their_work(desk, task):
    place = root(desk, task)
    assert desk("gc") == "There is nothing to tidy up.\n"
    assert f"Would remove {place} ({task})." in desk("gc", "--days", "0", "--dry-run")
    assert place.exists()
    told = desk.data("gc", "--days", "0", "--dry-run")
    assert (told["dry_run"], told["cleared"][0]["paths"]) == (True, [str(place)])
    said = desk("gc", "--days", "0")
    assert f"Removed {place} ({task})." in said
    assert f"Kept its work: {task}/1" in said
    assert not place.exists()
    assert [k["id"] for k in desk.data("kept")] == [f"{task}/1"]


def test_kept_work_is_restored_as_it_was_and_dropped(desk, task, tmp_path):
    desk("gc", "--days", "0")
    assert f"{task}/1" in desk("kept", "list")
    made = desk.data("kept", "restore", task, "--into", str(tmp_path / "back"))
    assert Path(made["path"], "notes.txt").read_text() == "Remember the milk\n"
    assert desk.git("status", "--porcelain", cwd=tmp_path / "back") == "?? notes.txt\n"
    branch = desk.data("kept", "restore", f"{task}/1", "--branch", "rescued")["branch"]
    assert desk.git("show", f"{branch}:notes.txt") == "Remember the milk\n"
    desk("kept", "drop", task)
    assert desk("kept") == "Nothing is kept in this repository.\n"
    assert "Nothing is kept as" in desk.fails("kept", "drop", task, status=2)


@pytest.mark.parametrize("wrong", ["shop", "other"])
def test_gc_goes_on_beside_a_project_whose_settings_are_wrong(desk, task, wrong, tmp_path):
    other = tmp_path / "other"
    desk.git("clone", "-q", str(desk.repo), str(other))
    newer = desk.data("add", "Later", "--prompt", "say Hi.", cwd=other)["id"]
    desk.work()
    (tmp_path / wrong / "fleet.yaml").write_text("nosuchkey: 1\n")
    said = desk("gc", "--days", "0", cwd=tmp_path / ("shop" if wrong == "other" else "other"))
    bad, good = (newer, task) if wrong == "other" else (task, newer)
    assert f"{bad}: fleet.yaml:1: nosuchkey: is not a setting." in said
    assert f"({good})." in said


def test_gc_lists_what_no_task_has_and_does_not_touch_it(desk, task):
    stray = root(desk, task).with_name("t-99-00000000")
    stray.mkdir()
    (stray / "precious").touch()
    desk.git("branch", "fleet/t-77")
    said = desk("gc", "--days", "0")
    assert f"No task has the directory {stray}; it stays." in said
    assert "No task has the branch fleet/t-77" in said
    assert (stray / "precious").exists()
    assert "fleet/t-77" in desk.git("branch")


def test_a_name_that_could_mean_several_is_refused_with_the_candidates(desk):
    one, two = (desk.add("Fix", "--branch", f"{kind}/login") for kind in ("fix", "try"))
    said = desk.fails("diff", "login", status=2)
    assert "'login' could mean 2 tasks" in said
    assert one in said
    assert two in said


def test_a_task_without_a_workspace_says_so(desk):
    made = desk.add("Later")
    assert f"{made} has no workspace here" in desk.fails("diff", made, status=1)
    assert "There is no task or branch 'nope'" in desk.fails("diff", "nope", status=2)
