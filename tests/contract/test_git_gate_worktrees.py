"""The worktrees in which gates test what is about to land."""

from __future__ import annotations

from fleet.adapters.git.checkout import WorkspaceRules
from fleet.adapters.git.landing.gate_worktrees import GitGateWorktrees
from fleet.adapters.git.repo import Repo
from tests.contract.checkouts import commit, git, make_repo


def test_a_gate_sees_the_part_of_the_repository_that_the_checkout_has_now(tmp_path):
    repo = make_repo(tmp_path / "shop", a__file="1\n", b__file="1\n", c__file="1\n")
    rules = WorkspaceRules()
    house = GitGateWorktrees(
        Repo.of(repo), tmp_path / "gates", rules, within="", log=tmp_path / "log"
    )
    seen = []
    for number, words in enumerate([(), ("set", "a"), ("set", "a", "b"), ("disable",)]):
        if words:
            git(repo, "sparse-checkout", *words)
        for again in (1, 2):
            root = house.prepare(f"land-{number}.{again}", commit(repo, "more"))
            seen.append("".join(sorted(path.name for path in root.iterdir() if path.is_dir())))
            house.leave(f"land-{number}.{again}")
    assert seen == ["abc", "abc", "a", "a", "ab", "ab", "abc", "abc"]
    assert len(git(repo, "worktree", "list").splitlines()) == 2
