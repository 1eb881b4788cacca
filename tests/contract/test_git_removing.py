"""A workspace goes only when all that is in it is somewhere else, whenever its remover is killed."""

import os
import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from fleet.adapters.git.kept.refs import find_kept, list_kept
from fleet.adapters.git.kept.restore import restore
from fleet.adapters.git.repo import Repo
from fleet.domain.errors import Refused, Unavailable
from fleet.domain.run import Workspace
from tests.contract.checkouts import checkout_in, commit, git, make_repo, picture, prepared, site
from tests.contract.test_git_crashes import in_a_child, kill
from tests.contract.trees import files_of
from tests.wait import until

ROUNDS = int(os.environ.get("ROUNDS", "10"))
SEED = int(os.environ.get("SEED", time.time_ns() % 100_000))


@pytest.fixture
def repo(tmp_path):
    return make_repo(tmp_path / "shop", README="hello\n")


def left(repo):
    """Worktrees and branches, but the first of each."""
    listed = git(repo, "worktree", "list", "--porcelain").count("worktree ")
    return listed - 1, git(repo, "branch", "--format=%(refname:short)").split()


def test_a_workspace_in_which_nothing_was_done_leaves_nothing(checkout, repo):
    place = prepared(checkout, site(repo))
    done = checkout.remove(place, task="t-1", delete_branch=True)
    assert (done.removed, done.branch_deleted, done.kept, done.said) == (True, True, (), ())
    assert not Path(place.root).exists()
    assert left(repo) == (0, ["main"])
    assert list(Path(place.root).parent.iterdir()) == []


def test_all_work_is_kept_before_it_goes(checkout, repo, tmp_path):
    place = prepared(checkout, site(repo))
    root = Path(place.root)
    commit(root, "work", done="x\n")
    (root / "half").write_text("uncommitted\n")
    before = files_of(root)
    done = checkout.remove(place, task="t-1", delete_branch=True)
    assert (done.kept, done.branch_deleted) == (("t-1/1",), True)
    restore(Repo.of(repo), find_kept(Repo.of(repo), "t-1"), into=tmp_path / "back")
    assert files_of(tmp_path / "back") == before


@pytest.mark.parametrize("pool", [0, 1])
def test_what_is_written_after_it_was_kept_and_before_it_goes_is_kept_too(repo, tmp_path, pool):
    checkout = checkout_in(tmp_path, pool=pool)
    place = prepared(checkout, site(repo))
    root = Path(place.root)
    (root / "half").write_text("first\n")

    def write_once_more() -> None:
        assert [k.id for k in list_kept(Repo.of(repo))] == ["t-1/1"]
        (root / "half").write_text("second\n")
        commit(root, "late", late="x\n")

    just_before_it_moves(root, write_once_more)
    done = checkout.remove(place, task="t-1", delete_branch=True)
    assert (done.kept, done.parked) == (("t-1/1", "t-1/2"), bool(pool))
    restore(Repo.of(repo), find_kept(Repo.of(repo), "t-1/2"), into=tmp_path / "back")
    assert (tmp_path / "back" / "half").read_text() == "second\n"
    assert (tmp_path / "back" / "late").exists()


def just_before_it_moves(root: Path, act) -> None:
    """Python reports a rename before it happens; the report cannot be taken back, so it is once."""
    todo = [act]

    def heard(event: str, args: tuple) -> None:
        if event == "os.rename" and todo and str(args[0]) == str(root):
            todo.pop()()

    sys.addaudithook(heard)


def test_the_branch_stays_unless_it_is_asked_for(checkout, repo):
    place = prepared(checkout, site(repo))
    tip = commit(Path(place.root), "work", done="x\n")
    done = checkout.remove(place, task="t-1")
    assert (done.removed, done.branch_deleted) == (True, False)
    assert git(repo, "rev-parse", place.branch) == tip


def test_said_again_it_changes_nothing(checkout, repo):
    place = prepared(checkout, site(repo))
    (Path(place.root) / "half").write_text("uncommitted\n")
    checkout.remove(place, task="t-1", project=str(repo), delete_branch=True)
    before = picture(repo)
    again = checkout.remove(place, task="t-1", project=str(repo), delete_branch=True)
    assert (again.removed, again.branch_deleted) == (False, False)
    assert picture(repo) == before


def test_a_branch_whose_worktree_somebody_removed_is_deleted_only_when_its_work_is_elsewhere(
    checkout, repo
):
    place = prepared(checkout, site(repo))
    commit(Path(place.root), "work", done="x\n")
    subprocess.run(["rm", "-rf", place.root], check=True)
    done = checkout.remove(place, task="t-1", project=str(repo), delete_branch=True)
    assert not done.branch_deleted
    assert done.said == (f"{place.branch} has commits that are nowhere else, so it stays.",)
    git(repo, "merge", "--quiet", place.branch)
    assert checkout.remove(place, task="t-1", project=str(repo), delete_branch=True).branch_deleted
    assert left(repo) == (0, ["main"])


def test_only_what_we_made_is_removed(checkout, repo, tmp_path):
    place = prepared(checkout, site(repo))
    theirs = tmp_path / "theirs"
    git(repo, "worktree", "add", "--quiet", "-b", "theirs", str(theirs))
    inside = Path(place.root).parent / "by hand"
    inside.mkdir()
    (inside / "precious").touch()
    link = Path(place.root).parent / "link"
    link.symlink_to(repo)
    wrong = [
        Workspace(str(repo)),
        Workspace(str(repo), str(repo), "main", made=True),
        Workspace(str(theirs), str(theirs), "theirs", made=True),
        Workspace(str(inside), str(inside), "x", made=True),
        Workspace(str(link), str(link), "x", made=True),
        Workspace("..", "..", "x", made=True),
        Workspace(place.root, f"{place.root}/..", "x", made=True),
        Workspace(place.root, f"{place.root}/../../..", "x", made=True),
        Workspace(place.root, str(Path(place.root).parent), "x", made=True),
        Workspace(place.root, str(tmp_path / "worktrees"), "x", made=True),
        replace(place, made=False),
    ]
    before = picture(repo)
    for one in wrong:
        with pytest.raises(Refused):
            checkout.remove(one, task="t-1", delete_branch=True)
    assert picture(repo) == before
    assert (inside / "precious").exists()
    assert (repo / "README").exists()


def test_a_worktree_that_git_no_longer_knows_stays(checkout, repo):
    place = prepared(checkout, site(repo))
    (Path(place.root) / "precious").touch()
    moved = Path(place.root).with_name("away")
    Path(place.root).rename(moved)
    git(repo, "worktree", "prune")
    moved.rename(place.root)
    with pytest.raises(Refused, match="not a worktree that git knows"):
        checkout.remove(place, task="t-1")
    assert (Path(place.root) / "precious").exists()
    assert not Path(f"{place.root}.removing").exists(), "a note, where nothing was begun"


def test_a_program_that_goes_on_writing_for_a_moment_is_no_obstacle(checkout, repo):
    place = prepared(checkout, site(repo))
    busy = (
        "import os, time\n"
        "end = time.time() + 1.5\n"
        "n = 0\n"
        "while time.time() < end:\n"
        "    n += 1\n"
        "    try:\n"
        "        os.makedirs('busy', exist_ok=True)\n"
        "        open(f'busy/{n}', 'w').close()\n"
        "    except OSError:\n"
        "        pass\n"
        "    time.sleep(0.001)\n"
    )
    writer = subprocess.Popen([sys.executable, "-c", busy], cwd=place.root)
    try:
        until((Path(place.root) / "busy").exists)
        done = checkout.remove(place, task="t-1", delete_branch=True)
    finally:
        writer.wait()
    assert done.removed
    assert done.kept
    assert not Path(place.root).exists()
    assert left(repo) == (0, ["main"])


def test_directories_that_may_not_be_written_go_too(checkout, repo):
    place = prepared(checkout, site(repo))
    git(Path(place.root), "config", "core.excludesFile", "/dev/null")
    cache = Path(place.root) / "cache"
    cache.mkdir()
    (cache / "module").touch()
    cache.chmod(0o500)
    assert checkout.remove(place, task="t-1").removed
    assert not Path(place.root).exists()


def test_a_worktree_with_submodules_goes_too(tmp_path, repo):
    library = make_repo(tmp_path / "library", lib="1\n")
    allow = ("-c", "protocol.file.allow=always")
    git(repo, *allow, "submodule", "--quiet", "add", str(library), "lib")
    commit(repo, "with a library")
    checkout = checkout_in(tmp_path, pool=2)
    place = prepared(checkout, site(repo))
    git(Path(place.root), *allow, "submodule", "--quiet", "update", "--init")
    commit(Path(place.root) / "lib", "work", lib="2\n")
    done = checkout.remove(place, task="t-1", delete_branch=True)
    assert (done.removed, done.parked, len(done.kept)) == (True, False, 1)
    ((name, inner),) = list_kept(Repo.of(repo))[0].snapshot.nested
    assert (name, git(repo, "show", f"{inner}:lib")) == ("lib", "2")


@pytest.mark.parametrize("pool", [0, 3])
def test_whenever_its_remover_was_killed_nothing_is_lost_and_the_next_one_finishes(
    tmp_path, pool, capsys
):
    rng = random.Random(SEED)
    files = {f"d{n % 20}__f{n}": f"{n}\n" * 40 for n in range(300)}
    repo = make_repo(tmp_path / "shop", **files)
    checkout = checkout_in(tmp_path, pool=pool)
    takes = 0.4
    for number in range(ROUNDS):
        task = f"t-{number}"
        place = prepared(checkout, site(repo, task))
        root = Path(place.root)
        commit(root, "work", **{f"of-{number}": "x\n"})
        (root / "half").write_text(f"{number}\n")
        (root / "d1" / "f1").unlink()
        before = files_of(root)
        begun = time.monotonic()
        child = in_a_child(lambda p=place, t=task: checkout.remove(p, task=t, delete_branch=True))
        time.sleep(rng.uniform(0, takes))
        kill(child)
        time.sleep(0.05)  # its git may still be at it
        until(  # a program that it was just starting has its lock until it has begun
            lambda p=place, t=task: checkout.remove(
                p, task=t, project=str(repo), delete_branch=True
            ),
            errors=(Unavailable,),
        )
        takes = max(takes, (time.monotonic() - begun) / 2) if number == 0 else takes
        try:
            gone(repo, place, before, tmp_path / f"back-{number}")
        except AssertionError as error:
            raise AssertionError(f"SEED={SEED}, round {number}: {error}") from error
    parked = list((tmp_path / "worktrees" / "pool").glob("*/*.parked"))
    assert len(parked) <= pool
    assert left(repo)[0] == len(parked) + ROUNDS  # those that were restored
    with capsys.disabled():
        print(f"\nSEED={SEED}: {ROUNDS} times killed within {takes:.2f} s, {len(parked)} parked")


def gone(repo, place, before, back):
    root = Path(place.root)
    assert [p.name for p in root.parent.iterdir()] == []
    assert git(repo, "rev-parse", "--verify", "--quiet", place.branch, check=False) == ""
    found = list_kept(Repo.of(repo), root.name.rpartition("-")[0])
    assert found, "nothing was kept"
    restored = restore(Repo.of(repo), found[0], branch=f"b/{back.name}", into=back)
    assert files_of(Path(restored.path)) == before
