"""Workspaces in real repositories, of every kind that people have."""

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from fleet.adapters.git import make
from fleet.adapters.git.repo import Repo
from fleet.domain.errors import Refused
from fleet.domain.task import Spec
from fleet.ports import Merge
from tests.contract.checkouts import checkout_in, commit, git, make_repo, picture, prepared, site
from tests.contract.launching import is_alive


@pytest.fixture
def repo(tmp_path):
    return make_repo(tmp_path / "shop")


def worker(checkout, repo, task, **files):
    """A workspace in which a task has committed these files."""
    workspace = prepared(checkout, site(repo, task))
    commit(Path(workspace.root), f"work of {task}", **files)
    return workspace


def test_work_begins_at_the_commit_that_is_checked_out(checkout, repo):
    workspace = prepared(checkout, site(repo))
    assert git(repo, "rev-parse", "main") == git(repo, "rev-parse", workspace.branch)
    assert workspace.base == git(repo, "rev-parse", "HEAD")
    assert Path(workspace.path, "README").read_text() == "hello\n"
    assert git(Path(workspace.path), "rev-parse", "--abbrev-ref", "HEAD") == "fleet/t-1"
    assert git(repo, "config", "--get-regexp", "branch.fleet", check=False) == ""


@pytest.mark.parametrize("base", ["v1", "older", "main~1", "{commit}"])
def test_work_begins_where_it_was_told_to(checkout, repo, base):
    first = git(repo, "rev-parse", "HEAD")
    git(repo, "tag", "v1")
    git(repo, "branch", "older")
    commit(repo, "second", README="changed\n")
    spec = Spec(cwd=str(repo), base=base.format(commit=first))
    workspace = prepared(checkout, site(repo, spec=spec))
    assert git(Path(workspace.path), "rev-parse", "HEAD") == first


def test_a_base_that_is_not_there_is_named(checkout, repo):
    with pytest.raises(Refused, match=r"no commit 'v9' in .*/shop to start from"):
        checkout.plan(site(repo, spec=Spec(cwd=str(repo), base="v9")))


def test_a_repository_without_a_commit_is_refused_with_the_way_out(checkout, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "--quiet")
    with pytest.raises(Refused, match="has no commit yet") as refused:
        checkout.plan(site(empty))
    assert "git commit" in refused.value.fix


def test_outside_git_it_is_refused_with_the_way_out(checkout, tmp_path):
    plain = tmp_path / "plain"
    plain.mkdir()
    with pytest.raises(Refused, match="not in a git repository") as refused:
        checkout.plan(site(plain))
    assert "--in-place" in refused.value.fix


def test_a_project_that_is_gone_is_refused(checkout, tmp_path):
    with pytest.raises(Refused, match="is not a directory"):
        checkout.plan(site(tmp_path / "moved"))


def test_a_detached_head_is_a_commit_like_any_other(checkout, repo):
    git(repo, "checkout", "--quiet", "--detach")
    second = commit(repo, "second")
    workspace = prepared(checkout, site(repo))
    assert git(Path(workspace.path), "rev-parse", "HEAD") == second
    assert git(repo, "symbolic-ref", "-q", "HEAD", check=False) == ""


def test_work_in_progress_in_the_main_checkout_stays_there_untouched(checkout, repo):
    (repo / "README").write_text("half done\n")
    (repo / "new").write_text("untracked\n")
    (repo / "staged").write_text("staged\n")
    git(repo, "add", "staged")
    before = git(repo, "status", "--porcelain"), git(repo, "diff"), git(repo, "diff", "--cached")
    workspace = prepared(checkout, site(repo))
    after = git(repo, "status", "--porcelain"), git(repo, "diff"), git(repo, "diff", "--cached")
    assert after == before
    assert sorted(p.name for p in Path(workspace.path).iterdir()) == [".git", "README"]


def test_a_branch_name_that_another_store_took_is_not_touched(checkout, repo, tmp_path):
    theirs = prepared(checkout_in(tmp_path / "other"), site(repo))
    tip = commit(Path(theirs.root), "their work")
    ours = prepared(checkout, site(repo))
    assert (theirs.branch, ours.branch) == ("fleet/t-1", "fleet/t-1-2")
    assert git(repo, "rev-parse", "fleet/t-1") == tip


def test_a_branch_that_somebody_made_since_the_plan_is_not_taken_over(checkout, repo):
    wanted = site(repo)
    planned = checkout.plan(wanted)
    git(repo, "branch", planned.branch)
    before = picture(repo)
    with pytest.raises(Refused, match=f"Another process created the branch {planned.branch}"):
        checkout.prepare(planned, wanted)
    assert picture(repo) == before
    assert prepared(checkout, wanted).branch == "fleet/t-1-2"


def test_a_branch_can_be_asked_for_by_name(checkout, repo):
    workspace = prepared(checkout, site(repo, spec=Spec(cwd=str(repo), branch="fix/login")))
    assert git(Path(workspace.path), "rev-parse", "--abbrev-ref", "HEAD") == "fix/login"


def test_a_task_in_a_subdirectory_works_in_the_same_one(checkout, tmp_path):
    repo = make_repo(tmp_path / "mono", packages__api__main="x\n", README="y\n")
    cwd = repo / "packages" / "api"
    workspace = prepared(checkout, site(repo, spec=Spec(cwd=str(cwd))))
    assert Path(workspace.path) == Path(workspace.root) / "packages" / "api"
    assert Path(workspace.path, "main").exists()


def test_a_subdirectory_that_the_base_does_not_have_is_refused_and_nothing_stays(checkout, repo):
    (repo / "new").mkdir()
    before = picture(repo)
    with pytest.raises(Refused, match="The directory new is not in"):
        prepared(checkout, site(repo, spec=Spec(cwd=str(repo / "new"))))
    assert picture(repo) == before


def test_a_project_can_be_reached_through_a_link(checkout, repo, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(repo)
    workspace = prepared(checkout, site(link))
    assert Path(workspace.path) == Path(workspace.root)
    assert Path(workspace.path, "README").exists()


def test_a_project_can_itself_be_a_worktree(checkout, repo, tmp_path):
    git(repo, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    tip = commit(tmp_path / "side", "on the side")
    workspace = prepared(checkout, site(tmp_path / "side"))
    assert git(Path(workspace.path), "rev-parse", "HEAD") == tip


@pytest.mark.parametrize("name", ["my shop", "läden 店 🚢", 'it\'s "one"', "-dash", "a$b;c"])
def test_a_path_may_have_any_name(tmp_path, name):
    repo = make_repo(tmp_path / name, README="hi\n")
    checkout = checkout_in(tmp_path / name / ".." / f"home of {name}")
    one = worker(checkout, repo, "t-1", **{"a file": "1\n"})
    two = prepared(checkout, site(repo, "t-2", merges=[one.branch]))
    assert Path(two.path, "a file").read_text() == "1\n"
    assert Path(two.path, "README").exists()


def test_two_repositories_of_one_name_do_not_meet(checkout, tmp_path):
    one = prepared(checkout, site(make_repo(tmp_path / "a" / "shop", README="a\n")))
    two = prepared(checkout, site(make_repo(tmp_path / "b" / "shop", README="b\n")))
    assert one.root != two.root
    assert [Path(w.path, "README").read_text() for w in (one, two)] == ["a\n", "b\n"]


def test_a_task_starts_from_the_work_of_those_it_waited_for(checkout, repo):
    first = worker(checkout, repo, "t-1", one="1\n")
    second = worker(checkout, repo, "t-2", two="2\n")
    third = prepared(checkout, site(repo, "t-3", merges=[first.branch, second.branch]))
    assert {p.name for p in Path(third.path).iterdir()} >= {"one", "two", "README"}
    subjects = git(Path(third.path), "log", "--format=%s").splitlines()
    assert subjects[0] == "Merge fleet/t-2 for t-3"
    assert git(Path(third.path), "status", "--porcelain") == ""


def test_work_whose_branch_is_gone_is_taken_from_its_commit(checkout, repo):
    first = worker(checkout, repo, "t-1", one="1\n")
    tip = git(repo, "rev-parse", first.branch)
    git(repo, "worktree", "remove", "--force", first.root)
    git(repo, "branch", "-D", first.branch)
    after = prepared(checkout, site(repo, "t-2", merges=[Merge(first.branch, tip)]))
    assert Path(after.path, "one").exists()
    none = prepared(checkout, site(repo, "t-3", merges=[Merge("fleet/never-was")]))
    assert not Path(none.path, "one").exists()


def test_a_branch_that_only_has_the_name_of_the_recorded_work_is_never_merged(checkout, repo):
    """A clone on another machine may have a `fleet/t-1` of its own, from another store."""
    worker(checkout, repo, "t-1", old="of another store\n")
    elsewhere = "1234567890" * 4
    before = picture(repo)
    merges = [Merge("fleet/t-1", elsewhere)]
    with pytest.raises(Refused, match="it has no commit 123456789012") as refused:
        prepared(checkout, site(repo, "t-2", merges=merges))
    assert refused.value.code == "base_gone"
    assert picture(repo) == before
    checkout.check_merges(Repo.of(repo), "main", merges)  # nothing is known of that work here


def test_a_conflict_names_the_files_and_leaves_the_repository_as_it_was(checkout, repo):
    files = {"plain": "x", "with space": "x", "ünicode": "x"}
    one = worker(checkout, repo, "t-1", **dict.fromkeys(files, "one\n"))
    two = worker(checkout, repo, "t-2", **dict.fromkeys(files, "two\n"))
    before = picture(repo)
    wanted = site(repo, "t-3", merges=[one.branch, two.branch])
    with pytest.raises(Refused) as refused:
        prepared(checkout, wanted)
    assert refused.value.code == "base_conflict"
    assert refused.value.message == (
        "fleet/t-2 conflicts with what t-3 starts from, in plain, with space, ünicode."
    )
    assert "fleet edit t-3 --base BRANCH" in refused.value.fix
    assert picture(repo) == before
    assert not Path(checkout.plan(wanted).root).exists()


def test_a_try_that_failed_leaves_no_name_behind(checkout, repo):
    one = worker(checkout, repo, "t-1", same="one\n")
    two = worker(checkout, repo, "t-2", same="two\n")
    with pytest.raises(Refused):
        prepared(checkout, site(repo, "t-3", merges=[one.branch, two.branch]))
    assert checkout.plan(site(repo, "t-3", number=2)).branch == "fleet/t-3"


def test_a_conflict_is_known_without_a_worktree(checkout, repo):
    one = worker(checkout, repo, "t-1", one="1\n", same="one\n")
    two = worker(checkout, repo, "t-2", two="2\n", same="two\n")
    three = worker(checkout, repo, "t-3", three="3\n")
    merges = [Merge(one.branch), Merge(three.branch), Merge("fleet/never-was")]
    before = picture(repo)
    checkout.check_merges(Repo.of(repo), "main", merges)
    with pytest.raises(Refused, match=r"fleet/t-2 conflicts with .*, in same\.") as refused:
        checkout.check_merges(Repo.of(repo), "main", [*merges, Merge(two.branch)])
    assert refused.value.code == "base_conflict"
    assert picture(repo) == before


def test_a_users_merge_settings_and_hooks_are_not_in_the_way(checkout, repo):
    first = worker(checkout, repo, "t-1", one="1\n")
    second = worker(checkout, repo, "t-2", two="2\n")
    git(repo, "config", "merge.ff", "only")
    for name in ("pre-merge-commit", "commit-msg"):
        hook = repo / ".git" / "hooks" / name
        hook.write_text("#!/bin/sh\nexit 1\n")
        hook.chmod(0o755)
    third = prepared(checkout, site(repo, "t-3", merges=[first.branch, second.branch]))
    assert Path(third.path, "two").exists()


def test_merges_have_an_author_where_nobody_has_said_who_they_are(checkout, repo, monkeypatch):
    first, second = (worker(checkout, repo, t, **{t: "x\n"}) for t in ("t-1", "t-2"))
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("EMAIL", "")
    third = prepared(checkout, site(repo, "t-3", merges=[first.branch, second.branch]))
    assert git(Path(third.path), "log", "-1", "--format=%s") == "Merge fleet/t-2 for t-3"


def test_uncommitted_work_of_the_last_run_is_handed_on_untouched(checkout, repo):
    one = prepared(checkout, site(repo))
    root = Path(one.root)
    (root / "README").write_text("half done\n")
    (root / "new").write_text("untracked\n")
    before = git(root, "status", "--porcelain"), git(root, "diff")
    prepared(checkout, site(repo, number=2, previous=one))
    assert (git(root, "status", "--porcelain"), git(root, "diff")) == before


WANDERINGS = {
    "switched to another branch": ["checkout", "--quiet", "-b", "idea"],
    "detached its head": ["checkout", "--quiet", "--detach"],
    "locked its worktree": ["worktree", "lock", "."],
}


@pytest.mark.parametrize("how", WANDERINGS)
def test_uncommitted_work_survives_whatever_the_last_run_did_with_git(checkout, repo, how):
    one = prepared(checkout, site(repo))
    git(Path(one.root), *WANDERINGS[how])
    Path(one.root, "precious").write_text("uncommitted\n")
    prepared(checkout, site(repo, number=2, previous=one))
    assert Path(one.root, "precious").read_text() == "uncommitted\n"


def test_uncommitted_work_survives_in_the_middle_of_a_rebase(checkout, repo):
    one = prepared(checkout, site(repo))
    root = Path(one.root)
    commit(root, "ours", README="ours\n")
    commit(repo, "theirs", README="theirs\n")
    git(root, "rebase", "main", check=False)
    before = git(root, "status")
    assert "rebase in progress" in before
    prepared(checkout, site(repo, number=2, previous=one))
    assert git(root, "status") == before


def test_a_worktree_that_git_no_longer_knows_is_not_removed(checkout, repo):
    one = prepared(checkout, site(repo))
    Path(one.root, "precious").write_text("uncommitted\n")
    moved = Path(one.root).with_name("unmounted")
    Path(one.root).rename(moved)
    git(repo, "worktree", "prune")
    moved.rename(one.root)
    with pytest.raises(Refused, match=r"not a worktree of .* any more") as refused:
        prepared(checkout, site(repo, number=2, previous=one))
    assert "worktree repair" in refused.value.fix
    assert Path(one.root, "precious").exists()


def test_a_deleted_worktree_is_made_again_from_its_branch(checkout, repo):
    one = worker(checkout, repo, "t-1", one="1\n")
    tip = git(repo, "rev-parse", one.branch)
    subprocess.run(["rm", "-rf", one.root], check=True)
    again = prepared(checkout, site(repo, number=2, previous=one))
    assert again == one
    assert git(Path(one.root), "rev-parse", "HEAD") == tip
    assert Path(one.root, "one").exists()


def test_another_worktree_that_is_only_away_stays_registered(checkout, repo, tmp_path):
    git(repo, "worktree", "add", "--quiet", "-b", "usb", str(tmp_path / "usb"))
    (tmp_path / "usb").rename(tmp_path / "unplugged")
    prepared(checkout, site(repo))
    assert "branch refs/heads/usb" in git(repo, "worktree", "list", "--porcelain")
    (tmp_path / "unplugged").rename(tmp_path / "usb")
    assert git(tmp_path / "usb", "rev-parse", "--abbrev-ref", "HEAD") == "usb"


def test_a_checkpoint_is_where_a_run_without_the_old_workspace_begins(checkout, repo):
    one = worker(checkout, repo, "t-1", one="1\n")
    tip = git(repo, "rev-parse", one.branch)
    two = prepared(checkout, site(repo, number=2, start=tip))
    assert git(Path(two.path), "rev-parse", "HEAD") == tip
    lost = prepared(checkout, site(repo, number=3, start="0" * 40))
    assert git(Path(lost.path), "rev-parse", "HEAD") == git(repo, "rev-parse", "main")


def test_sixteen_at_once_in_one_repository_all_succeed(checkout, repo):
    first = worker(checkout, repo, "t-100", one="1\n")
    second = worker(checkout, repo, "t-101", two="2\n")
    wanted = [site(repo, f"t-{n}", merges=[first.branch, second.branch]) for n in range(1, 17)]
    with ThreadPoolExecutor(16) as pool:
        made = list(pool.map(lambda s: prepared(checkout, s), wanted))
    assert len({w.root for w in made}) == 16
    assert all(Path(w.path, "one").exists() and Path(w.path, "two").exists() for w in made)
    assert git(repo, "worktree", "list", "--porcelain").count("branch refs/heads/fleet/") == 18


def test_the_environment_of_a_git_hook_does_not_confuse_it(checkout, repo, tmp_path, monkeypatch):
    other = make_repo(tmp_path / "other", OTHER="x\n")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(other / ".git" / "objects"))
    before = picture(other)
    workspace = prepared(checkout, site(repo))
    assert Path(workspace.path, "README").exists()
    assert checkout.commit(workspace) == git(repo, "rev-parse", "main")
    assert picture(other) == before


def test_untracked_credential_files_are_brought_along(repo, tmp_path):
    (repo / ".gitignore").write_text(".env\nconfig/\n")
    (repo / ".env").write_text("KEY=secret\n")
    (repo / ".env").chmod(0o600)
    (repo / "config").mkdir()
    (repo / "config" / "master.key").write_text("k\n")
    names = (".env", "config/master.key", "not-there")
    checkout = checkout_in(tmp_path, credential_files=names)
    workspace = prepared(checkout, site(repo))
    assert Path(workspace.path, ".env").read_text() == "KEY=secret\n"
    assert Path(workspace.path, ".env").stat().st_mode & 0o777 == 0o600
    assert Path(workspace.path, "config", "master.key").exists()
    Path(workspace.path, ".env").write_text("changed by the agent\n")
    prepared(checkout, site(repo, number=2, previous=workspace))
    assert Path(workspace.path, ".env").read_text() == "changed by the agent\n"


def test_set_up_commands_run_once_in_the_new_worktree(repo, tmp_path):
    log = tmp_path / "log"
    setup = (f"pwd >> {log}", f"echo two >> {log}", 'echo "${LC_ALL-unset}" > locale')
    checkout = checkout_in(tmp_path, setup=setup)
    workspace = prepared(checkout, site(repo))
    prepared(checkout, site(repo, number=2, previous=workspace))
    assert log.read_text() == f"{workspace.root}\ntwo\n"
    mine = os.environ.get("LC_ALL", "unset")
    assert Path(workspace.root, "locale").read_text() == f"{mine}\n"


def test_a_set_up_that_fails_is_shown_with_its_words_and_undone(repo, tmp_path):
    before = picture(repo)
    checkout = checkout_in(tmp_path, setup=("true", "echo no such package >&2; exit 3", "touch no"))
    with pytest.raises(Refused, match=r"Set-up failed \(3\): echo .*: no such package$"):
        prepared(checkout, site(repo))
    assert picture(repo) == before


def test_a_set_up_that_takes_too_long_is_ended_with_all_it_started(repo, tmp_path):
    pid = tmp_path / "pid"
    setup = (f"sh -c 'echo $$ > {pid}; exec sleep 60'",)
    checkout = checkout_in(tmp_path, setup=setup, setup_timeout=0.5)
    begun = time.monotonic()
    with pytest.raises(Refused, match=r"Set-up took more than .* s: sh -c"):
        prepared(checkout, site(repo))
    assert time.monotonic() - begun < 30
    assert not is_alive(int(pid.read_text()))


def test_a_set_up_that_leaves_a_server_running_holds_up_nothing(repo, tmp_path):
    pid = tmp_path / "pid"
    checkout = checkout_in(tmp_path, setup=(f"sleep 60 & echo $! > {pid}",))
    begun = time.monotonic()
    prepared(checkout, site(repo))
    assert time.monotonic() - begun < 30
    os.kill(int(pid.read_text()), 9)


def test_a_deleted_directory_has_no_commit(checkout, repo):
    workspace = prepared(checkout, site(repo))
    assert checkout.commit(replace(workspace, path=f"{workspace.path}/gone")) == ""


def test_one_worktree_among_many_is_as_git_makes_it(tmp_path, monkeypatch):
    repo = make_repo(tmp_path / "shop", README="hello\n")
    checkout = checkout_in(tmp_path)
    by_git = prepared(checkout, site(repo, "t-1"))
    monkeypatch.setattr(make, "MANY", 1)
    ours = prepared(checkout, site(repo, "t-2"))
    gitdirs = [Path(git(Path(w.root), "rev-parse", "--absolute-git-dir")) for w in (by_git, ours)]
    files = [{p.name for p in gitdir.iterdir()} for gitdir in gitdirs]
    assert files[1] <= files[0] | {"logs"}
    assert git(Path(ours.root), "status", "--porcelain", "--branch") == "## fleet/t-2"
    assert git(repo, "worktree", "list", "--porcelain").count("branch refs/heads/fleet/") == 2
    git(repo, "worktree", "remove", ours.root)
    assert not Path(ours.root).exists()


def test_what_a_crash_left_half_made_is_discarded(checkout, repo):
    wanted = site(repo)
    planned = checkout.plan(wanted)
    checkout.prepare(planned, wanted)
    root = Path(planned.root)
    root.with_name(f"{root.name}.making").touch()
    checkout.discard(planned, task="t-1", project=str(repo))
    assert not root.exists()
    assert checkout.plan(wanted) == planned, "its branch is gone, too"


def test_work_that_somebody_left_in_a_discarded_workspace_is_kept(checkout, repo):
    wanted = site(repo)
    planned = checkout.plan(wanted)
    checkout.prepare(planned, wanted)
    (Path(planned.root) / "mine.txt").write_text("mine")
    checkout.discard(planned, task="t-1", project=str(repo))
    kept = git(repo, "for-each-ref", "--format=%(refname)", "refs/fleet/kept").split()
    assert any("mine.txt" in git(repo, "ls-tree", "--name-only", ref) for ref in kept)
