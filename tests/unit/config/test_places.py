import os
import subprocess

import pytest

from fleet.config import find_project

ENV = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@example.invalid",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@example.invalid",
}


def git(place, *words):
    subprocess.run(["git", "-C", place, *words], env=ENV, check=True, capture_output=True)


@pytest.fixture
def repo(tmp_path):
    top = tmp_path / "app"
    (top / "src" / "deep").mkdir(parents=True)
    (top / "src" / "deep" / "x.py").write_text("")
    git(top, "init", "-q")
    git(top, "add", ".")
    git(top, "commit", "-qm", "first")
    return top


def test_a_project_is_found_from_any_directory_below_its_file(tmp_path):
    (tmp_path / "fleet.yaml").write_text("")
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert find_project(tmp_path / "a" / "b") == tmp_path


def test_without_a_file_the_top_of_the_checkout_is_the_project(repo):
    assert find_project(repo / "src" / "deep") == repo


def test_the_nearest_file_wins_over_the_top_of_the_checkout(repo):
    (repo / "fleet.yaml").write_text("")
    (repo / "src" / "fleet.yaml").write_text("")
    assert find_project(repo / "src" / "deep") == repo / "src"


def test_the_search_ends_at_the_top_of_the_checkout(repo):
    (repo.parent / "fleet.yaml").write_text("")
    assert find_project(repo / "src") == repo
    assert find_project(repo.parent) == repo.parent


def test_a_directory_without_either_is_no_project(tmp_path):
    assert find_project(tmp_path) is None


def test_a_directory_that_is_gone_is_no_project(tmp_path):
    assert find_project(tmp_path / "gone") is None


def test_a_linked_worktree_belongs_to_the_main_checkout(repo, tmp_path):
    tree = tmp_path / "home" / "worktrees" / "t-1"
    git(repo, "worktree", "add", "-q", str(tree))
    assert find_project(tree) == find_project(tree / "src" / "deep") == repo


def test_a_file_committed_in_a_worktree_does_not_make_it_a_project(repo, tmp_path):
    (repo / "src" / "fleet.yaml").write_text("")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "second")
    tree = tmp_path / "t-1"
    git(repo, "worktree", "add", "-q", str(tree))
    (tree / "fleet.yaml").write_text("team: intruder\n")
    assert find_project(tree / "src" / "deep") == repo / "src"
    assert find_project(tree) == repo


def test_a_worktree_with_relative_links_is_understood(repo):
    tree = repo.parent / "t-1"
    git(repo, "worktree", "add", "-q", str(tree))
    (tree / ".git").write_text("gitdir: ../app/.git/worktrees/t-1\n")
    assert find_project(tree) == repo


def test_a_submodule_is_a_project_of_its_own(repo, tmp_path):
    outer = tmp_path / "outer"
    outer.mkdir()
    git(outer, "init", "-q")
    git(outer, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(repo), "sub")
    assert find_project(outer / "sub" / "src") == outer / "sub"


def test_a_worktree_of_a_bare_repository_is_a_project_of_its_own(repo, tmp_path):
    git(tmp_path, "clone", "-q", "--bare", str(repo), "bare.git")
    tree = tmp_path / "tree"
    git(tmp_path / "bare.git", "worktree", "add", "-q", str(tree))
    assert find_project(tree / "src") == tree


@pytest.mark.parametrize("content", ["", "rubbish", "gitdir: /nowhere/at/all\n", "gitdir:"])
def test_a_broken_link_file_is_taken_for_the_top_of_a_checkout(tmp_path, content):
    (tmp_path / ".git").write_text(content)
    assert find_project(tmp_path) == tmp_path
