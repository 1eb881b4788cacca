"""What `COVERAGE=1 make test` makes of the coverage it measured."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.docs.tree import TOP


@pytest.fixture
def summary(tmp_path):
    def run(covered: int, *words: str) -> subprocess.CompletedProcess:
        counted = {"num_statements": 900, "num_branches": 100, "covered_branches": 0}
        files = {"src/fleet/domain/task.py": {"summary": counted | {"covered_lines": covered}}}
        report = tmp_path / "coverage.json"
        report.write_text(json.dumps({"files": files}))
        argv = [sys.executable, TOP / "scripts/test_summary.py", tmp_path / "none.xml", report]
        return subprocess.run([*argv, *words], capture_output=True, text=True, check=False)

    return run


def test_a_whole_run_that_covers_too_little_fails(summary):
    done = summary(100, "--whole")
    assert done.returncode == 1
    assert "10.0%" in done.stdout
    assert "Less is covered than" in done.stderr


def test_some_of_the_tests_may_cover_little(summary):
    assert summary(100).returncode == 0


def test_a_whole_run_that_covers_enough_passes(summary):
    assert summary(900, "--whole").returncode == 0
