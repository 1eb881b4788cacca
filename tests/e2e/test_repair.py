"""`fleet list --repair`: what no longer fits together is adopted again, or listed with its fix."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from desk import Desk, until

from fleet.adapters.tmux.tmux import Tmux


@pytest.fixture
def desk(tmp_path):
    made = Desk(tmp_path)
    made("create", "fix", "--prompt", "write note.txt precious")
    note = Path(agent(made)["path"], "note.txt")
    until(note.exists, "its work")
    yield made
    made("list", "--repair")
    for each in made.data("list", "--everywhere"):
        made.type("kill", each["task"], "--force")
    tmux(made, "kill-server")


def agent(desk) -> dict:
    (found,) = desk.data("list")
    return found


def notes(desk) -> str:
    return "\n".join(desk.document("list", "--repair").get("notes", ()))


def tmux(desk, *words: str) -> str:
    argv = ["tmux", "-L", Tmux(desk.home).socket, *words]
    return subprocess.run(argv, capture_output=True, check=False, text=True).stdout.strip()


def forget(desk, *tables: str) -> None:
    """As if somebody had deleted the rows."""
    with closing(sqlite3.connect(desk.home / "fleet.db")) as db:
        for table in tables:
            db.execute(f"DELETE FROM {table}")
        db.commit()


def files(place: Path) -> dict[str, bytes]:
    return {str(p.relative_to(place)): p.read_bytes() for p in place.rglob("*") if p.is_file()}


def test_where_everything_fits_there_is_nothing_to_say(desk):
    before = agent(desk)
    assert notes(desk) == ""
    assert agent(desk)["run"] == before["run"]


@pytest.mark.parametrize("tables", [("task", "run"), ("run",)])
def test_an_agent_whose_rows_were_deleted_is_adopted_with_its_worktree(desk, tables):
    before, there = agent(desk), files(Path(agent(desk)["path"]))
    forget(desk, *tables)
    assert "t-1.1 had lost its row; it is adopted again as t-1." in notes(desk)
    now = agent(desk)
    same = ("task", "run", "branch", "title", "coder", "path", "terminal", "project")
    assert {k: now[k] for k in same} == {k: before[k] for k in same}
    assert now["doing"] == "waiting"
    assert desk("prompt", "fix", "say More") == "t-1 has heard it (m-1).\n"
    assert files(Path(now["path"])) == there
    assert "+precious" in desk("diff", "fix")
    assert "Kept what was not merged: t-1/1" in desk("kill", "fix")


def test_a_store_that_was_deleted_is_filled_with_the_agents_that_go_on(desk):
    for file in desk.home.glob("fleet.db*"):
        file.unlink()
    assert "it is adopted again as t-1" in notes(desk)
    assert agent(desk)["branch"] == "fix"
    assert desk("create", "other").startswith("Created other (t-2)")
    assert notes(desk) == ""


def test_an_agent_that_a_deleted_store_has_forgotten_is_not_taken_for_a_new_one(desk):
    for file in desk.home.glob("fleet.db*"):
        file.unlink()
    assert desk("create", "other", "--prompt", "say Hi").startswith("Created other (t-2)")
    assert [a["branch"] for a in desk.data("list")] == ["other"]
    assert "it is adopted again as t-1" in notes(desk)
    assert {a["branch"] for a in desk.data("list")} == {"fix", "other"}


def test_an_agent_that_ended_after_its_row_was_deleted_is_settled_and_its_work_is_there(desk):
    forget(desk, "task", "run")
    tmux(desk, "kill-server")
    said = notes(desk)
    assert "it is adopted again as t-1" in said
    assert "t-1 has ended: Exit status" in said
    assert "+precious" in desk("diff", "t-1")


@pytest.mark.parametrize("how", ["kill-session", "kill-server", "kill -9"])
def test_an_agent_whose_terminal_is_gone_has_ended_and_can_begin_again(desk, how):
    path = agent(desk)["path"]
    match how:
        case "kill-session":
            tmux(desk, "kill-session", "-t", tmux(desk, "list-sessions", "-F", "#{session_id}"))
        case "kill-server":
            tmux(desk, "kill-server")
        case _:
            os.kill(int(tmux(desk, "display-message", "-p", "#{pid}")), signal.SIGKILL)
    said = notes(desk)
    assert "t-1 has ended: " in said
    assert f"Its work is in {path}." in said
    assert "Again: fleet retry t-1, then fleet list --repair." in said
    assert Path(path, "note.txt").read_text().strip() == "precious"
    desk("retry", "t-1")
    assert notes(desk) == ""
    assert (agent(desk)["run"], agent(desk)["path"]) == ("t-1.2", path)
    assert '"kind": "turn"' in (desk.home / "runs" / "t-1.2" / "transcript").read_text()
    assert Path(path, "note.txt").read_text().strip() == "precious"


@pytest.mark.parametrize("by", ["git", "hand"])
def test_a_worktree_that_was_moved_is_known_at_its_new_place(desk, tmp_path, by):
    old, new = Path(agent(desk)["path"]), tmp_path / "elsewhere"
    if by == "git":
        desk.git("worktree", "move", str(old), str(new))
    else:
        old.rename(new)
    assert f"it is known at {new} now" in notes(desk)
    assert agent(desk)["path"] == str(new)
    assert notes(desk) == ""
    assert "+precious" in desk("diff", "fix")
    assert str(new) in desk.git("worktree", "list")
    assert f"{new} stays" in desk("kill", "fix")
    assert (new / "note.txt").exists()


def test_a_worktree_that_was_moved_after_its_agent_ended_is_listed_until_git_knows_it(
    desk, tmp_path
):
    old, new = Path(agent(desk)["path"]), tmp_path / "elsewhere"
    desk("prompt", "fix", "exit 0", "--queue")
    until(lambda: agent(desk)["doing"] == "exited", "its end")
    desk("list", "--repair")
    old.rename(new)
    said = notes(desk)
    assert f"The worktree of t-1 (fix) is gone: {old}." in said
    assert f"git -C {desk.repo} worktree repair ITS-NEW-PLACE" in said
    desk.git("worktree", "repair", str(new))
    assert f"it is known at {new} now" in notes(desk)


def test_a_worktree_that_was_removed_is_listed_with_the_way_to_get_it_back(desk):
    path = Path(agent(desk)["path"])
    desk.git("add", "-A", cwd=path)
    desk.git("commit", "-q", "-m", "Note", cwd=path)
    shutil.rmtree(path)
    said = notes(desk)
    assert f"The worktree of t-1 (fix) is gone: {path}." in said
    fix = said.partition("get it back: ")[2].partition(". ")[0]
    subprocess.run(fix, shell=True, check=True, capture_output=True, env=desk.env)
    assert (path / "note.txt").read_text().strip() == "precious"
    assert notes(desk) == ""


def test_what_no_task_has_is_listed_and_stays(desk):
    stray = Path(agent(desk)["path"]).with_name("t-99-00000000")
    stray.mkdir()
    (stray / "precious").touch()
    desk.git("branch", "fleet/t-77")
    run = desk.home / "runs" / "t-1.1" / "launch.json"
    forget(desk, "task", "run")
    run.rename(run.with_name("hidden"))  # so that nothing tells whose the session is
    said = notes(desk)
    assert f"No task has the directory {stray}; it stays." in said
    assert "No task has the branch fleet/t-77" in said
    assert "No task has the session fleet_t-1-1_fix" in said
    assert (stray / "precious").exists()
    assert "fleet/t-77" in desk.git("branch")
    assert "fleet_t-1-1_fix" in tmux(desk, "list-sessions")
    run.with_name("hidden").rename(run)


def test_a_supervisor_that_runs_adopts_them_too(desk):
    with desk.supervisor():
        forget(desk, "task", "run")
        assert "it is adopted again as t-1" in notes(desk)
        assert desk("prompt", "fix", "say More") == "t-1 has heard it (m-1).\n"
        tmux(desk, "kill-server")
        desk("list", "--repair")
        desk.wait_for("t-1", "failed")
