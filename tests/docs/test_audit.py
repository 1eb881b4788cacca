"""`make audit` never says that all is well when it could not look."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def script():
    path = Path(__file__).parents[2] / "scripts" / "audit.py"
    spec = spec_from_file_location("audit", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GOOD = {"name": "a", "version": "1", "vulns": []}
BAD = {"name": "b", "version": "2", "vulns": [{"id": "CVE-1"}]}
UNKNOWN = {"name": "c", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("packages", "passes", "words"),
    [
        ([GOOD], True, "ok, 1 packages"),
        ([GOOD, BAD], False, "b 2: CVE-1"),
        ([GOOD, UNKNOWN], True, "skipped: nothing is known of 1 of 2"),
        ([BAD, UNKNOWN], False, "skipped"),
    ],
)
def test_what_could_not_be_looked_at_is_named(script, capsys, packages, passes, words):
    assert script.judged(packages) is passes
    printed = capsys.readouterr().out
    assert words in printed
    assert ("ok" in printed) is (packages == [GOOD])
