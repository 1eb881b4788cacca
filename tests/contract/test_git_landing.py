"""Work merged onto its base, plainly, or refused with nothing changed."""

import pytest

from fleet.adapters.git.land import diff, merge, open_pull_request, push
from fleet.domain.errors import NotFound, Refused, Unavailable
from tests.contract.checkouts import commit, git, picture


def refused(place, repo, onto="", kind=Refused):
    before = picture(repo), (repo / "README").read_text()
    with pytest.raises(kind) as caught:
        merge(place, str(repo), onto)
    assert (picture(repo), (repo / "README").read_text()) == before
    return caught.value


def test_a_diff_has_everything_since_the_base(repo, place, root):
    commit(root, "work", README="committed\n")
    (root / "other").write_text("staged\n")
    git(root, "add", "other")
    (root / "new").write_text("untracked\n")
    commit(repo, "meanwhile", elsewhere="x\n")
    before = git(root, "status", "--porcelain")
    shown = diff(place)
    assert all(f"+{words}" in shown for words in ("committed", "staged", "untracked"))
    assert "elsewhere" not in shown
    assert git(root, "status", "--porcelain") == before
    assert "3 files changed" in diff(place, stat=True)


def test_a_diff_after_its_worktree_went_is_that_of_its_branch(repo, place, root):
    commit(root, "work", README="committed\n")
    git(repo, "worktree", "remove", "--force", place.root)
    assert "+committed" in diff(place, str(repo))
    git(repo, "branch", "-D", place.branch)
    with pytest.raises(NotFound, match="exists any more"):
        diff(place, str(repo))


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
    assert push(place, str(repo)).remote == "origin"
    assert git(tmp_path / "far.git", "rev-parse", place.branch) == tip
    assert git(root, "rev-parse", "--abbrev-ref", "@{upstream}") == f"origin/{place.branch}"


def test_a_pull_request_without_gh_says_what_to_install(repo, place, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="gh, GitHub's command line, is not installed"):
        open_pull_request(place, str(repo), "Title")


def test_a_pull_request_is_pushed_then_opened(repo, place, root, tmp_path, monkeypatch):
    commit(root, "work", README="committed\n")
    git(tmp_path, "init", "--quiet", "--bare", "far.git")
    git(repo, "remote", "add", "origin", str(tmp_path / "far.git"))
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "gh").write_text('#!/bin/sh\nprintf "%s\\n" "$@" > said\necho https://forge/pull/1\n')
    (folder / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin", prepend=None)
    done = open_pull_request(place, str(repo), "A title; $(rm -rf)", "body")
    assert done.url == "https://forge/pull/1"
    said = (repo / "said").read_text().splitlines()
    words = [f"--head={place.branch}", "--title=A title; $(rm -rf)", "--body=body"]
    assert said == ["pr", "create", *words]
