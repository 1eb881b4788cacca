from __future__ import annotations

import pytest

from fleet.domain.landing.landing import Train, blocker_of


@pytest.mark.parametrize(("remote", "branch"), [("", "main"), ("origin", "origin/main")])
def test_what_is_paused_is_named_as_git_calls_it(remote, branch):
    train = Train("x", 0, "/repo", "main", paused="ada", remote=remote)
    assert blocker_of(train) == f"ada paused {branch}."
