"""Work merged onto its base, plainly, or refused with nothing changed."""

import os

import pytest

from fleet.adapters.git.landing.branches import GitBranches
from fleet.adapters.git.landing.merge_and_push import ahead, merge, push
from fleet.adapters.git.repo import Repo
from fleet.domain.errors import NotFound, Refused, Unavailable
from fleet.ports import Fit, Work
from tests.contract.checkouts import commit, git, make_repo, picture


def refused(place, repo, onto="", kind=Refused):
    before = picture(repo), (repo / "README").read_text()
    with pytest.raises(kind) as caught:
        merge(place, str(repo), onto)
    assert (picture(repo), (repo / "README").read_text()) == before
    return caught.value


def test_a_branch_that_is_ahead_goes_forward_with_the_checkout(repo, place, root):
    tip = commit(root, "work", README="committed\n")
    done = merge(place, str(repo))
    assert (done.onto, done.commit, done.fast_forward) == ("main", tip, True)
    assert (repo / "README").read_text() == "committed\n"
    assert git(repo, "status", "--porcelain") == ""
    assert merge(place, str(repo)).nothing


def test_two_that_went_on_meet_in_a_merge_commit(repo, place, root):
    mine = commit(repo, "mine", other="2\n")
    theirs = commit(root, "theirs", README="theirs\n")
    done = merge(place, str(repo))
    assert not done.fast_forward
    assert git(repo, "show", "--no-patch", "--format=%P", "main").split() == [mine, theirs]
    assert ((repo / "README").read_text(), (repo / "other").read_text()) == ("theirs\n", "2\n")
    assert git(repo, "status", "--porcelain") == ""


def test_a_conflict_names_its_files(repo, place, root):
    commit(repo, "mine", **{"README": "mine\n", "ü x": "1\n"})
    commit(root, "theirs", **{"README": "theirs\n", "ü x": "2\n"})
    error = refused(place, repo)
    assert error.code == "merge_conflict"
    assert error.message == f"{place.branch} conflicts with main in README, ü x."


def test_uncommitted_work_is_no_work_to_merge(repo, place, root):
    commit(root, "work", README="committed\n")
    (root / "new").write_text("untracked\n")
    assert "uncommitted work" in refused(place, repo).message


def test_a_main_checkout_with_changes_is_not_touched(repo, place, root):
    commit(root, "work", other="committed\n")
    (repo / "README").write_text("half done\n")
    assert "changes of its own" in refused(place, repo).message


def test_an_untracked_file_in_the_way_stays(repo, place, root):
    commit(root, "work", new="theirs\n")
    (repo / "new").write_text("mine\n")
    assert "git cannot update it" in refused(place, repo).message
    assert (repo / "new").read_text() == "mine\n"


def test_a_base_that_is_checked_out_nowhere_is_moved_alone(repo, place, root):
    git(repo, "branch", "release")
    tip = commit(root, "work", README="committed\n")
    before = git(repo, "status", "--porcelain")
    done = merge(place, str(repo), "release")
    assert (done.checkout, git(repo, "rev-parse", "release")) == ("", tip)
    assert (git(repo, "status", "--porcelain"), (repo / "README").read_text()) == (
        before,
        "hello\n",
    )


def test_a_base_that_another_worktree_has_is_moved_there(repo, place, root, tmp_path):
    git(repo, "worktree", "add", "--quiet", "-b", "release", str(tmp_path / "side"))
    commit(root, "work", README="committed\n")
    assert merge(place, str(repo), "release").checkout == str(tmp_path / "side")
    assert (tmp_path / "side" / "README").read_text() == "committed\n"
    (tmp_path / "side").rename(tmp_path / "away")
    commit(root, "more", README="more\n")
    assert "which does not exist" in refused(place, repo, "release").message


def test_a_place_to_merge_onto_is_needed(repo, place, root):
    commit(root, "work", README="committed\n")
    assert "no branch 'nope'" in refused(place, repo, "nope", NotFound).message
    assert "into itself" in refused(place, repo, place.branch).message
    git(repo, "checkout", "--quiet", "--detach")
    assert "--into" in refused(place, repo).fix


def test_a_push_needs_a_remote_and_then_tracks_it(repo, place, root, tmp_path):
    tip = commit(root, "work", README="committed\n")
    with pytest.raises(Refused, match="has no remote 'origin'"):
        push(place, str(repo))
    git(tmp_path, "init", "--quiet", "--bare", "far.git")
    git(repo, "remote", "add", "origin", str(tmp_path / "far.git"))
    done = push(place, str(repo))
    assert (done.remote, done.address) == ("origin", str(tmp_path / "far.git"))
    assert git(tmp_path / "far.git", "rev-parse", place.branch) == tip
    assert git(root, "rev-parse", "--abbrev-ref", "@{upstream}") == f"origin/{place.branch}"


def test_the_address_of_a_remote_is_told_without_its_password(repo, place, tmp_path):
    git(tmp_path, "init", "--quiet", "--bare", "far.git")
    git(repo, "remote", "add", "origin", f"file://bo:secret@/{tmp_path}/far.git")
    assert push(place, str(repo)).address == f"file:///{tmp_path}/far.git"


def test_branches_that_are_ahead_are_told_with_their_conflicts_and_nothing_is_written(
    repo, place, root
):
    commit(root, "theirs", README="theirs\n")
    git(repo, "branch", "same")
    git(repo, "branch", "fine")
    asked = [place.branch, "same", "fine", "no-such", "bad name"]
    assert ahead(str(repo), asked) == [(place.branch, "main", ())]
    commit(repo, "mine", README="mine\n")
    before = git(repo, "count-objects", "-v")
    assert ahead(str(repo), asked) == [(place.branch, "main", ("README",))]
    assert git(repo, "count-objects", "-v") == before
    git(repo, "checkout", "--quiet", "--detach")
    ((_, onto, _),) = ahead(str(repo), asked)
    assert onto == git(repo, "rev-parse", "HEAD").strip()[:12]


def test_a_directory_without_a_commit_has_nothing_that_is_ahead(tmp_path):
    with pytest.raises(Refused):
        ahead(str(tmp_path), ["main"])


def test_a_git_that_is_killed_says_nothing_about_two_commits(tmp_path, monkeypatch):
    repo = make_repo(tmp_path / "shop")
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\nkill -9 $$\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    with pytest.raises(Unavailable):
        Repo.at(repo / ".git").is_ancestor("HEAD", "HEAD")


def test_work_is_compared_by_its_size_and_by_what_it_conflicts_with(tmp_path):
    repo = make_repo(tmp_path / "shop")
    tips = {}
    for name, files in {
        "small": {"a": "1\n"},
        "large": {"README": "one\n", "b": "1\n" * 50},
        "rival": {"README": "two\n"},
    }.items():
        git(repo, "checkout", "-q", "-b", name, "main")
        tips[name] = commit(repo, name, **files)
    git(repo, "checkout", "-q", "main")
    main = commit(repo, "main goes on", main="2\n")
    branches = GitBranches(Repo.of(repo))
    before = picture(repo)
    fits = branches.compare(main, {name: Work(tip, "x") for name, tip in tips.items()})
    readme = 2  # one line goes, one comes
    assert fits == {
        "small": Fit(1),
        "large": Fit(50 + readme, ("rival",)),
        "rival": Fit(readme, ("large",)),
    }
    assert picture(repo) == before
