from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.access import Actor, Role
from fleet.domain.errors import BadInput, Forbidden, NotFound, Refused
from fleet.domain.task import Spec
from fleet.operations.messages.ask_answer_send import (
    Answer,
    Ask,
    Comment,
    ListQuestions,
    SendWords,
    TakeAnswer,
    Unsend,
)
from fleet.operations.tasks.change import CancelTask, RetryTask
from fleet.operations.tasks.transcript import ReadTranscript


def test_a_question_holds_its_task_until_it_is_answered(office):
    task = office.add()
    question = office.ask(task, options=("Left", "Right"))
    found = office.show(task)
    assert found.task.status == "asking"
    assert found.waits[0].fix == f"fleet answer {task} TEXT"
    assert office.call(TakeAnswer(question)) is None
    office.call(Answer(task, "Left"))
    assert office.show(task).task.status == "ready"
    assert office.call(TakeAnswer(question)).text == "Left"
    assert office.told()[-3:] == ["message.asked", "message.answered", "message.heard"]


@pytest.mark.parametrize(
    ("typed", "taken"),
    [
        ("Right", "Right"),
        ("2", "Right"),
        (" 1 ", "Left"),
        ("3 of them", "3 of them"),
        ("Neither.", "Neither."),
    ],
)
def test_an_option_may_be_answered_by_its_number_and_other_words_count_too(typed, taken, office):
    question = office.ask(office.add(), options=("Left", "Right"))
    assert office.call(Answer(question, typed)).text == taken


def test_an_option_that_is_a_number_is_meant_itself(office):
    question = office.ask(office.add(), options=("2", "3"))
    assert office.call(Answer(question, "2")).text == "2"


@pytest.mark.parametrize("typed", ["0", "3", "12"])
def test_a_number_that_no_option_has_is_an_answer_only_when_it_is_said_to_be(typed, office):
    question = office.ask(office.add(), options=("Left", "Right"))
    error = office.refused(Answer(question, typed), kind=BadInput)
    assert error.message == f"{question} has no option {typed}: 1) Left  2) Right"
    assert error.fix.endswith(f"fleet answer {question} {typed} --as-text")
    assert office.call(Answer(question, typed, as_text=True)).text == typed


def test_the_first_answer_wins(office):
    task = office.add()
    question = office.ask(task)
    with pytest.raises(Refused) as caught:
        office.call(Answer(question, "b"), meanwhile=lambda: office.call(Answer(question, "a")))
    assert caught.value.code == "answered"
    assert [m.text for m in office.show(task).messages] == ["Which way?", "a"]
    for name in (question, task):
        assert office.refused(Answer(name, "c")).code == "answered"


def test_of_several_questions_one_must_be_named(office):
    task = office.add()
    first, second = office.ask(task, "First?"), office.ask(task, "Second?")
    error = office.refused(Answer(task, "x"), kind=BadInput)
    assert f"{first} (First?); {second} (Second?)" in error.message
    office.call(Answer(second, "x"))
    assert office.call(Answer(task, "y")).reply_to == first


@pytest.mark.parametrize("name", ["m-9", "m-x", "t-9", "nobody"])
def test_a_question_that_is_not_there_is_said_to(name, office):
    office.refused(Answer(name, "x"), kind=NotFound)


def test_what_is_no_question_cannot_be_answered(office):
    task = office.add()
    note = office.call(Comment(task, "A note."))
    assert "is not a question" in office.refused(Answer(note.id, "x")).message
    assert "has asked nothing" in office.refused(Answer(task, "x")).message


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (Ask(" ", "t-1"), "The question is empty"),
        (Ask("x"), "No task was named"),
        (Ask("x", "t-1", park=True), "only inside a run"),
        (Ask("x", "t-1", ("a", "")), "The option is empty"),
        (Ask("x", "t-1", ("a",) * 21), "21 options"),
        (Ask("x" * 100_001, "t-1"), "100001 characters"),
        (Comment("t-1", "\n"), "The comment is empty"),
        (Comment("t-1", "\udce9"), "not valid text"),
        (Answer("t-1", " "), "The answer is empty"),
        (ListQuestions(0), "Limit 0"),
        (ReadTranscript("t-1", limit=0), "Limit 0"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence_with_a_fix(request_, words, office):
    office.ask(office.add())
    assert words in office.refused(request_, kind=BadInput).message


def test_only_a_run_parks_and_only_on_its_own_task(office):
    task, other = office.add(), office.add()
    agent = office.agent(office.start(task))
    office.refused(Ask("x", other, park=True), agent, BadInput)
    assert office.call(Ask("x", park=True), agent).task == task


def test_a_task_that_has_ended_asks_nothing(office):
    task = office.add()
    question = office.ask(task)
    assert [q.id for q in office.call(ListQuestions())] == [question]
    office.call(CancelTask(task))
    assert office.call(ListQuestions()) == ()
    assert "is cancelled" in office.refused(Ask("x", task)).message
    assert office.refused(TakeAnswer(question)).code == "unanswered"
    office.call(RetryTask(task))
    assert [q.id for q in office.call(ListQuestions())] == [question]


def test_an_answer_given_to_a_task_that_ended_meanwhile_can_still_be_heard(office):
    task = office.add()
    question = office.ask(task)
    office.call(Answer(question, "Left."))
    office.call(CancelTask(task))
    assert office.call(TakeAnswer(question)).text == "Left."


def test_a_transcript_is_read_from_where_one_is(office):
    task = office.add()
    first = office.start(task, "text one")
    office.end(first, "lost")
    office.start(task, "text two", "text three")
    newest = office.call(ReadTranscript(task))
    assert (newest.run, newest.lines, newest.live) == (
        f"{task}.2",
        ("text two", "text three"),
        True,
    )
    assert office.call(ReadTranscript(task, newest.offset)).lines == ()
    for name in ("t-1.1", "1.1"):
        old = office.call(ReadTranscript(name))
        assert (old.run, old.lines, old.live, old.coder) == (
            first,
            ("text one",),
            False,
            "scripted",
        )


def test_a_transcript_that_is_not_there_is_said_to(office):
    task = office.add()
    error = office.refused(ReadTranscript(task))
    assert error.message == f"{task} has not run yet."
    office.start(task)
    assert "has no run 7" in office.refused(ReadTranscript(f"{task}.7"), kind=NotFound).message


def test_an_answer_that_comes_after_the_clock_was_set_back_is_not_taken_for_part_of_the_prompt(
    office,
):
    """It is later than the claim of the run that asked, so that the next run is told it."""
    task = office.add()
    run = office.start(task)
    question = office.ask(task)
    office.clock.advance(-7200)
    assert office.call(Answer(question, "Left.")).at > office.store.run(run).claimed_at


def test_only_what_was_not_read_is_withdrawn_and_by_another_only_with_assign(office):
    task = office.add()
    worker, other = Actor("wes", Role.WORKER), Actor("win", Role.WORKER)
    first = office.call(SendWords(task, "One"), worker).id
    second = office.call(SendWords(task, "Two"), worker).id
    office.refused(Unsend(first), other, Forbidden)
    assert office.call(Unsend(first), worker).status == "withdrawn"
    assert office.call(Unsend(second)).status == "withdrawn"
    assert office.refused(Unsend(first), worker).message == f"{first} was already withdrawn."
    note = office.call(Comment(task, "A note")).id
    assert "not a message to an agent" in office.refused(Unsend(note), kind=BadInput).message
    assert office.told()[-2:] == ["message.withdrawn", "message.posted"]


def test_an_answer_to_a_coder_that_takes_it_as_a_program_is_a_coordinators(office):
    lead = replace(office.person(Role.TEAM_LEAD, name="lea"), remote=True)
    office.world.settings = office.world.settings._replace(coder="claude")
    task = office.add(spec=Spec(coder="scripted"))
    office.call(Ask("Which?", task))
    error = office.refused(Answer(task, "run id"), lead, kind=Forbidden)
    assert "as a program" in error.message
    assert office.call(Answer(task, "the first")).text == "the first"
