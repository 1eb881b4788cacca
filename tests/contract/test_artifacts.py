"""A task's artifacts: stubs that are written over by nobody, and questions that are in the file."""

from __future__ import annotations

import pytest

from tests.contract.folders import TASK, Scratch

NAMES = ("PLAN_AND_STATUS.md", "KNOWLEDGE.md", "Q&A.md")


@pytest.fixture
def scratch(tmp_path):
    made = Scratch(tmp_path / "home")
    made.files.refresh(TASK)
    return made


def qa(scratch):
    return scratch.path("artifacts/Q&A.md")


def test_each_is_there_before_the_first_run_and_says_what_goes_where(scratch):
    for name in NAMES:
        assert scratch.path(f"artifacts/{name}").read_text().startswith("# ")


@pytest.mark.parametrize("words", ["", "# Mine\n"])
def test_what_the_agent_wrote_or_emptied_stays(scratch, words):
    for name in NAMES:
        scratch.path(f"artifacts/{name}").write_text(words)
    scratch.another().begin(scratch.task(), scratch.run())
    for name in NAMES:
        assert scratch.path(f"artifacts/{name}").read_text() == words


def test_a_question_and_its_answer_come_into_the_file_once(scratch):
    question = scratch.ask("Which database?\nWe have two.")
    for _ in range(3):
        scratch.another().refresh(TASK)
    assert qa(scratch).read_text().count("Which database?") == 1
    scratch.answer(question, "The small one.")
    for _ in range(3):
        scratch.another().refresh(TASK)
    said = qa(scratch).read_text()
    assert said.endswith("## A: 2027-01-15 08:00\n\nThe small one.\n")
    assert said.count("The small one.") == 1


def test_a_question_that_the_agent_wrote_there_itself_is_not_written_twice(scratch):
    with qa(scratch).open("a") as file:
        file.write("\n## Q:\n\nWhich database?\n")
    question = scratch.ask("Which database?")
    assert qa(scratch).read_text().count("Which database?") == 1
    with qa(scratch).open("a") as file:
        file.write("\n## A: 2027-01-15 08:00\n\nThe small one.\n")
    scratch.answer(question, "The small one.")
    scratch.another().refresh(TASK)
    said = qa(scratch).read_text()
    assert (said.count("Which database?"), said.count("The small one.")) == (1, 1)


def test_an_answer_that_is_there_in_another_encoding_is_not_written_twice(scratch):
    question = scratch.ask("Which café?")
    typed = qa(scratch).read_text() + "\n## A:\n\nThe older café.\n"
    qa(scratch).write_text(typed, "latin-1")
    scratch.answer(question, "The older café.")
    scratch.another().refresh(TASK)
    assert qa(scratch).read_text("latin-1") == typed


def test_the_same_question_asked_again_later_is_there_again(scratch):
    scratch.answer(scratch.ask("Go on?"), "Yes.")
    scratch.answer(scratch.ask("Go on?"), "No.")
    scratch.another().refresh(TASK)
    said = qa(scratch).read_text()
    assert said.count("Go on?") == 2
    assert said.index("Yes.") < said.rindex("Go on?") < said.index("No.")


def test_whoever_has_the_file_open_for_adding_loses_nothing(scratch):
    with qa(scratch).open("a") as editor:
        question = scratch.ask("Which way?")
        editor.write("\nA note of mine.\n")
        editor.flush()
        scratch.answer(question, "Left.")
        editor.write("\nAnother note.\n")
    said = qa(scratch).read_text()
    for words in ("Which way?", "A note of mine.", "Left.", "Another note."):
        assert said.count(words) == 1, said


def test_an_answer_to_an_earlier_question_goes_below_it_and_the_rest_stays(scratch):
    first, _ = scratch.ask("First?"), scratch.ask("Second?")
    with qa(scratch).open("ab") as file:
        file.write(b"\nAn odd byte: \xff\n")
    scratch.answer(first, "One.")
    said = qa(scratch).read_bytes()
    assert said.index(b"First?") < said.index(b"One.") < said.index(b"Second?")
    assert b"An odd byte: \xff\n" in said


def test_a_question_asked_while_no_supervisor_ran_is_there_when_the_next_run_begins(scratch):
    question = scratch.ask("Which way?")
    qa(scratch).write_text("")
    scratch.files.begin(scratch.task(), scratch.run())
    assert f"## Q: {question.id}\n\nWhich way?\n" in qa(scratch).read_text()
