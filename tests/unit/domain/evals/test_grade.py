from __future__ import annotations

import pytest

from fleet.domain.evals.case import (
    CaseCall,
    Counting,
    Exact,
    Label,
    Mutants,
    Number,
    Passing,
    Review,
)
from fleet.domain.evals.grade import ModelReply, Ran, ToolCall, code_of, grade, right_call

KINDS = ("bug", "feature", "docs")


def never(_program):
    raise AssertionError("nothing is to be run")


def right(check, text, execute=never, pieces=9):
    return grade(check, ModelReply(text, pieces=pieces), execute).right


@pytest.mark.parametrize(
    "text",
    [
        "42",
        "ANSWER: 42",
        "6 * 7 makes 42.",
        "<think>perhaps 41</think>\n**ANSWER: 42**",
        "ANSWER: 41\nNo, wait.\nanswer : $42.00",
        "It is 42,0 no: ANSWER: 0,042",
    ],
)
def test_a_number_is_read_where_the_answer_is(text):
    assert right(Number(42), text)


@pytest.mark.parametrize("text", ["", "forty-two", "ANSWER: 43", "42 or 41", "<think>42"])
def test_another_number_or_none_is_wrong(text):
    assert not right(Number(42), text)


def test_a_minus_and_thousands_are_part_of_a_number():
    assert right(Number(-293), "ANSWER: -293")
    assert not right(Number(293), "ANSWER: -293")
    assert right(Number(1_234_567), "ANSWER: 1,234,567")
    assert right(Number(3.14, tolerance=0.01), "about 3.145")
    assert grade(Number(42), ModelReply("41"), never).why == "41, not 42"


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("docs", True),
        ("**Docs**.", True),
        ("ANSWER: docs", True),
        ("bug", False),
        ("docs or bug", False),  # naming all of them is no answer
        ("bug, feature, docs", False),
        ("documentation", False),
        ("It is no bug.\nANSWER: docs", True),
    ],
)
def test_one_label_and_no_other_counts(text, is_right):
    assert right(Label("docs", KINDS), text) is is_right


def test_a_code_is_a_whole_word():
    assert right(Exact("12345"), "The code is 12345.")
    assert not right(Exact("12345"), "The code is 123456.")


def test_counting_must_be_complete_and_streamed():
    text = "\n".join(map(str, range(20, 35)))
    assert right(Counting(20, 34), text)
    assert not right(Counting(20, 35), text)
    assert not right(Counting(20, 34), f"Here: 1. {text}")
    assert not right(Counting(20, 34), text, pieces=1)


def test_a_tool_call_needs_the_name_and_the_arguments():
    check = CaseCall("read", {"build": 7}, '{"failed": 3}', 3)
    assert right_call(check, ModelReply("", (ToolCall("read", {"build": 7, "more": 1}),))).right
    assert right_call(check, ModelReply("", (ToolCall("read", {"build": "7"}),))).right
    assert not right_call(check, ModelReply("", (ToolCall("read", {"build": 8}),))).right
    assert not right_call(check, ModelReply("", (ToolCall("list", {"build": 7}),))).right
    assert "called no tool" in right_call(check, ModelReply("read(7)")).why
    assert right(check, "ANSWER: 3")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = 1", "x = 1"),
        ("Sure:\n```python\nx = 1\n```\nDone.", "x = 1\n"),
        ("```\nx = 1\n```", "x = 1\n"),
        ("```python\nx = 1\n```\nand\n```py\ny = 2\n```", "x = 1\n\ny = 2\n"),
        ("```bash\npip install x\n```\n```python\nx = 1\n```", "x = 1\n"),
        ("```python\nx = 1", "x = 1"),  # cut off
    ],
)
def test_code_is_what_is_in_its_blocks(text, code):
    assert code_of(text) == code


def test_code_is_scored_by_the_share_of_its_tests():
    half = grade(Passing("tests"), ModelReply("code"), lambda _: Ran(2, 4, "test_b: no"))
    assert (half.score, half.right) == (0.5, False)
    assert half.why == "2 of 4 tests passed: test_b: no"
    assert grade(Passing("tests"), ModelReply("code"), lambda _: Ran(4, 4)).right
    assert grade(Passing("tests"), ModelReply("code"), lambda _: Ran(0, 0, "ended")).score == 0


def test_tests_must_pass_with_correct_code_and_fail_with_each_fault():
    check = Mutants("good", ("bad", "worse", "ugly"))

    def run(noticed):
        return lambda program: Ran(0 if program.code in noticed else 1, 1)

    assert grade(check, ModelReply("tests"), run({"bad", "worse", "ugly"})).right
    some = grade(check, ModelReply("tests"), run({"bad"}))
    assert some.score == pytest.approx(1 / 3)
    assert some.why == "its tests notice 1 of 3 faults"
    assert grade(check, ModelReply("tests"), run({"good", "bad", "worse", "ugly"})).score == 0
    assert grade(check, ModelReply("tests"), lambda _: Ran(0, 0, "no test")).score == 0


def test_a_review_sees_faults_corrects_them_and_leaves_good_code_alone():
    faulty, sound = Review(sound=False, tests="t"), Review(sound=True, tests="t")
    fixed = "ANSWER: BUG\n```python\nfixed\n```"
    assert right(faulty, fixed, lambda p: Ran(int(p.code == "fixed\n"), 1))
    assert not right(faulty, fixed, lambda _: Ran(0, 1, "still"))
    assert not right(faulty, "ANSWER: OK")
    assert right(sound, "ANSWER: OK")
    assert not right(sound, fixed)
    assert not right(sound, "Looks good to me!")
