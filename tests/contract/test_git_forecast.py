"""Which merges git is not asked to try: never one that conflicts."""

from __future__ import annotations

import random
import subprocess
from itertools import combinations

import pytest

from fleet.adapters.git.diff.apart import conflicting
from fleet.adapters.git.diff.forecast import try_merges
from fleet.adapters.git.diff.history import History
from fleet.adapters.git.repo import Repo
from tests.contract.checkouts import git, make_repo

FILES = [f"{folder}{name}" for folder in ("", "a/", "a/b/", "c/") for name in ("1", "2", "ü 3")]
TEXT = "".join(f"line {n}\n" for n in range(12))


def apart(repo: Repo, tips: dict[str, str]) -> tuple[set, set]:
    """The pairs of these tips that are not tried, and those that conflict when git tries them."""
    pairs = list(combinations(tips.values(), 2))
    history = History(repo, tips.values())
    tried = set(conflicting(repo, history, pairs))
    return set(pairs) - tried, {pair for pair, files in try_merges(repo, pairs) if files}


def change(files: dict[str, str], how: random.Random, number: int) -> None:
    """One change as people make them: to a file, of a name, of a folder's name."""
    name = how.choice(sorted(files))
    match how.randrange(6):
        case 0:
            files[name] = files[name].replace(f"line {how.randrange(12)}\n", f"mine {number}\n")
        case 1:
            del files[name]
        case 2:
            files[f"{how.choice(['', 'a/', 'a/b/', 'c/', 'c/d/'])}new{number}"] = f"{number}\n"
        case 3:
            files[f"{name}.moved"] = files.pop(name)
        case 4:
            old, new = how.choice([("a/b/", "a/z/"), ("c/", "y/"), ("a/", "x/")])
            for one in [one for one in files if one.startswith(old)]:
                files[new + one.removeprefix(old)] = files.pop(one)
        case 5:  # a folder where there was a file
            text = files.pop(name)
            files[f"{name}/inside"] = text


def commit_of(top, name: str, files: dict[str, str], parent: str) -> str:
    who = "committer x <x@localhost> 1700000000 +0000\ndata 1\nx\n"
    lines = [f"commit refs/heads/{name}\n{who}from {parent}\ndeleteall\n"]
    for path, text in files.items():
        quoted = path.replace("\n", "\\n")
        lines.append(f'M 100644 inline "{quoted}"\ndata {len(text.encode())}\n{text}\n')
    orders = "".join(lines).encode()
    subprocess.run(["git", "fast-import", "--quiet", "--force"], cwd=top, input=orders, check=True)
    return git(top, "rev-parse", f"refs/heads/{name}")


@pytest.mark.parametrize("seed", range(4))
def test_no_merge_that_conflicts_is_left_untried(tmp_path, seed):
    top, how = make_repo(tmp_path / "shop"), random.Random(seed)
    base = {name: name + TEXT for name in FILES}
    start = commit_of(top, "start", base, git(top, "rev-parse", "HEAD"))
    tips = {}
    for number in range(24):
        files = dict(base)
        for _ in range(1 + number % 2):
            change(files, how, number)
        tips[f"b{number}"] = commit_of(top, f"b{number}", files, start)
    untried, conflicts = apart(Repo.of(top), tips)
    assert conflicts, "this test is about some that conflict"
    assert not untried & conflicts
    assert len(untried) > len(tips)  # it spares most merges of people who work in other files


def renamed(old: str, new: str) -> dict[str, str]:
    return {name.replace(old, new): name + TEXT for name in FILES}


BASE = renamed("", "")
MEET = {
    "a file in a folder that the other renamed": (
        renamed("c/", "y/"),
        {**BASE, "c/new": "1\n"},
    ),
    "a folder where the other has a file": ({**BASE, "new": "1\n"}, {**BASE, "new/x": "1\n"}),
    "the same file": ({**BASE, "1": "1\n"}, {**BASE, "1": "2\n"}),
    "a file with a line feed in its name": ({**BASE, "x\n": "1\n"}, {**BASE, "x\n/y": "2\n"}),
}


@pytest.mark.parametrize("what", MEET)
def test_what_meets_without_a_common_name_is_tried(tmp_path, what):
    top = make_repo(tmp_path / "shop")
    start = commit_of(top, "start", BASE, git(top, "rev-parse", "HEAD"))
    tips = {n: commit_of(top, n, MEET[what][n == "b"], start) for n in ("a", "b")}
    untried, conflicts = apart(Repo.of(top), tips)
    assert (len(untried), len(conflicts)) == (0, 1)


def test_one_that_has_all_of_the_other_is_not_tried_and_one_that_met_twice_is(tmp_path):
    top = make_repo(tmp_path / "shop")
    base, tree = git(top, "rev-parse", "HEAD"), git(top, "rev-parse", "HEAD^{tree}")

    def made(name: str, *parents: str) -> str:
        words = [word for parent in parents for word in ("-p", parent)]
        return git(top, "commit-tree", tree, *words, "-m", name)

    one, other = made("one", base), made("other", base)
    left, right = made("left", one, other), made("right", other, one)
    history = History(Repo.of(top), [one, left, right])
    assert conflicting(Repo.of(top), history, [(one, left), (left, right)]) == [(left, right)]
