"""The eight tasks of the comparison: a right answer passes all tests, a near miss does not."""

from __future__ import annotations

import os

import pytest

from fleet.adapters.evals.execute import Sandbox
from fleet.config.suite import FRONTIER, read_suite
from fleet.domain.evals.grade import ModelReply, grade
from tests.eval_student import SLIPS, SOLUTIONS

CASES = {case.name: case for case in read_suite(FRONTIER)}


def graded(name, code):
    check = CASES[name].items[0].check
    return grade(check, ModelReply(f"```python\n{code}```"), Sandbox(os.environ).execute)


@pytest.mark.parametrize("name", CASES)
def test_a_right_answer_passes_every_hidden_test_and_a_slip_is_noticed(name):
    code = (SOLUTIONS / f"{name}.py").read_text()
    assert graded(name, code) == (1.0, "")
    right, wrong = SLIPS[name]
    assert right in code
    slipped = graded(name, code.replace(right, wrong, 1))
    assert 0 < slipped.score < 1, slipped
