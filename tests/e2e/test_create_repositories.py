"""`fleet create` in repositories of every kind: it works, or says clearly why not."""

from __future__ import annotations

from pathlib import Path

import pytest
from desk import Desk

SUBMODULES = ("-c", "protocol.file.allow=always")


@pytest.fixture
def desk(tmp_path):
    made = Desk(tmp_path)
    (made.repo / "README").write_text("hello\n")
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "Readme")
    yield made
    for agent in made.data("list", "--everywhere"):
        made.type("kill", agent["task"], "--force")


def created(desk, cwd: Path | None = None) -> Path:
    """Where the agent works, once it has written a file there."""
    desk("create", "fix", "--prompt", "write note.txt new", cwd=cwd)
    (agent,) = desk.data("list", "--everywhere")
    place = Path(agent["path"])
    assert (place / "note.txt").exists()
    return place


def test_a_repository_without_a_commit_is_refused_and_nothing_is_made(desk, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    desk.git("init", "-q", cwd=empty)
    said = desk.fails("create", "fix", "--prompt", "say Hi", cwd=empty, status=1)
    assert f"{empty} has no commit yet." in said
    assert "git commit --allow-empty" in said
    assert desk.data("tasks", "--all") == []


def test_a_detached_head_is_where_it_begins(desk):
    first = desk.git("rev-parse", "HEAD~1").strip()
    desk.git("checkout", "-q", "--detach", "HEAD~1")
    place = created(desk)
    assert desk.git("rev-parse", "HEAD", cwd=place).strip() == first
    assert not (place / "README").exists()
    assert desk.git("rev-parse", "--abbrev-ref", "HEAD").strip() == "HEAD"


def test_unsaved_changes_of_the_main_checkout_stay_there(desk):
    (desk.repo / "README").write_text("half done\n")
    (desk.repo / "loose").write_text("mine\n")
    place = created(desk)
    assert (place / "README").read_text() == "hello\n"
    assert not (place / "loose").exists()
    assert desk.git("status", "--porcelain") == " M README\n?? loose\n"
    desk("kill", "fix", "--delete-branch")
    assert desk.git("status", "--porcelain") == " M README\n?? loose\n"


def test_without_a_remote_nothing_is_missed(desk):
    assert desk.git("remote") == ""
    place = created(desk)
    desk.git("add", "-A", cwd=place)
    desk.git("commit", "-q", "-m", "Note", cwd=place)
    assert "main went forward to fix" in desk("merge", "fix")


def test_a_bare_repository_has_worktrees_too(desk, tmp_path):
    bare = tmp_path / "bare.git"
    desk.git("clone", "-q", "--bare", str(desk.repo), str(bare))
    place = created(desk, cwd=bare)
    assert (place / "README").read_text() == "hello\n"
    assert "fix" in desk.git("branch", "--list", "fix", cwd=bare)
    assert "Kept what was not merged: t-1/1" in desk("kill", "fix", cwd=bare)


def test_the_commits_of_submodules_survive_a_kill(desk, tmp_path):
    library = tmp_path / "library"
    library.mkdir()
    desk.git("init", "-q", "-b", "main", cwd=library)
    desk.git("commit", "-q", "--allow-empty", "-m", "Library", cwd=library)
    desk.git(*SUBMODULES, "submodule", "--quiet", "add", str(library), "lib")
    desk.git("commit", "-q", "-m", "With a library")
    place = created(desk)
    desk.git(*SUBMODULES, "submodule", "--quiet", "update", "--init", cwd=place)
    (place / "lib" / "inner").write_text("precious\n")
    desk.git("add", "-A", cwd=place / "lib")
    desk.git("commit", "-q", "-m", "Inner", cwd=place / "lib")
    inner = desk.git("rev-parse", "HEAD", cwd=place / "lib").strip()
    assert "Kept what was not merged" in desk("kill", "fix", "--delete-branch")
    assert not place.exists()
    assert desk.git("cat-file", "-t", inner).strip() == "commit"
