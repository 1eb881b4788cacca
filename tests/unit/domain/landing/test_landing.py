from __future__ import annotations

import pytest

from fleet.domain.landing.landing import GateResult, Train, blocker_of, with_pass, with_report


@pytest.mark.parametrize(("remote", "branch"), [("", "main"), ("origin", "origin/main")])
def test_what_is_paused_is_named_as_git_calls_it(remote, branch):
    train = Train("x", 0, "/repo", "main", paused="ada", remote=remote)
    assert blocker_of(train) == f"ada paused {branch}."


def test_only_what_a_gate_said_with_a_report_decides_a_race():
    for unreported in (GateResult("x", 0, passed=1), GateResult("x", 0, failed=2)):
        known = with_report(unreported)
        assert (known.passed, known.failed, known.ended) == (0, 0, unreported.ended)
    flaky = GateResult("x", 0, failed=1, reported=True)
    assert with_report(flaky) == flaky
    assert with_report(with_pass(flaky, at=1)).passed == 0
    tested = GateResult("x", 0, passed=1, reported=True, tests={"one": "passed"})
    assert with_report(with_pass(tested, at=1)).tests == tested.tests
