"""What needs a person: which items facts make, their ids, their order and what to type."""

from __future__ import annotations

from dataclasses import replace

from fleet.domain.inbox import (
    Down,
    InboxFacts,
    Need,
    OnScreen,
    Silent,
    Unlanded,
    inbox,
    landing_item,
)
from fleet.domain.landing.landing import LandingState
from fleet.domain.message import Details, Message, MessageKind, MessageState
from fleet.domain.run import Choice, Host, Run, RunState, Workspace
from fleet.domain.task import Join, Tally, Task, TaskState
from tests.unit.domain.forges.test_pull import LANDING

TASK = Task("t-3", 1, TaskState.OPEN, "Fix the login", "", "/shop", "ada", 1)
FAILED = replace(
    TASK, id="t-4", state=TaskState.FAILED, tally=Tally(runs=2, why="Exit status 3.", ended_at=9)
)
DONE = replace(TASK, id="t-5", state=TaskState.DONE, tally=Tally(runs=1, ended_at=7))
RUN = Run("t-5.1", 1, "t-5", RunState.ENDED, Choice("a", "claude"), "box", "h", 1,
          workspace=Workspace("/w/t-5", "/w/t 5", "fleet/t-5", "main"))  # fmt: skip


def question(number: int, *, task="t-3", author="t-3.1", at=5, options=()) -> Message:
    kind, still = MessageKind.QUESTION, MessageState.OPEN
    details = Details(options=options)
    return Message(f"m-{number}", 1, task, author, kind, "Which way?", still, at, details=details)


def facts(**given) -> InboxFacts:
    return InboxFacts({"t-3": TASK}, **given)


def one(**given):
    (item,) = inbox(facts(**given))
    return item


def test_a_question_has_its_options_its_age_and_how_to_answer():
    item = one(questions=[question(7, options=("left", "right"))], waiting={"t-3": 2})
    assert (item.id, item.kind, item.severity) == ("question:t-3:m-7", "question", "high")
    assert (item.words, item.options) == ("Which way?", ("left", "right"))
    assert (item.since, item.behind, item.title) == (5, 2, "Fix the login")
    answer = item.actions[0]
    assert (answer.command, answer.operation) == ("fleet answer t-3 TEXT", "message.answer")


def test_held_work_says_how_often_it_failed_to_land():
    """The last failure holds it: it was sent back once less."""
    held = replace(LANDING, state=LandingState.HELD, why="It conflicts.", returns=4)
    assert landing_item(DONE, held).words == "It conflicts. It has failed to land 4 times."
    assert landing_item(DONE, replace(held, returns=0)).words == "It conflicts."
    failed = replace(held, why="On main it does not pass: make test")
    words = "On main it does not pass: make test. It has failed to land 4 times."
    assert landing_item(DONE, failed).words == words


def test_of_two_questions_of_a_task_each_is_answered_by_its_own_id():
    items = inbox(facts(questions=[question(8, at=6), question(7)]))
    commands = [item.actions[0].command for item in items]
    assert commands == ["fleet answer m-7 TEXT", "fleet answer m-8 TEXT"]


def test_a_question_of_the_supervisor_is_about_a_spent_budget():
    item = one(questions=[question(7, author="supervisor")])
    assert (item.kind, item.actions[0].command) == ("budget", "fleet answer t-3 1")


def test_a_failed_task_has_another_id_when_it_fails_again():
    item = one(ended=[FAILED])
    assert (item.id, item.words) == ("failed:t-4:t-4.2", "Exit status 3.")
    assert [a.command for a in item.actions] == [
        "fleet retry t-4", "fleet show t-4", "fleet cancel t-4",
    ]  # fmt: skip
    again = replace(FAILED, tally=replace(FAILED.tally, runs=3))
    assert one(ended=[again]).id == "failed:t-4:t-4.3"


def test_a_task_with_children_that_failed_is_not_an_item_beside_them():
    assert inbox(facts(ended=[replace(FAILED, join=Join.ALL)])) == []


def test_work_that_is_not_landed_is_merged_and_a_conflict_is_solved_in_its_worktree():
    item = one(unlanded=[Unlanded(DONE, RUN, "main")])
    assert (item.kind, item.words, item.since) == ("not-landed", "fleet/t-5", 7)
    assert item.actions[0].command == "fleet land t-5"
    item = one(unlanded=[Unlanded(DONE, RUN, "main", ("a.py", "b.py"))])
    assert (item.kind, item.severity) == ("conflict", "medium")
    assert item.words == "fleet/t-5 conflicts with main in a.py, b.py"
    assert item.actions[0].command == "git -C '/w/t 5' merge main"


def test_a_dialog_is_answered_from_outside_or_in_the_terminal():
    item = one(screens=[OnScreen(DONE, RUN, Need.PERMISSION, "Run rm -rf build?")])
    assert (item.kind, item.words) == ("permission", "Run rm -rf build?")
    commands = [action.command for action in item.actions[:3]]
    assert commands == ["fleet approve t-5", "fleet deny t-5", "fleet attach fleet/t-5"]
    panel = one(screens=[OnScreen(DONE, RUN, Need.PANEL, "help")])
    assert panel.actions[0].command == "fleet attach fleet/t-5"


def test_machines_settings_and_held_tasks_need_somebody_too():
    held = replace(TASK, caused_by="worker")
    host = Host("box-1", 1, "box", "h", "", 44)
    items = inbox(
        facts(
            down=[Down("big", "http://big:11434", "refused", 3)],
            silent=[Silent(host, ("t-9",), 1, lost=True)],
            untrusted=[("/my shop", {"workspace.setup", "gate"})],
            held_back=[held],
        )
    )
    assert [(item.id, item.behind) for item in items] == [
        ("node:http://big:11434:down", 3),
        ("host:box-1:44", 0),
        ("untrusted:/my shop:gate,workspace.setup", 0),
        ("held:t-3:worker", 0),
    ]
    assert [item.actions[0].command for item in items] == [
        "fleet nodes", "fleet host show box-1", "cd '/my shop' && fleet trust", "fleet resume t-3",
    ]  # fmt: skip


def test_what_holds_an_agent_comes_first_and_the_oldest_of_a_kind_before_the_others():
    older = replace(FAILED, id="t-1", tally=replace(FAILED.tally, ended_at=2))
    items = inbox(
        facts(
            unlanded=[Unlanded(DONE, RUN, "main")], ended=[FAILED, older], questions=[question(7)]
        )
    )
    assert [item.kind for item in items] == ["question", "failed", "failed", "not-landed"]
    assert [item.task for item in items] == ["t-3", "t-1", "t-4", "t-5"]
