"""Used worktrees wait for the next task, clean, and nobody finds another's work in one."""

import json
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fleet.domain.task import Spec
from tests.contract.checkouts import checkout_in, commit, git, make_repo, prepared, site
from tests.contract.test_git_crashes import in_a_child, kill

ROUNDS = int(os.environ.get("ROUNDS", "8"))
SEED = int(os.environ.get("SEED", time.time_ns() % 100_000))


@pytest.fixture
def repo(tmp_path):
    return make_repo(
        tmp_path / "shop", README="hello\n", src__main="1\n", **{".gitignore": "*.o\n"}
    )


@pytest.fixture
def checkout(tmp_path):
    return checkout_in(tmp_path, pool=2)


def parked(tmp_path):
    return sorted((tmp_path / "worktrees" / "pool").glob("*/*.parked"))


def used(checkout, repo, task="t-1"):
    """A workspace that has been used and given back: its inode tells it from others."""
    place = prepared(checkout, site(repo, task))
    (Path(place.root) / "cache.o").write_text("built\n")
    inode = Path(place.root).stat().st_ino
    assert checkout.remove(place, task=task, delete_branch=True).parked
    return inode


def test_a_used_worktree_is_taken_again_on_a_new_branch(checkout, repo, tmp_path):
    inode = used(checkout, repo)
    assert len(parked(tmp_path)) == 1
    place = prepared(checkout, site(repo, "t-2"))
    root = Path(place.root)
    assert root.stat().st_ino == inode
    assert git(root, "rev-parse", "--abbrev-ref", "HEAD") == "fleet/t-2"
    assert git(root, "status", "--porcelain") == ""
    assert git(repo, "config", "--get-regexp", "branch.fleet", check=False) == ""
    assert parked(tmp_path) == []
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 2


def test_it_is_brought_to_its_base_whatever_it_was_at(checkout, repo):
    first = git(repo, "rev-parse", "HEAD")
    used(checkout, repo)
    second = commit(repo, "second", README="changed\n", new__file="2\n")
    git(repo, "rm", "-q", "src/main")
    third = commit(repo, "third")
    for number, base in enumerate((second, third, first, third), 2):
        place = prepared(checkout, site(repo, f"t-{number}", spec=Spec(cwd=str(repo), base=base)))
        root = Path(place.root)
        assert git(root, "rev-parse", "HEAD") == base
        assert git(root, "status", "--porcelain") == ""
        assert (root / "src" / "main").exists() == (base != third)
        checkout.remove(place, task=f"t-{number}", delete_branch=True)


@pytest.mark.parametrize(("ignored", "stays"), [("keep", True), ("clean", False)])
def test_ignored_files_stay_or_go_as_the_settings_say(repo, tmp_path, ignored, stays):
    checkout = checkout_in(tmp_path, pool=2, pool_ignored=ignored)
    used(checkout, repo)
    place = prepared(checkout, site(repo, "t-2"))
    assert (Path(place.root) / "cache.o").exists() == stays


def test_a_file_that_the_new_base_does_not_ignore_does_not_come_along(checkout, repo):
    used(checkout, repo)
    commit(repo, "ignore nothing", **{".gitignore": ""})
    place = prepared(checkout, site(repo, "t-2"))
    assert git(Path(place.root), "status", "--porcelain") == ""
    assert not (Path(place.root) / "cache.o").exists()


def test_an_earlier_tasks_work_is_kept_and_not_found_by_the_next(checkout, repo):
    place = prepared(checkout, site(repo))
    root = Path(place.root)
    commit(root, "work", done="x\n")
    (root / "README").write_text("half done\n")
    (root / "new").write_text("untracked\n")
    git(root, "stash", "list")
    done = checkout.remove(place, task="t-1", delete_branch=True)
    assert (done.parked, done.kept, done.branch_deleted) == (True, ("t-1/1",), True)
    after = Path(prepared(checkout, site(repo, "t-2")).root)
    assert sorted(p.name for p in after.iterdir()) == [".git", ".gitignore", "README", "src"]
    assert (after / "README").read_text() == "hello\n"


def test_a_parked_tree_that_somebody_wrote_into_is_left_alone(checkout, repo, tmp_path):
    used(checkout, repo)
    (record,) = parked(tmp_path)
    (record.with_suffix("") / "precious").write_text("mine\n")
    place = prepared(checkout, site(repo, "t-2"))
    assert not (Path(place.root) / "precious").exists()
    assert (record.with_suffix("") / "precious").read_text() == "mine\n"
    assert parked(tmp_path) == []


def test_a_full_pool_and_one_that_is_off_take_no_more(repo, tmp_path):
    for size, expected in ((0, 0), (2, 2)):
        place = tmp_path / str(size)
        checkout = checkout_in(place, pool=size)
        made = [prepared(checkout, site(repo, f"t-{size}{n}")) for n in range(3)]
        for workspace in made:
            checkout.remove(workspace, task="t-1", delete_branch=True)
        assert len(parked(place)) == expected
        assert not any(Path(w.root).exists() for w in made)


def test_a_worktree_with_settings_of_its_own_is_not_handed_on(checkout, repo, tmp_path):
    place = prepared(checkout, site(repo))
    git(Path(place.root), "sparse-checkout", "set", "src")
    assert checkout.remove(place, task="t-1", delete_branch=True).removed
    place = prepared(checkout, site(repo, "t-2"))
    git(Path(place.root), "update-index", "--skip-worktree", "README")
    assert checkout.remove(place, task="t-2", delete_branch=True).removed
    assert parked(tmp_path) == []


def test_private_files_are_fresh_in_a_used_worktree(repo, tmp_path):
    (repo / ".gitignore").write_text(".env\n")
    commit(repo, "ignore")
    (repo / ".env").write_text("KEY=1\n")
    checkout = checkout_in(tmp_path, pool=2, credential_files=(".env",))
    place = prepared(checkout, site(repo))
    (Path(place.root) / ".env").write_text("changed by an agent\n")
    checkout.remove(place, task="t-1", delete_branch=True)
    again = prepared(checkout, site(repo, "t-2"))
    assert (Path(again.root) / ".env").read_text() == "KEY=1\n"


def test_many_at_once_never_get_the_same(repo, tmp_path):
    checkout = checkout_in(tmp_path, pool=6)
    made = [prepared(checkout, site(repo, f"t-{n}")) for n in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda w: checkout.remove(w, task="t", delete_branch=True), made))
        assert len(parked(tmp_path)) == 6
        again = list(pool.map(lambda n: prepared(checkout, site(repo, f"t-1{n}")), range(8)))
    assert len({Path(w.root).stat().st_ino for w in again}) == 8
    assert all(git(Path(w.root), "status", "--porcelain") == "" for w in again)


def test_many_that_are_given_back_at_once_do_not_fill_it_beyond_its_size(repo, tmp_path):
    checkout = checkout_in(tmp_path, pool=1)
    made = [prepared(checkout, site(repo, f"t-{n}")) for n in range(6)]
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda w: checkout.remove(w, task="t", delete_branch=True), made))
    assert len(parked(tmp_path)) == 1
    assert sorted((d.parked, d.removed) for d in done) == [(False, True)] * 5 + [(True, False)]
    assert not any(Path(w.root).exists() for w in made)
    assert len(git(repo, "worktree", "list").splitlines()) == 2


def test_whoever_is_killed_while_taking_leaves_nothing_behind(tmp_path, capsys):
    rng = random.Random(SEED)
    files = {f"d{n % 20}__f{n}": f"{n}\n" * 40 for n in range(300)}
    repo = make_repo(tmp_path / "shop", **files)
    checkout = checkout_in(tmp_path, pool=2)
    for number in range(ROUNDS):
        used(checkout, repo, f"t-1{number}")
        commit(repo, f"change {number}", d1__f1=f"{number}\n")
        wanted = site(repo, f"t-2{number}")
        planned = checkout.plan(wanted)
        child = in_a_child(lambda p=planned, w=wanted: checkout.prepare(p, w))
        time.sleep(rng.uniform(0, 0.12))
        kill(child)
        checkout.prepare(planned, wanted)
        root = Path(planned.root)
        told = f"SEED={SEED}, round {number}"
        assert git(root, "status", "--porcelain") in {"", "?? cache.o"}, told
        assert git(root, "rev-parse", "HEAD") == git(repo, "rev-parse", "main"), told
        assert git(root, "rev-parse", "--abbrev-ref", "HEAD") == planned.branch, told
        prepared(checkout, site(repo, f"t-3{number}"))  # it tidies what the killed one left
        listed = git(repo, "worktree", "list", "--porcelain").split("\n\n")
        there = [b for b in listed if Path(b.splitlines()[0][9:]).exists()]
        assert len(there) == len(listed), told
        for record in parked(tmp_path):
            assert Path(json.loads(record.read_text())["gitdir"]).is_dir(), told
    with capsys.disabled():
        print(f"\nSEED={SEED}: {ROUNDS} killed while taking")


def test_the_pool_is_trimmed_to_its_size_and_to_what_was_used_lately(checkout, repo, tmp_path):
    first, second = (prepared(checkout, site(repo, name)) for name in ("t-1", "t-2"))
    for place, name in ((first, "t-1"), (second, "t-2")):
        assert checkout.remove(place, task=name, delete_branch=True).parked
    old, new = sorted(parked(tmp_path), key=lambda record: record.stat().st_mtime_ns)
    os.utime(old, (100, 100))
    assert checkout.trim_pool(repo, 99) == []
    assert checkout.trim_pool(repo, 200, dry_run=True) == [old.with_suffix("")]
    assert len(parked(tmp_path)) == 2
    assert checkout.trim_pool(repo, 200) == [old.with_suffix("")]
    assert parked(tmp_path) == [new]
    assert checkout_in(tmp_path, pool=0).trim_pool(repo, 0) == [new.with_suffix("")]
    assert list(new.parent.iterdir()) == []
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 1


def test_a_pooled_worktree_in_which_somebody_works_is_not_removed(checkout, repo, tmp_path):
    used(checkout, repo)
    (record,) = parked(tmp_path)
    (record.with_suffix("") / "mine.txt").write_text("Work\n")
    assert checkout_in(tmp_path, pool=0).trim_pool(repo, 0) == []
    assert (record.with_suffix("") / "mine.txt").read_text() == "Work\n"
