"""Branches go together, with their worktrees, and no commit goes with them."""

import os
import shutil
from pathlib import Path

import pytest

from fleet.adapters.git.kept.refs import list_kept
from fleet.adapters.git.old_branches import DeleteBranches, elsewhere
from fleet.adapters.git.remove_all import OldWorkspace
from fleet.adapters.git.repo import Repo
from tests.contract.checkouts import commit, git, prepared, site

MERGED = DeleteBranches.MERGED


@pytest.fixture
def gits(tmp_path, monkeypatch):
    """Counts the git processes that are started while it is called."""
    log, shim = tmp_path / "gits", tmp_path / "bin" / "git"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho >> "{log}"\nexec {shutil.which("git")} "$@"\n')
    shim.chmod(0o700)

    def count(act) -> int:
        log.write_text("")
        with monkeypatch.context() as here:
            here.setenv("PATH", f"{shim.parent}:{os.environ['PATH']}")
            act()
        return len(log.read_text())

    return count


def worked(checkout, repo, number: int):
    place = prepared(checkout, site(repo, f"t-{number}"))
    commit(Path(place.root), "work", **{f"of-{number}": "x\n"})
    return place


def old(repo, places) -> list[OldWorkspace]:
    return [OldWorkspace(place, f"t-{n}", str(repo)) for n, place in enumerate(places, 1)]


def branches(repo) -> list[str]:
    return git(repo, "branch", "--format=%(refname:short)").split()


@pytest.mark.parametrize(("is_merged", "most"), [(True, 3), (False, 11)])
def test_a_worktree_more_costs_few_git_processes_more(checkout, repo, gits, is_merged, most):
    counts = []
    for many in (2, 8):
        places = [worked(checkout, repo, many * 10 + n) for n in range(many)]
        if is_merged:
            git(repo, "merge", "--quiet", *(place.branch for place in places))
        counts.append(gits(lambda some=places: checkout.remove_all(old(repo, some), MERGED)))
        assert not any(Path(place.root).exists() for place in places)
        assert len(branches(repo)) == (1 if is_merged else sum({2, many}) + 1)
    assert (counts[1] - counts[0]) / 6 <= most


def test_merged_branches_go_with_their_settings_and_all_others_stay(checkout, repo):
    places = [worked(checkout, repo, n) for n in range(1, 5)]
    unused = prepared(checkout, site(repo, "t-9"))
    git(repo, "merge", "--quiet", places[0].branch)
    git(repo, "config", f"branch.{places[0].branch}.remote", "origin")
    git(repo, "config", f"branch.{places[1].branch}.remote", "origin")
    done = checkout.remove_all(old(repo, [*places, unused]), MERGED)
    assert [one.branch_deleted for one in done] == [True, False, False, False, True]
    assert [one.kept for one in done] == [(), ("t-2/1",), ("t-3/1",), ("t-4/1",), ()]
    assert branches(repo) == ["fleet/t-2", "fleet/t-3", "fleet/t-4", "main"]
    assert git(repo, "config", "--get-regexp", r"^branch\.").splitlines() == [
        "branch.fleet/t-2.remote origin"
    ]


def test_of_branches_that_have_each_others_commits_as_many_go_as_may(checkout, repo):
    below, same, tip = (worked(checkout, repo, n) for n in (1, 2, 3))
    for place in (same, tip):
        git(Path(place.root), "merge", "--quiet", "-m", "both", below.branch)
    git(Path(same.root), "reset", "--quiet", "--hard", tip.branch)
    commits = git(repo, "rev-list", "--branches")
    checkout.remove_all(old(repo, [below, same, tip]), MERGED)
    assert branches(repo) == [same.branch, "main"]
    assert set(git(repo, "rev-list", "--branches").split()) <= set(commits.split())
    assert "of-1" in git(repo, "ls-tree", "--name-only", same.branch)
    assert "of-3" in git(repo, "ls-tree", "--name-only", same.branch)


def test_another_name_for_a_branch_does_not_hold_its_commits(checkout, repo):
    place = worked(checkout, repo, 1)
    git(repo, "symbolic-ref", "refs/heads/alias", f"refs/heads/{place.branch}")
    (done,) = checkout.remove_all(old(repo, [place]), MERGED)
    assert (done.branch_deleted, done.kept) == (False, ("t-1/1",))
    assert branches(repo) == ["alias", place.branch, "main"]


@pytest.mark.parametrize("how", ["checkout", "rebase"])
def test_a_branch_that_somebody_has_checked_out_stays(checkout, repo, tmp_path, how):
    place = worked(checkout, repo, 1)
    git(repo, "merge", "--quiet", place.branch)
    git(Path(place.root), "checkout", "--quiet", "--detach")
    theirs = tmp_path / "theirs"
    git(repo, "worktree", "add", "--quiet", str(theirs), place.branch)
    if how == "rebase":
        git(theirs, "-c", "sequence.editor=sed -i 1ibreak", "rebase", "-i", "--root")
    (done,) = checkout.remove_all(old(repo, [place]), MERGED)
    assert (done.removed, done.branch_deleted) == (True, False)
    assert done.said == (f"{place.branch} is checked out, so it stays.",)
    assert place.branch in branches(repo)


def test_a_broken_branch_stops_no_other(checkout, repo):
    places = [worked(checkout, repo, n) for n in (1, 2)]
    git(repo, "merge", "--quiet", *(place.branch for place in places))
    lock = repo / ".git" / "refs" / "heads" / f"{places[0].branch}.lock"
    lock.touch()
    done = checkout.remove_all(old(repo, places), MERGED)
    assert [one.branch_deleted for one in done] == [False, True]
    assert "could not be deleted" in done[0].said[0]
    assert branches(repo) == [places[0].branch, "main"]


def test_what_the_repository_of_its_project_has_says_nothing_of_its_own(checkout, repo, tmp_path):
    """A clone that has the same commits may be where the task's project is now."""
    place = worked(checkout, repo, 1)
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(repo), str(clone))
    git(clone, "branch", place.branch, f"origin/{place.branch}")
    (done,) = checkout.remove_all([OldWorkspace(place, "t-1", str(clone))], MERGED)
    assert (done.removed, done.branch_deleted, done.kept) == (True, False, ("t-1/1",))
    assert len(list_kept(Repo.of(repo))) == 1


@pytest.mark.parametrize(
    ("tips", "only", "going"),
    [
        ({"a": "1"}, [], {"a"}),
        ({"a": "1"}, [("1", ["0"])], set()),
        ({"a": "1", "b": "1"}, [("1", ["0"])], {"b"}),
        ({"a": "1", "b": "2"}, [("2", ["1"]), ("1", ["0"])], {"a"}),
        ({"a": "1", "b": "2", "c": "3"}, [("3", ["1", "2"]), ("2", []), ("1", [])], {"a", "b"}),
        ({"a": "1", "b": "2"}, [("2", ["0"])], {"a"}),
    ],
)
def test_some_branch_that_stays_has_every_commit(tips, only, going):
    assert elsewhere(tips, only) == going
