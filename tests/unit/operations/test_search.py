from __future__ import annotations

import pytest

from fleet.domain.access import Actor, Role
from fleet.domain.errors import BadInput, NotFound, Refused
from fleet.operations.messages.mail import SendMail
from fleet.operations.search import MOST_LIVE, FindText
from fleet.operations.tasks.change import AddTask
from fleet.ports import Passage, SaidLine

BOB = Actor("bob", Role.WORKER, "red")
EVE = Actor("eve", Role.TEAM_LEAD, "blue")


def said(office, task: str, *texts: str, at: int = 5) -> None:
    lines = tuple(SaidLine(f"{task}.1", at, "text", text) for text in texts)
    office.machine.passages.indexed.append(Passage(task, lines))


def marked(hit) -> list[str]:
    return [hit.text[m.start : m.end] for m in hit.marks]


def test_title_prompt_and_transcript_are_searched(office):
    one = office.add("Fix the login")
    two = office.call(AddTask("Other", "Look at the Login page.")).id
    three = office.add("Third")
    said(office, three, "Nothing.", "The login was refused.")
    hits = office.call(FindText("login"))
    assert {(h.task, h.where) for h in hits} == {
        (one, "title"),
        (two, "prompt"),
        (three, "transcript"),
    }
    assert all(marked(hit)[0].lower() == "login" for hit in hits)
    transcript = next(hit for hit in hits if hit.where == "transcript")
    assert (transcript.run, transcript.text) == (f"{three}.1", "The login was refused.")
    assert [h.task for h in office.call(FindText("login", task=two))] == [two]


def test_of_a_task_the_newest_match_in_its_transcript_counts(office):
    task = office.add("One")
    said(office, task, "zebra one", at=5)
    said(office, task, "zebra two", at=9)
    (hit,) = office.call(FindText("zebra"))
    assert (hit.text, hit.at) == ("zebra two", 9)
    assert office.call(FindText("zebra", since=10)) == ()


def test_what_a_run_says_now_is_found_before_it_is_in_the_index(office):
    task = office.add("One")
    office.start(task)
    line = SaidLine(f"{task}.1", 7, "text", "A zebra.")
    office.machine.passages.unindexed[task] = Passage(task, (line,))
    assert [hit.text for hit in office.call(FindText("zebra"))] == ["A zebra."]


def test_another_teams_tasks_are_not_there(office):
    task = office.call(AddTask("Secret zebra", "zebra", team="red")).id
    said(office, task, "zebra")
    assert office.call(FindText("zebra"), EVE) == ()
    with pytest.raises(NotFound):
        office.call(FindText("zebra", task=task), EVE)
    assert len(office.call(FindText("zebra"), BOB)) == 2


def test_what_another_team_says_now_takes_no_place_of_what_ones_own_says(office):
    mine = office.call(AddTask("One", team="red")).id
    others = [office.call(AddTask("Other", team="blue")).id for _ in range(MOST_LIVE)]
    for task in (mine, *others):
        office.start(task)
        line = SaidLine(f"{task}.1", 7, "text", "A zebra.")
        office.machine.passages.unindexed[task] = Passage(task, (line,))
    assert [hit.task for hit in office.call(FindText("zebra"), BOB)] == [mine]


def test_a_private_message_in_a_transcript_is_not_found_by_others(office):
    task = office.call(AddTask("One", team="red")).id
    office.start(task)
    office.call(
        SendMail(task, "The zebra code is 4711", team="red"), Actor("ann", Role.TEAM_LEAD, "red")
    )
    said(office, task, "[Mail from ann]\nThe zebra code is 4711", "I saw a giraffe.")
    assert office.call(FindText("zebra"), BOB) == ()
    assert office.call(FindText("zebra giraffe"), BOB) == ()
    assert len(office.call(FindText("giraffe"), BOB)) == 1
    lead = Actor("ann", Role.TEAM_LEAD, "red")
    assert len(office.call(FindText("zebra"), lead)) == 1


@pytest.mark.parametrize(
    "request_",
    [FindText(""), FindText("***"), FindText("x" * 1001), FindText("x", limit=0),
     FindText("x", limit=201), FindText("x", since=-1), FindText("a\0b")],
)  # fmt: skip
def test_what_is_no_search_is_refused(office, request_):
    office.refused(request_, kind=(BadInput, Refused))
