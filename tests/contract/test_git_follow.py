"""A checkout that follows its branch, and git killed in the middle of it."""

from __future__ import annotations

import json
import os
import time

import pytest

from fleet.adapters.git.landing.branches import GitBranches
from fleet.adapters.git.landing.follow import RECORD
from fleet.adapters.git.repo import Repo
from fleet.domain.errors import Refused
from tests.contract.checkouts import git, make_repo


@pytest.fixture
def cut_off(tmp_path):
    """main is at `before` and is to go to `after`, which changes, adds and removes a file."""
    repo = make_repo(tmp_path / "shop")
    for name in ("changed", "removed"):
        (repo / name).write_text(f"old {name}\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "Before")
    before = git(repo, "rev-parse", "HEAD")
    git(repo, "checkout", "-q", "-b", "work")
    (repo / "changed").write_text("new and longer\n")
    (repo / "added").write_text("added\n")
    git(repo, "rm", "-q", "removed")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "After")
    after = git(repo, "rev-parse", "HEAD")
    git(repo, "checkout", "-q", "main")
    record = {"onto": "main", "before": before, "after": after}
    (repo / ".git" / RECORD).write_text(json.dumps(record))
    return repo, before, after


def lock(repo, name: str = "index") -> None:
    path = repo / ".git" / f"{name}.lock"
    path.write_bytes(b"")
    os.utime(path, (time.time() - 60,) * 2)


def check_landed(repo, after) -> None:
    assert git(repo, "rev-parse", "main") == after
    assert git(repo, "status", "--porcelain") == ""
    assert not (repo / ".git" / RECORD).exists()


def test_files_that_were_half_written_are_taken_back_and_it_lands(cut_off):
    repo, before, after = cut_off
    (repo / "changed").write_text("new and")
    (repo / "added").write_text("add")
    (repo / "removed").unlink()
    lock(repo)
    GitBranches(Repo.at(repo / ".git")).move("main", after, before)
    check_landed(repo, after)


@pytest.mark.parametrize("name", ["index", "HEAD", "ORIG_HEAD", "refs/heads/main"])
def test_a_lock_that_a_killed_git_left_behind_is_in_nobodys_way(cut_off, name):
    repo, before, after = cut_off
    git(repo, "read-tree", "-m", "-u", before, after)
    lock(repo, name)
    GitBranches(Repo.at(repo / ".git")).move("main", after, before)
    check_landed(repo, after)


def test_a_branch_that_had_only_to_follow_its_files_follows(cut_off):
    repo, before, after = cut_off
    git(repo, "read-tree", "-m", "-u", before, after)
    assert git(repo, "rev-parse", "main") == before
    GitBranches(Repo.at(repo / ".git")).move("main", after, before)
    check_landed(repo, after)


def test_what_a_person_wrote_meanwhile_stays(cut_off):
    repo, before, after = cut_off
    (repo / "added").write_text("added\n")
    (repo / "changed").write_text("mine\n")
    with pytest.raises(Refused, match="changes of its own"):
        GitBranches(Repo.at(repo / ".git")).move("main", after, before)
    assert (repo / "changed").read_text() == "mine\n"
    assert git(repo, "rev-parse", "main") == before
    assert not (repo / "added").exists()
