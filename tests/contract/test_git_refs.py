"""Refs that are read from git's own files are those that git tells of."""

from __future__ import annotations

import subprocess

import pytest

from fleet.adapters.git import refs as git_refs
from fleet.adapters.git.repo import Repo

NAMES = ["a", "b/c", "b/d/e", "fix/ü", "v1.2", "x-y"]


def git(repo, *words: str) -> str:
    who = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
    ran = subprocess.run(
        ["git", *who, *words], cwd=repo, capture_output=True, text=True, check=True
    )
    return ran.stdout.strip()


@pytest.fixture(params=["loose", "packed", "both"])
def repo(tmp_path, request):
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "x")
    for name in NAMES:
        git(tmp_path, "branch", name)
    if request.param != "loose":
        git(tmp_path, "pack-refs", "--all", "--prune")
    if request.param == "both":
        git(tmp_path, "branch", "b/d/f")
        git(tmp_path, "branch", "-f", "a", git(tmp_path, "commit-tree", "HEAD^{tree}", "-m", "y"))
    return Repo.of(tmp_path)


@pytest.mark.parametrize(
    "name", [*NAMES, "b", "b/d", "a/new", "b/c/new", "new", "fi", "main", "b/d/f"]
)
def test_branches_in_the_way_are_those_that_git_names(repo, name):
    parts = name.split("/")
    above = ["/".join(parts[: n + 1]) for n in range(len(parts))]
    told = git(repo.top, "for-each-ref", "--format=%(refname:lstrip=2)", "refs/heads").split("\n")
    wanted = sorted(b for b in told if b in above or b.startswith(f"{name}/"))
    assert git_refs.names_around(repo.common, name) == wanted


def test_what_was_deleted_is_gone(repo):
    git(repo.top, "branch", "-D", "b/d/e")
    assert "b/d/e" not in git_refs.names_around(repo.common, "b/d")


def test_the_head_is_where_git_says(repo):
    for where in ("main", "fix/ü", "--detach"):
        git(repo.top, "checkout", "-q", where)
        assert git_refs.head_commit(repo.top, repo.common) == git(repo.top, "rev-parse", "HEAD")


def test_git_is_asked_where_its_files_do_not_tell(repo, tmp_path_factory):
    linked = tmp_path_factory.mktemp("linked") / "tree"
    git(repo.top, "worktree", "add", "-q", "-b", "elsewhere", str(linked))
    assert git_refs.head_commit(linked, repo.common) == ""
    assert Repo.of(linked).commit("HEAD") == git(linked, "rev-parse", "HEAD")
    git(repo.top, "checkout", "-q", "--orphan", "unborn")
    assert git_refs.head_commit(repo.top, repo.common) == ""


def test_a_hook_is_found_where_the_settings_say(repo, tmp_path_factory):
    assert not repo.has_hook("post-checkout")
    hooks = repo.common / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-checkout").write_text("#!/bin/sh\n")
    assert repo.has_hook("post-checkout")
