from __future__ import annotations

from contextlib import suppress

import pytest

from fleet.domain.evals.builtin import (
    BROKEN_PAGES,
    MEDIAN,
    MEDIAN_TESTS,
    PAGES_TESTS,
    SOUND_PAGES,
    builtin,
)
from fleet.domain.evals.case import JOBS, JOBS_OF, Case, CaseCall, EvalItem, Number, is_for, jobs_of
from fleet.domain.evals.grade import ModelReply, Ran, grade, right_call
from fleet.domain.evals.grade import ToolCall as Called
from tests.eval_student import answer, without


def execute(program):
    """In this process: the code is our own."""
    names: dict = {}
    with suppress(Exception):
        exec(f"{program.code}\n{program.tests}", names)
    tests = [each for name, each in names.items() if name.startswith("test_")]
    return Ran(sum(passes(test) for test in tests), len(tests))


def passes(test) -> bool:
    try:
        test()
    except Exception:
        return False
    return True


def score(case: Case, student) -> int:
    return sum(graded(case, item, student).right for item in case.items)


def graded(case: Case, item: EvalItem, student):
    messages = [{"role": "user", "content": item.prompt}]
    reply = student({"messages": messages, "tools": case.tools})
    if isinstance(item.check, CaseCall) and isinstance(reply, dict):
        called = right_call(item.check, ModelReply("", (Called(**reply),)))
        assert called.right, called
        messages.append({"role": "tool", "content": item.check.result})
        reply = student({"messages": messages, "tools": case.tools})
    return grade(item.check, ModelReply(reply, pieces=9), execute)


@pytest.mark.parametrize("seed", range(1, 60))
def test_whoever_can_do_the_jobs_passes_whatever_the_numbers(seed):
    for case in builtin(seed, 4096):
        assert score(case, answer) == len(case.items), case.name


def test_who_says_the_same_to_everything_passes_nothing():
    for words in ("docs", "OK", "42", "ANSWER: OK", "A", "", "bug feature docs"):
        for case in builtin(3, 4096):
            assert score(case, lambda _body, words=words: words) < case.need, (words, case.name)


def test_a_seed_gives_the_same_cases_and_another_seed_others():
    assert builtin(5, 4096) == builtin(5, 4096)
    changed = [
        one.name
        for one, other in zip(builtin(5, 4096), builtin(6, 4096), strict=True)
        if one != other
    ]
    assert set(changed) == {case.name for case in builtin(5, 4096)} - {"review"}


def test_the_faults_of_the_review_are_noticed_by_its_tests():
    for code, tests, is_right in (
        (BROKEN_PAGES, PAGES_TESTS, False),
        (SOUND_PAGES, PAGES_TESTS, True),
        (MEDIAN, MEDIAN_TESTS, False),
    ):
        names: dict = {}
        exec(f"{code}\n{tests}", names)
        tests_of = [each for name, each in names.items() if name.startswith("test_")]
        assert all(map(passes, tests_of)) is is_right


def test_the_long_document_fits_into_the_context():
    for context in (2048, 4096, 32_768, 131_072):
        (case,) = [case for case in builtin(1, context) if case.name == "long context"]
        words = len(case.items[0].prompt.split())
        assert words < context * 0.6
        assert words < 6000
        assert words > min(context, 12_000) * 0.3


def test_an_agent_is_given_the_jobs_of_its_role():
    assert jobs_of(["planner"]) == set(JOBS_OF["planner"])
    assert jobs_of(["fast-coder"]) == set(JOBS_OF["implementer"])
    assert jobs_of(["planner", "reviewer"]) == {*JOBS_OF["planner"], *JOBS_OF["reviewer"]}
    assert jobs_of([]) == jobs_of(["bob"]) == set(JOBS)
    assert {job for jobs in JOBS_OF.values() for job in jobs} == set(JOBS)
    own = Case("mine", "anything", (EvalItem("?", Number(1)),), 1)
    assert is_for(own, ("planner",))
    assert not is_for(own._replace(roles=("reviewer",)), ("planner",))
    assert is_for(own._replace(roles=("reviewer",)), ())


def test_one_job_that_fails_is_one_case_that_fails():
    failed = [
        case.name
        for case in builtin(9, 4096)
        if score(case, without("Cleo")) < case.need or score(case, without("Classify")) < case.need
    ]
    assert failed == ["classification"]  # two of three riddles are enough
