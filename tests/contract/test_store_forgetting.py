"""Every store forgets what is old, and nothing that is needed."""

from __future__ import annotations

from dataclasses import replace

from fleet.domain.event import Event, Kind
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.run import Choice, Progress, Run, RunState
from fleet.domain.task import Tally, Task, TaskState
from fleet.ports import Put, TaskQuery, TaskSearch
from fleet.testing.clock import START


def task_of(number: int, state=TaskState.DONE, **given) -> Task:
    given = {"title": f"Task {number}", "prompt": "zebra", **given}
    return Task(f"t-{number}", 0, state, project="/a", author="me", created_at=START, **given)


def add(store, *tasks: Task) -> None:
    for task in tasks:
        store.commit([Put(task)], [Event(Kind.TASK_ADDED, task.id, "me", START)] * 3)


def test_old_events_go_in_steps_but_those_of_a_task_that_goes_on_stay(store):
    add(store, task_of(1), task_of(2, TaskState.OPEN), task_of(3), task_of(4))
    numbers = [event.number for event in store.events()]
    assert store.first_event() == 1
    while store.forget_events(upto=numbers[8], limit=2):
        pass
    assert store.first_event() == numbers[8] + 1
    assert [e.task for e in store.events()] == ["t-2"] * 3 + ["t-4"] * 3
    assert [e.number for e in store.events(after=numbers[8])] == numbers[9:]
    assert store.forget_events(upto=numbers[8], limit=2) == 0


def test_the_last_event_stays_so_that_no_number_comes_twice(store):
    add(store, task_of(1))
    last = store.events()[-1].number
    while store.forget_events(upto=last + 100, limit=2):
        pass
    store.forget_tasks([store.task("t-1")])
    assert [e.number for e in store.events()] == [last]
    add(store, task_of(2))
    assert store.events(after=last)[0].number > last


def test_a_task_goes_with_its_runs_messages_and_words(store):
    add(store, task_of(1), task_of(2))
    run = Run(
        "t-1.1", 0, "t-1", RunState.ENDED, Choice("a", "b"), host="h", holder="x", claimed_at=1
    )
    words = Message("m-1", 0, "t-1", "me", MessageKind.WORDS, "Hello", MessageState.CLOSED, START)
    store.commit([Put(run), Put(words), Put(Progress("t-1.1", 0, at=START))], [])
    assert len(store.search_tasks(TaskSearch(("zebra",)))) == 2
    assert store.forget_tasks([store.task("t-1")]) == ["t-1"]
    assert [task.id for task in store.tasks(TaskQuery())] == ["t-2"]
    assert store.runs("t-1") == []
    assert store.messages("t-1") == []
    assert store.progress(["t-1.1"]) == {}
    assert {event.task for event in store.events()} == {"t-2"}
    assert [task.id for task in store.search_tasks(TaskSearch(("zebra",)))] == ["t-2"]


def test_a_task_stays_that_changed_has_not_ended_or_that_another_refers_to(store):
    add(store, task_of(1), task_of(2, after=("t-1",)), task_of(3), task_of(4, parent="t-3"))
    add(store, task_of(5, TaskState.OPEN), task_of(6))
    tasks = [store.task(f"t-{n}") for n in (1, 3, 5, 6)]
    store.commit([Put(replace(tasks[-1], tally=Tally(runs=1)))], [])
    assert store.forget_tasks(tasks) == []
    assert store.forget_tasks([store.task("t-2"), store.task("t-4")]) == ["t-2", "t-4"]
    assert store.forget_tasks(tasks) == ["t-1", "t-3"]  # nothing refers to them any more
