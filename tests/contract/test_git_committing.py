"""What stands in a worktree, committed there, pushed and proposed; or refused with nothing lost."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fleet.adapters.git import commit as committing
from fleet.adapters.git.landing.merge_and_push import push
from fleet.adapters.git.repo import Repo
from fleet.domain.errors import Refused, Unavailable
from fleet.domain.run import Workspace
from fleet.ports import ChangedFile
from tests.contract.checkouts import checkout_in, commit, git, picture, prepared, site

# Not GitHub's program: it writes down what it is called with, and says where the request is.


@pytest.fixture
def far(repo, tmp_path):
    git(tmp_path, "init", "--quiet", "--bare", "far.git")
    git(repo, "remote", "add", "origin", str(tmp_path / "far.git"))
    return tmp_path / "far.git"


def save(place, repo, message="Work", **given):
    return committing.commit("t-1", place, str(repo), message, **given)


def refused(place, repo, root):
    before = picture(repo), {p.name: p.read_bytes() for p in root.iterdir() if p.is_file()}
    with pytest.raises(Refused) as caught:
        save(place, repo)
    after = picture(repo), {p.name: p.read_bytes() for p in root.iterdir() if p.is_file()}
    assert after == before
    assert caught.value.fix
    return caught.value


def test_a_worktree_says_what_is_in_it(repo, place, root, far):
    commit(root, "one", README="one\n")
    (root / "other").unlink()
    (root / "ü b").write_text("new\n")
    commit(repo, "meanwhile", elsewhere="x\n")
    seen = committing.status("t-1", place, str(repo))
    assert (seen.branch, seen.ahead, seen.behind, seen.unpushed) == (place.branch, 1, 1, 1)
    assert seen.files == (ChangedFile("other", "deleted"), ChangedFile("ü b", "untracked"))
    assert (seen.task, seen.changes) == ("t-1", 2)
    push(place, str(repo))
    assert committing.status("t-1", place, str(repo)).unpushed == 0


def test_a_renamed_file_and_a_name_that_is_no_text_are_shown(repo, place, root):
    git(root, "mv", "other", "another")
    (root / os.fsdecode(b"\xff")).write_text("x")
    files = committing.status("t-1", place, str(repo)).files
    assert ChangedFile("another", "renamed") in files
    assert ChangedFile("\ufffd", "untracked") in files


@pytest.mark.parametrize(
    "words", ["$(touch pwned)", "`touch pwned`; touch pwned", "-x --amend", "ü\n\nbody"]
)
def test_a_message_is_a_message_whatever_is_in_it(repo, place, root, words):
    (root / "new").write_text("x\n")
    (root / "README").write_text("changed\n")
    done = save(place, repo, words)
    assert git(root, "log", "-1", "--format=%B") == words
    assert (done.commit, done.files) == (git(root, "rev-parse", "HEAD"), 2)
    assert git(root, "status", "--porcelain") == ""
    assert not (root / "pwned").exists()
    assert git(repo, "rev-parse", place.branch) == done.commit


def test_nothing_to_commit_is_said(repo, place, root):
    assert refused(place, repo, root).code == "nothing_to_commit"


def test_conflicts_are_not_committed_and_a_resolved_merge_is(repo, place, root):
    commit(repo, "mine", README="mine\n")
    commit(root, "theirs", README="theirs\n")
    git(root, "merge", "main", check=False)
    assert refused(place, repo, root).code == "conflicts"
    (root / "README").write_text("both\n")
    git(root, "add", "README")
    save(place, repo, "Merge main")
    assert len(git(root, "log", "-1", "--format=%P").split()) == 2


def test_on_another_branch_or_in_the_middle_of_something_it_is_refused(repo, place, root):
    (root / "new").write_text("x\n")
    git(root, "switch", "--quiet", "--detach")
    assert refused(place, repo, root).code == "other_branch"
    git(root, "switch", "--quiet", place.branch)
    git(root, "bisect", "start")
    assert refused(place, repo, root).code == "dirty"


def test_without_a_worktree_of_its_own_it_is_refused(repo, place, root):
    for workspace in (Workspace(path=str(repo)), Workspace("/gone", "/gone", "x", "", made=True)):
        with pytest.raises(Refused) as caught:
            save(workspace, repo)
        assert caught.value.code == "no_worktree"


def test_the_persons_hook_runs_and_may_say_no(repo, place, root):
    hook = repo / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho too ugly >&2\nexit 1\n")
    hook.chmod(0o755)
    (root / "new").write_text("x\n")
    before = git(root, "rev-parse", "HEAD")
    with pytest.raises(Refused, match="too ugly"):
        save(place, repo)
    assert git(root, "rev-parse", "HEAD") == before
    assert (root / "new").read_text() == "x\n"


def test_private_files_that_were_brought_in_are_left_out(repo, place, root):
    (root / ".env").write_text("KEY=1\n")
    (root / "README").write_text("changed\n")
    save(place, repo, private=(".env", "README"))
    assert git(root, "show", "--name-only", "--format=") == "README"
    assert (root / ".env").read_text() == "KEY=1\n"


def test_whoever_has_named_nobody_commits_all_the_same(repo, place, root, tmp_path, monkeypatch):
    for name, value in (("HOME", str(tmp_path)), ("GIT_CONFIG_NOSYSTEM", "1"), ("EMAIL", "")):
        monkeypatch.setenv(name, value)
    git(root, "config", "user.useConfigOnly", "true")
    (root / "new").write_text("x\n")
    save(place, repo)
    assert git(root, "log", "-1", "--format=%ae") == "fleet@localhost"


def test_of_many_at_once_one_commits_and_nothing_is_lost(repo, place, root):
    (root / "new").write_text("x\n")
    said = []

    def one():
        try:
            said.append(save(place, repo).files)
        except Refused as error:
            said.append(error.code)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, said)) == ["1", *["nothing_to_commit"] * 3]


def test_it_waits_for_whoever_else_changes_the_repository(repo, place, root):
    (root / "new").write_text("early\n")
    thread = threading.Thread(target=save, args=(place, repo))
    with Repo.of(repo).alone():
        thread.start()
        time.sleep(0.3)  # in which it would be done, if it did not wait
        (root / "new").write_text("late\n")
    thread.join()
    assert git(root, "show", "HEAD:new") == "late"


def test_a_link_in_place_of_the_lock_is_not_followed(repo, tmp_path):
    """An agent in a container can write in the git directory, and nowhere else."""
    other = tmp_path / "other"
    other.write_text("mine")
    known = Repo.of(repo)
    (known.common / "fleet.lock").symlink_to(other)
    with pytest.raises(OSError, match="symbolic links"), known.alone():
        pass
    assert other.read_text() == "mine"


def test_a_push_never_overwrites_what_the_remote_has(repo, place, root, far, tmp_path):
    commit(root, "one", README="one\n")
    assert not push(place, str(repo)).nothing
    assert push(place, str(repo)).nothing
    git(tmp_path, "clone", "--quiet", "--branch", place.branch, str(far), "other")
    theirs = commit(tmp_path / "other", "theirs", other="theirs\n")
    git(tmp_path / "other", "push", "--quiet")
    commit(root, "mine", README="mine\n")
    with pytest.raises(Refused) as caught:
        push(place, str(repo))
    assert (caught.value.code, bool(caught.value.fix)) == ("rejected", True)
    assert git(far, "rev-parse", place.branch) == theirs


def test_branches_that_are_pushed_at_once_all_arrive_and_track_the_remote(repo, tmp_path, far):
    checkout = checkout_in(tmp_path)
    places = [prepared(checkout, site(repo, f"t-{number}")) for number in range(1, 7)]
    threads = [threading.Thread(target=push, args=(place, str(repo))) for place in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place in places:
        tracked = git(Path(place.root), "rev-parse", "--abbrev-ref", "@{upstream}")
        assert tracked == f"origin/{place.branch}"


def test_a_commit_of_all_work_changes_nothing_in_the_worktree(repo, place, root):
    commit(root, "mine.txt")
    (root / "new.txt").write_text("new")
    (root / ".env").write_text("SECRET=1")
    before = picture(root)
    made, uncommitted = committing.work_commit("t-1", place, private=[".env"])
    assert (uncommitted, picture(root)) == (True, before)
    assert git(repo, "show", f"{made}:new.txt") == "new"
    assert git(repo, "ls-tree", "--name-only", made).split().count(".env") == 0
    assert git(repo, "rev-parse", f"{made}^").strip() == git(root, "rev-parse", "HEAD").strip()
    (root / "new.txt").unlink()
    (root / ".env").unlink()
    head = git(root, "rev-parse", "HEAD").strip()
    assert committing.work_commit("t-1", place, private=[]) == (head, False)


def test_a_repository_that_another_process_holds_is_waited_for_with_a_deadline(repo):
    hold = (
        "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_EX); print(); input()"
    )
    known = Repo.of(repo)
    (known.common / "fleet.lock").touch()
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(known.common / "fleet.lock")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as holder:  # fmt: skip
        holder.stdout.readline()
        with pytest.raises(Unavailable) as caught, known.alone(seconds=0.1):
            pytest.fail("It went on without the lock.")
        holder.communicate(b"\n")
    assert caught.value.code == "repository_locked"
    assert f"kill {holder.pid}" in caught.value.fix
    with known.alone(seconds=0.1):
        pass
