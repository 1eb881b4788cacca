"""Q&A.md: people and agents write it by hand, so it is read generously and only ever added to."""

from __future__ import annotations

import pytest

from fleet.operations.messages.qa_file import (
    new_answers,
    questions,
    unanswered,
    whole_question,
    with_answer,
    with_question,
)

AT = 1_780_000_000_000_000  # 2026-05-28 20:26 UTC
FILE = """\
# Q&A

## Q: Which database?

SQLite or PostgreSQL?

## A: 2026-01-31 17:05

PostgreSQL.

## Q:

Which colour?
"""


def pairs(text):
    return [(q.question, q.answer) for q in questions(text)]


def test_questions_and_answers_are_read_in_their_order():
    assert pairs(FILE) == [
        ("Which database?\n\nSQLite or PostgreSQL?", "PostgreSQL."),
        ("Which colour?", ""),
    ]
    assert unanswered(FILE).question == "Which colour?"


@pytest.mark.parametrize(
    ("below", "answer"),
    [
        ("## A: 2026-01-31 17:05\n\nBlue.", "Blue."),
        ("## A: <2026-01-31 17:05>\n\nBlue.", "Blue."),
        ("## A:\nBlue.\n", "Blue."),
        ("## A: Blue.", "Blue."),
        ("## A: 2026-01-31 17:05 Blue.", "Blue."),
        (
            "##  A:  2026-01-31\n\nBlue.\n\n### Why\n\nIt is nice.",
            "Blue.\n\n### Why\n\nIt is nice.",
        ),
        (
            "## A: 2026-01-31 17:05\n\nBlue.\n\n## A: 2026-01-31 17:09\n\nOr not.",
            "Blue.\n\nOr not.",
        ),
        ("## A: <YYYY-MM-DD HH:MM>\n\n<your answer here>", ""),
        ("## A: 2026-01-31 17:05\n\n<!-- your answer -->", ""),
        ("<!--\n## A: 2026-01-31 17:05\n\nNot this.\n-->", ""),
        ("```\n## A: 2026-01-31 17:05\n\nNot this.\n```", ""),
        ("## a: Blue.", ""),
    ],
)
def test_what_counts_as_an_answer(below, answer):
    assert questions(f"{FILE}\n{below}\n")[-1].answer == answer


@pytest.mark.parametrize("text", ["", "\n", "# Q&A\n", "## A: 2026-01-31 17:05\n\nTo nothing.\n"])
def test_where_nothing_is_asked_there_is_no_question(text):
    assert questions(text) == []
    assert unanswered(text) is None


@pytest.mark.parametrize("text", ["", "# Q&A", "# Q&A\n", FILE, FILE + "\n\n", "no heading\r\n"])
def test_what_is_added_takes_nothing_away_and_is_read_back(text):
    asked = with_question(text, "May I?\n\nIt costs 5 $.", "m-7")
    assert asked.startswith(text)
    assert questions(asked)[-1] == ("May I?\n\nIt costs 5 $.", "", "m-7")
    answered = with_answer(asked, "m-7", "Yes.", AT)
    assert answered.startswith(text)
    assert answered.endswith("\n\n## A: 2026-05-28 20:26\n\nYes.\n")
    assert questions(answered)[-1].answer == "Yes."
    assert questions(answered)[:-1] == questions(text)


def test_an_answer_goes_below_its_question_and_not_to_the_end():
    text = with_question(FILE, "A third?", "m-9")
    text = with_answer(text, "Which colour?", "Blue.", AT)
    assert pairs(text)[1:] == [("Which colour?", "Blue."), ("A third?", "")]
    assert pairs(text)[0] == pairs(FILE)[0]


def test_said_twice_it_is_there_once():
    once = with_question(FILE, "May I?", "m-7")
    assert with_question(once, "May I?", "m-7") == once
    assert with_question(once, "May  I?", "") == once
    assert with_question(FILE, "Which colour?", "m-8") == FILE
    answered = with_answer(once, "m-7", "Yes.", AT)
    assert with_answer(answered, "m-7", "Yes.", AT + 60_000_000) == answered
    assert pairs(with_question(answered, "May I?", "m-9"))[-2:] == [
        ("May I?", "Yes."),
        ("May I?", ""),
    ]


def test_an_answer_to_a_question_that_is_not_there_brings_it_along():
    assert pairs(with_answer("", "Which way?", "Left.", AT)) == [("Which way?", "Left.")]


def test_words_that_look_like_a_heading_stay_words():
    text = with_question("", "Is this right?\n## A: no", "m-1")
    text = with_answer(text, "m-1", "## Q: a heading\nYes.", AT)
    assert pairs(text) == [("Is this right?\n## A: no", "## Q: a heading\nYes.")]


def test_a_question_is_its_summary_and_the_block_that_it_sums_up():
    assert whole_question("", "Which one?") == "Which one?"
    assert whole_question(FILE, "The colour") == "The colour\n\nWhich colour?"
    assert whole_question(FILE, "") == "Which colour?"
    assert whole_question(FILE, "Which  colour?") == "Which  colour?"
    assert whole_question(f"{FILE}\nRed or blue?", "Which colour?").endswith("Red or blue?")
    assert whole_question(with_answer(FILE, "Which colour?", "Red.", AT), "Next?") == "Next?"


def test_a_block_that_was_asked_with_a_summary_is_the_same_question():
    asked = whole_question(FILE, "About the looks")
    assert with_question(FILE, asked, "m-3") == FILE
    assert pairs(with_answer(FILE, asked, "Blue.", AT))[-1] == ("Which colour?", "Blue.")


def test_an_open_question_gets_the_answer_that_is_new():
    answered = f"{FILE}\n## A: 2026-01-31 18:00\n\nBlue.\n"
    assert new_answers(FILE, [("m-2", "Which colour?")], ["PostgreSQL."]) == {}
    assert new_answers(answered, [("m-2", "The colour\n\nWhich colour?")], ["PostgreSQL."]) == {
        "m-2": "Blue."
    }
    assert new_answers(answered, [("m-2", "Otherwise worded")], []) == {"m-2": "Blue."}


def test_an_answer_that_was_heard_before_is_none_to_the_next_question():
    answered = f"{FILE}\n## A: 2026-01-31 18:00\n\nBlue.\n"
    assert new_answers(answered, [("m-5", "Something else?")], ["PostgreSQL.", "Blue."]) == {}
    marked = with_question(answered, "Something else?", "m-5") + "\n## A:\n\nBlue.\n"
    assert new_answers(marked, [("m-5", "Something else?")], ["Blue."]) == {"m-5": "Blue."}


def test_of_several_open_questions_each_gets_its_own():
    text = with_answer(
        with_question(with_question("", "One?", "m-1"), "Two?", "m-2"), "m-1", "1", AT
    )
    assert new_answers(text, [("m-1", "One?"), ("m-2", "Two?")], []) == {"m-1": "1"}


@pytest.mark.parametrize("code", ["latin-1", "cp1252"])
def test_words_that_are_not_utf_8_are_the_words_that_were_meant(code):
    typed = "## Q: m-1\n\nWhich café?\n\n## A:\n\nThe older café.\n"
    text = typed.encode(code).decode("utf-8", "surrogateescape")
    assert new_answers(text, [("m-1", "Which café?")], []) == {"m-1": "The older café."}
    assert with_answer(text, "Which café?", "The older café.", AT) == text
    assert with_question(text, "Which café?", "m-1") == text
