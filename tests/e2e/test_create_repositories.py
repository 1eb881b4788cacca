"""`fleet create` in repositories of every kind: it works, or says clearly why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.scratch import Scratch
from tests.wait import until

SUBMODULES = ("-c", "protocol.file.allow=always")


@pytest.fixture
def scratch(tmp_path):
    made = Scratch(tmp_path)
    (made.repo / "README").write_text("hello\n")
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "Readme")
    yield made
    for agent in made.data("list", "--everywhere"):
        made.type("kill", agent["task"], "--force")


def created(scratch, cwd: Path | None = None) -> Path:
    """Where the agent works, once it has written a file there."""
    scratch("create", "fix", "--prompt", "write note.txt new", cwd=cwd)
    (agent,) = scratch.data("list", "--everywhere")
    place = Path(agent["path"])
    until((place / "note.txt").exists)
    return place


def test_a_repository_without_a_commit_is_refused_and_nothing_is_made(scratch, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    scratch.git("init", "-q", cwd=empty)
    said = scratch.fails("create", "fix", "--prompt", "say Hi", cwd=empty, status=1)
    assert f"{empty} has no commit yet, so there is nothing to start from." in said
    assert "git commit --allow-empty" in said
    assert scratch.data("tasks", "--all") == []


def test_a_detached_head_is_where_it_begins(scratch):
    first = scratch.git("rev-parse", "HEAD~1").strip()
    scratch.git("checkout", "-q", "--detach", "HEAD~1")
    place = created(scratch)
    assert scratch.git("rev-parse", "HEAD", cwd=place).strip() == first
    assert not (place / "README").exists()
    assert scratch.git("rev-parse", "--abbrev-ref", "HEAD").strip() == "HEAD"


def test_unsaved_changes_of_the_main_checkout_stay_there(scratch):
    (scratch.repo / "README").write_text("half done\n")
    (scratch.repo / "loose").write_text("mine\n")
    place = created(scratch)
    assert (place / "README").read_text() == "hello\n"
    assert not (place / "loose").exists()
    assert scratch.git("status", "--porcelain") == " M README\n?? loose\n"
    scratch("kill", "fix", "--delete-branch")
    assert scratch.git("status", "--porcelain") == " M README\n?? loose\n"


def test_without_a_remote_nothing_is_missed(scratch):
    assert scratch.git("remote") == ""
    place = created(scratch)
    scratch.git("add", "-A", cwd=place)
    scratch.git("commit", "-q", "-m", "Note", cwd=place)
    assert "Merged fix into main" in scratch("merge", "fix")


def test_a_bare_repository_has_worktrees_too(scratch, tmp_path):
    bare = tmp_path / "bare.git"
    scratch.git("clone", "-q", "--bare", str(scratch.repo), str(bare))
    place = created(scratch, cwd=bare)
    assert (place / "README").read_text() == "hello\n"
    assert "fix" in scratch.git("branch", "--list", "fix", cwd=bare)
    assert "Kept what was not merged: t-1/1" in scratch("kill", "fix", cwd=bare)


def test_the_commits_of_submodules_survive_a_kill(scratch, tmp_path):
    library = tmp_path / "library"
    library.mkdir()
    scratch.git("init", "-q", "-b", "main", cwd=library)
    scratch.git("commit", "-q", "--allow-empty", "-m", "Library", cwd=library)
    scratch.git(*SUBMODULES, "submodule", "--quiet", "add", str(library), "lib")
    scratch.git("commit", "-q", "-m", "With a library")
    place = created(scratch)
    scratch.git(*SUBMODULES, "submodule", "--quiet", "update", "--init", cwd=place)
    (place / "lib" / "inner").write_text("precious\n")
    scratch.git("add", "-A", cwd=place / "lib")
    scratch.git("commit", "-q", "-m", "Inner", cwd=place / "lib")
    inner = scratch.git("rev-parse", "HEAD", cwd=place / "lib").strip()
    assert "Kept what was not merged" in scratch("kill", "fix", "--delete-branch")
    assert not place.exists()
    assert scratch.git("cat-file", "-t", inner).strip() == "commit"
