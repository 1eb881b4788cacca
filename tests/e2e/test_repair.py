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

from fleet.adapters.tmux.tmux import Tmux
from tests.e2e.scratch import Scratch
from tests.wait import until


@pytest.fixture
def scratch(tmp_path):
    made = Scratch(tmp_path)
    made("create", "fix", "--prompt", "write note.txt precious")
    note = Path(agent(made)["path"], "note.txt")
    until(note.exists, "its work")
    yield made
    made("list", "--repair")
    for each in made.data("list", "--everywhere"):
        made.type("kill", each["task"], "--force")
    tmux(made, "kill-server")


def agent(scratch) -> dict:
    (found,) = scratch.data("list")
    return found


def notes(scratch) -> str:
    return "\n".join(scratch.document("list", "--repair").get("notes", ()))


def tmux(scratch, *words: str) -> str:
    argv = ["tmux", "-L", Tmux(scratch.home).socket, *words]
    return subprocess.run(argv, capture_output=True, check=False, text=True).stdout.strip()


def forget(scratch, *tables: str) -> None:
    """As if somebody had deleted the rows."""
    with closing(sqlite3.connect(scratch.home / "fleet.db")) as db:
        for table in tables:
            db.execute(f"DELETE FROM {table}")
        db.commit()


def files(place: Path) -> dict[str, bytes]:
    return {str(p.relative_to(place)): p.read_bytes() for p in place.rglob("*") if p.is_file()}


def test_where_everything_fits_there_is_nothing_to_say(scratch):
    before = agent(scratch)
    assert notes(scratch) == ""
    assert agent(scratch)["run"] == before["run"]


@pytest.mark.parametrize("tables", [("task", "run"), ("run",)])
def test_an_agent_whose_rows_were_deleted_is_adopted_with_its_worktree(scratch, tables):
    before, there = agent(scratch), files(Path(agent(scratch)["path"]))
    forget(scratch, *tables)
    assert "t-1.1 was missing from the store; it is recorded again as t-1." in notes(scratch)
    now = agent(scratch)
    same = ("task", "run", "branch", "title", "coder", "path", "terminal", "project")
    assert {k: now[k] for k in same} == {k: before[k] for k in same}
    assert now["doing"] == "waiting"
    assert scratch("prompt", "fix", "say More") == "t-1 has read the message (m-1).\n"
    assert files(Path(now["path"])) == there
    assert "+precious" in scratch("diff", "fix")
    assert "Kept what was not merged: t-1/1" in scratch("kill", "fix")


def test_a_store_that_was_deleted_is_filled_with_the_agents_that_go_on(scratch):
    for file in scratch.home.glob("fleet.db*"):
        file.unlink()
    assert "it is recorded again as t-1" in notes(scratch)
    assert agent(scratch)["branch"] == "fix"
    assert scratch("create", "other").startswith("Created other (t-2)")
    assert notes(scratch) == ""


def test_an_agent_that_a_deleted_store_has_forgotten_is_not_taken_for_a_new_one(scratch):
    for file in scratch.home.glob("fleet.db*"):
        file.unlink()
    assert scratch("create", "other", "--prompt", "say Hi").startswith("Created other (t-2)")
    assert [a["branch"] for a in scratch.data("list")] == ["other"]
    assert "it is recorded again as t-1" in notes(scratch)
    assert {a["branch"] for a in scratch.data("list")} == {"fix", "other"}


def test_an_agent_that_ended_after_its_row_was_deleted_is_settled_and_its_work_is_there(scratch):
    forget(scratch, "task", "run")
    tmux(scratch, "kill-server")
    said = notes(scratch)
    assert "it is recorded again as t-1" in said
    assert "t-1 has ended: Exit status" in said
    assert "+precious" in scratch("diff", "t-1")


@pytest.mark.parametrize("how", ["kill-session", "kill-server", "kill -9"])
def test_an_agent_whose_terminal_is_gone_has_ended_and_can_begin_again(scratch, how):
    path = agent(scratch)["path"]
    match how:
        case "kill-session":
            tmux(
                scratch, "kill-session", "-t", tmux(scratch, "list-sessions", "-F", "#{session_id}")
            )
        case "kill-server":
            tmux(scratch, "kill-server")
        case _:
            os.kill(int(tmux(scratch, "display-message", "-p", "#{pid}")), signal.SIGKILL)
    said = notes(scratch)
    assert "t-1 has ended: " in said
    assert f"Its work is in {path}." in said
    assert "Start it again: fleet retry t-1, then fleet list --repair." in said
    assert Path(path, "note.txt").read_text().strip() == "precious"
    scratch("retry", "t-1")
    assert notes(scratch) == ""
    assert (agent(scratch)["run"], agent(scratch)["path"]) == ("t-1.2", path)
    assert '"kind": "turn"' in (scratch.home / "runs" / "t-1.2" / "transcript").read_text()
    assert Path(path, "note.txt").read_text().strip() == "precious"


@pytest.mark.parametrize("by", ["git", "hand"])
def test_a_worktree_that_was_moved_is_known_at_its_new_place(scratch, tmp_path, by):
    old, new = Path(agent(scratch)["path"]), tmp_path / "elsewhere"
    if by == "git":
        scratch.git("worktree", "move", str(old), str(new))
    else:
        old.rename(new)
    assert f"was moved to {new}" in notes(scratch)
    assert agent(scratch)["path"] == str(new)
    assert notes(scratch) == ""
    assert "+precious" in scratch("diff", "fix")
    assert str(new) in scratch.git("worktree", "list")
    assert f"{new} stays" in scratch("kill", "fix")
    assert (new / "note.txt").exists()


def test_a_worktree_that_was_moved_after_its_agent_ended_is_listed_until_git_knows_it(
    scratch, tmp_path
):
    old, new = Path(agent(scratch)["path"]), tmp_path / "elsewhere"
    scratch("prompt", "fix", "exit 0", "--queue")
    until(lambda: agent(scratch)["doing"] == "exited", "its end")
    scratch("list", "--repair")
    old.rename(new)
    said = notes(scratch)
    assert f"The worktree of t-1 (fix) is gone: {old}." in said
    assert f"git -C {scratch.repo} worktree repair ITS-NEW-PLACE" in said
    scratch.git("worktree", "repair", str(new))
    assert f"was moved to {new}" in notes(scratch)


def test_a_worktree_that_was_removed_is_listed_with_the_way_to_get_it_back(scratch):
    path = Path(agent(scratch)["path"])
    scratch.git("add", "-A", cwd=path)
    scratch.git("commit", "-q", "-m", "Note", cwd=path)
    shutil.rmtree(path)
    said = notes(scratch)
    assert f"The worktree of t-1 (fix) is gone: {path}." in said
    fix = said.partition("get it back: ")[2].partition(". ")[0]
    subprocess.run(fix, shell=True, check=True, capture_output=True, env=scratch.env)
    assert (path / "note.txt").read_text().strip() == "precious"
    assert notes(scratch) == ""


def test_what_no_task_has_is_listed_and_stays(scratch):
    stray = Path(agent(scratch)["path"]).with_name("t-99-00000000")
    stray.mkdir()
    (stray / "precious").touch()
    scratch.git("branch", "fleet/t-77")
    run = scratch.home / "runs" / "t-1.1" / "launch.json"
    forget(scratch, "task", "run")
    run.rename(run.with_name("hidden"))  # so that nothing tells whose the session is
    said = notes(scratch)
    assert f"The directory {stray} belongs to no task; it stays." in said
    assert "The branch fleet/t-77 belongs to no task" in said
    assert "The session fleet_t-1-1_fix" in said
    assert (stray / "precious").exists()
    assert "fleet/t-77" in scratch.git("branch")
    assert "fleet_t-1-1_fix" in tmux(scratch, "list-sessions")
    run.with_name("hidden").rename(run)


def test_a_supervisor_that_runs_adopts_them_too(scratch):
    with scratch.supervisor():
        forget(scratch, "task", "run")
        assert "it is recorded again as t-1" in notes(scratch)
        assert scratch("prompt", "fix", "say More") == "t-1 has read the message (m-1).\n"
        tmux(scratch, "kill-server")
        scratch("list", "--repair")
        scratch.wait_for("t-1", "failed")
