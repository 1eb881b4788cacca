"""Any branch that git allows works, none collides with another; a bad one, or odd place, makes nothing."""

import os
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fleet.adapters.git.repo import is_name
from fleet.domain.errors import BadInput, FleetError, Refused
from fleet.domain.task import Spec
from tests.contract.checkouts import (
    WHO,
    checkout_in,
    commit,
    git,
    make_repo,
    picture,
    prepared,
    site,
)

GOOD = [
    "a/b", "a-b", "v1.2", "fix/login_2", "läden/店", "🚢", "x" * 200, "a/" + "y" * 200, "A#1",
    "it's", 'say"hi"', "a$b;c", "--", "a@b", "%h", "a&b|c", "(x)", "{x}", "heads/main",
]  # fmt: skip
BAD = ["..", "a..b", "-x", "", " ", "a b", "a~1", "a:b", "a.lock", "/a", "a/", "a//b", "@", "HEAD",
       "@{-1}", "x\ny", "z" * 300, ".", ".a"]  # fmt: skip


@pytest.fixture
def repo(tmp_path):
    return make_repo(tmp_path / "shop")


def named(repo, branch, task="t-1"):
    return site(repo, task, spec=Spec(cwd=str(repo), branch=branch))


@pytest.mark.parametrize("branch", [b for b in GOOD if not b.startswith("-")])
def test_a_name_that_git_allows_is_had(checkout, repo, branch):
    place = prepared(checkout, named(repo, branch))
    assert git(Path(place.root), "symbolic-ref", "HEAD") == f"refs/heads/{branch}"
    commit(Path(place.root), "work", done="x\n")
    done = checkout.remove(place, task="t-1", delete_branch=True)
    assert (done.removed, done.branch_deleted, done.kept) == (True, True, ("t-1/1",))


@pytest.mark.parametrize("branch", [b for b in BAD if b])
def test_a_name_that_git_does_not_allow_is_refused_before_anything_is_made(
    checkout, repo, branch, tmp_path
):
    before = picture(repo)
    with pytest.raises(BadInput) as caught:
        checkout.plan(named(repo, branch))
    assert caught.value.fix
    assert picture(repo) == before
    assert not (tmp_path / "worktrees").exists()


def test_we_know_a_name_for_a_branch_exactly_as_git_does(repo):
    rng = random.Random(7)
    parts = ["a", "B", ".", "..", "/", "@", "{", "}", "-", "~", ":", "*", "[", "]", "\\", " ", "!",
             ".lock", "lock", "é", "HEAD", "\x7f", "\t"]  # fmt: skip
    odd = {"".join(rng.choices(parts, k=rng.randint(1, 4))) for _ in range(150)}
    for name in sorted({*odd, *BAD, *GOOD}):
        argv = ["git", "check-ref-format", "--branch", name]
        asked = subprocess.run(argv, cwd=repo, capture_output=True, check=False)
        allowed = asked.returncode == 0 and asked.stdout == f"{name}\n".encode()
        assert is_name(name) == (allowed and name not in {"@", "HEAD"}), name


def test_all_of_them_at_once_have_places_of_their_own(checkout, repo):
    wanted = [b for b in GOOD if not b.startswith("-")] + ["A-b", "a_b"]
    made = [prepared(checkout, named(repo, b, "t-1")) for b in wanted]
    assert len({w.root.lower() for w in made}) == len(wanted)


@pytest.mark.parametrize(("there", "wanted"), [("a", "a/b"), ("a/b", "a"), ("x/y/z", "x")])
def test_a_branch_in_the_way_is_named(checkout, repo, there, wanted, tmp_path):
    git(repo, "branch", there)
    before = picture(repo)
    with pytest.raises(Refused, match=f"There is a branch {there}, so git cannot") as caught:
        checkout.plan(named(repo, wanted))
    assert caught.value.code == "branch_in_the_way"
    assert picture(repo) == before


def test_a_pattern_says_which_names_are_taken(repo, tmp_path):
    checkout = checkout_in(tmp_path, branch_pattern=r"(fix|feature)/[a-z-]+")
    assert prepared(checkout, named(repo, "fix/login")).branch == "fix/login"
    for bad in ("login", "fix/login/2", "xfix/login"):
        with pytest.raises(BadInput, match=r"does not match workspace\.branch_pattern"):
            checkout.plan(named(repo, bad))


def test_two_projects_of_one_name_and_one_branch_do_not_meet(checkout, tmp_path):
    repos = [make_repo(tmp_path / where / "shop") for where in ("a", "b")]
    places = [prepared(checkout, named(repo, "fix")) for repo in repos]
    assert len({w.root for w in places}) == 2


def test_thirty_two_are_made_and_commit_at_once(checkout, repo):
    stop = repo / "stop"

    def busy():
        """Somebody else who writes the repository's settings all the time."""
        while not stop.exists():
            git(repo, "config", "fleet.busy", "1", check=False)

    with ThreadPoolExecutor(33) as pool:
        noise = pool.submit(busy)
        places = list(pool.map(lambda n: prepared(checkout, site(repo, f"t-{n}")), range(32)))
        tips = list(pool.map(lambda w: commit(Path(w.root), "work", mine=w.branch), places))
        done = list(
            pool.map(lambda w: checkout.remove(w, task="t", delete_branch=True), places[:16])
        )
        stop.touch()
        noise.result()
    assert len(set(tips)) == 32
    assert all(d.removed and d.branch_deleted and d.kept for d in done)
    assert git(repo, "worktree", "list", "--porcelain").count("worktree ") == 17
    assert git(repo, "fsck", "--no-dangling") == ""


def test_a_bare_repository_has_worktrees_too(checkout, repo, tmp_path):
    bare = tmp_path / "bare.git"
    subprocess.run(["git", *WHO, "clone", "-q", "--bare", str(repo), str(bare)], check=True)
    place = prepared(checkout, site(bare))
    assert Path(place.path, "README").exists()
    commit(Path(place.root), "work", done="x\n")
    done = checkout.remove(place, task="t-1", project=str(bare), delete_branch=True)
    assert (done.removed, done.kept) == (True, ("t-1/1",))


def test_inside_the_git_directory_of_a_checkout_it_is_refused(checkout, repo):
    with pytest.raises(FleetError):
        checkout.plan(site(repo / ".git" / "refs"))


@pytest.mark.skipif(not os.environ.get("LARGE"), reason="takes seconds: LARGE=1")
def test_a_repository_of_twenty_thousand_files(checkout, tmp_path):
    files = {f"d{n % 200}__f{n}": f"{n}\n" for n in range(20_000)}
    repo = make_repo(tmp_path / "large", **files)
    place = prepared(checkout, site(repo))
    (Path(place.root) / "d1" / "f1").write_text("changed\n")
    assert checkout.remove(place, task="t-1", delete_branch=True).kept == ("t-1/1",)


def test_files_that_git_is_told_to_have_elsewhere_are_refused_with_the_way_out(
    checkout, repo, tmp_path
):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    git(repo, "config", "core.worktree", str(elsewhere))
    with pytest.raises(Refused, match=r"core\.worktree") as error:
        checkout.plan(site(repo))
    assert "git config --unset core.worktree" in error.value.fix
