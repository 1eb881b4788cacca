"""What every store promises: in memory, SQLite, PostgreSQL."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.domain.errors import Conflict, NotFound
from fleet.domain.event import Event, Kind
from fleet.domain.message import Message, MessageKind, MessageState, answer
from fleet.domain.run import (
    Checkpoint,
    Choice,
    Ending,
    Host,
    Outcome,
    Progress,
    Run,
    RunState,
    Slots,
    Usage,
    Workspace,
)  # fmt: skip
from fleet.domain.task import Join, Limits, Spec, Tally, Task, TaskState, claim
from fleet.ports import Put, Same, TaskQuery, Totals


def a_task(store, **given) -> Task:
    given = {"title": "Do it", "prompt": "do it", "project": "/p", "author": "me"} | given
    return Task(
        id=store.new_id("t"), version=0, state=TaskState.OPEN, created_at=store.now(), **given
    )


def added(store, **given) -> Task:
    (task,) = store.commit([Put(a_task(store, **given))], [])
    return task


def a_question(store, task: Task) -> Message:
    question = Message(
        store.new_id("m"), 0, task.id, "t-1.1", MessageKind.QUESTION, "Which?",
        MessageState.OPEN, store.now(),
    )  # fmt: skip
    (asked,) = store.commit([Put(question)], [])
    return asked


def ready(store) -> list[str]:
    return [t.id for t in store.candidates(now=store.now(), limit=100)]


def test_a_task_comes_back_as_it_was_put(store):
    spec = Spec(
        agent="a", labels=("x", "y"), priority=0, cwd="/p/ü ", in_place=True, limits=Limits(3)
    )
    tally = Tally(runs=2, failures=1, why="no\nidea", checkpoint=Checkpoint("c", "s", "sum"))
    task = a_task(store, spec=spec, tally=tally, after=("t-9",), parent="t-8", join=Join.ANY)
    assert store.commit([Put(task)], []) == [replace(task, version=1)]
    assert store.task(task.id) == replace(task, version=1)


def test_every_other_record_comes_back_as_it_was_put(store):
    task = added(store)
    run = Run(
        f"{task.id}.1", 0, task.id, RunState.ENDED, Choice("a", "c", "m", "n"), "h", "#1", 5,
        slots=("one", "two"), workspace=Workspace("/w/x", "/w", "b", "base", made=True),
        outcome=Outcome(Ending.FAILED, "why", 3, Checkpoint("c"), 7, Usage(1, 2, 3, 4, 0.5), gone=False),
        started_at=6, ended_at=7,
    )  # fmt: skip
    message = Message(
        store.new_id("m"), 0, task.id, "me", MessageKind.NOTE, "hé", MessageState.CLOSED, 1,
        options=("a",), parked=True,
    )  # fmt: skip
    progress = Progress(run.id, 0, 9, 3, Usage(1), 8, "s", "last")
    host, slots = Host("h", 0, "name", "#1", "boot", 99), Slots("one", 0, (run.id,))
    records = [run, message, progress, host, slots]
    written = store.commit([Put(r) for r in records], [])
    assert written == [replace(r, version=1) for r in records]
    assert store.run(run.id) == written[0]
    assert store.runs(task.id) == [written[0]]
    assert store.message(message.id) == written[1]
    assert store.progress([run.id, "t-99.1"]) == {run.id: written[2]}
    assert store.hosts() == {"h": written[3]}
    assert store.slots() == {"one": written[4]}
    assert store.slots(["one", "two"]) == {"one": written[4]}


@pytest.mark.parametrize(
    "odd", ["t-404", "t-1.404", "", "t-", "nonsense", "x-1", "t-1.1.1", f"t-{10**30}"]
)
def test_what_is_not_there_is_not_found(store, odd):
    added(store)
    for look in (store.task, store.run, store.message):
        with pytest.raises(NotFound):
            look(odd)
    assert store.tasks_by_id([odd]) == {}
    assert store.progress([odd]) == {}
    assert store.runs(odd) == store.messages(odd) == store.dependents(odd) == []


def test_a_change_since_it_was_read_is_a_conflict_and_nothing_is_written(store):
    task = added(store)
    other = added(store)
    store.commit([Put(replace(task, title="Theirs"))], [])
    with pytest.raises(Conflict):
        store.commit(
            [Put(replace(other, title="Mine")), Put(replace(task, title="Mine"))],
            [Event("x", task.id, "me", 1)],
        )
    assert store.task(task.id).title == "Theirs"
    assert store.task(other.id) == other
    assert store.events() == []


def test_what_exists_cannot_be_inserted_and_what_does_not_cannot_be_updated(store):
    task = added(store)
    with pytest.raises(Conflict):
        store.commit([Put(replace(task, version=0))], [])
    with pytest.raises(Conflict):
        store.commit([Put(replace(task, id="t-77"))], [])


def test_a_commit_can_insist_that_something_has_not_changed(store):
    task, other = added(store), added(store)
    store.commit([Same(other), Put(replace(task, title="First"))], [])
    store.commit([Put(replace(other, title="Changed"))], [])
    with pytest.raises(Conflict):
        store.commit([Same(other), Put(replace(store.task(task.id), title="Second"))], [])
    assert store.task(task.id).title == "First"


def test_totals_count_what_is_there(store):
    assert store.totals() == Totals()
    added(store)
    store.new_id("m")
    assert store.totals() == Totals(messages=1, ready=1)


def test_an_event_keeps_its_kind_whether_this_release_knows_it_or_not(store):
    store.commit([], [Event(Kind.TASK_ADDED, "t-1", "me", 1), Event(Kind("x.y"), "t-1", "me", 2)])
    known, unknown = store.events()
    assert known.type is Kind.TASK_ADDED
    assert (str(unknown.type), unknown.type.value) == ("x.y", "x.y")


def test_events_are_numbered_in_order_and_read_from_a_number_on(store):
    for word in "abc":
        store.commit(
            [],
            [
                Event(f"{word}.one", "t-1", "me", 1),
                Event(f"{word}.two", "t-2", "me", 2, "t-2.1", {"k": "v"}),
            ],
        )
    found = store.events()
    assert [e.type for e in found] == ["a.one", "a.two", "b.one", "b.two", "c.one", "c.two"]
    numbers = [e.number for e in found]
    assert numbers == sorted(set(numbers))
    assert [e.type for e in store.events(after=numbers[3])] == ["c.one", "c.two"]
    assert [e.type for e in store.events(task="t-2", limit=2)] == ["a.two", "b.two"]
    assert [e.type for e in store.events(limit=2, newest=True)] == ["c.one", "c.two"]
    assert [e.type for e in store.events(task="t-1", limit=1, newest=True)] == ["c.one"]
    (last,) = store.events(task="t-1", limit=1, newest=True)
    assert store.changed_at(["t-1", "t-999"]) == {"t-1": last.at}
    assert store.changed_at([]) == {}
    assert store.events(task="t-2")[0].data == {"k": "v"}
    assert store.events(task="t-2")[0].run == "t-2.1"


def test_candidates_come_by_priority_then_age(store):
    late = added(store, spec=Spec(priority=3)).id
    first = added(store, spec=Spec(priority=1)).id
    second = added(store, spec=Spec(priority=1)).id
    assert ready(store) == [first, second, late]
    assert [t.id for t in store.candidates(now=store.now(), limit=1)] == [first]


def test_a_task_is_ready_only_when_all_it_waits_for_are_done(store):
    a, b = added(store), added(store)
    both = added(store, after=(a.id, b.id)).id
    assert both not in ready(store)
    store.commit([Put(replace(a, state=TaskState.DONE))], [])
    assert both not in ready(store)
    store.commit([Put(replace(b, state=TaskState.DONE))], [])
    assert both in ready(store)
    store.commit([Put(replace(store.task(a.id), state=TaskState.OPEN))], [])
    assert both not in ready(store)
    assert store.dependents(a.id) == [both]


def test_several_needs_done_in_one_commit_free_the_task(store):
    a, b = added(store), added(store)
    both = added(store, after=(a.id, b.id)).id
    store.commit([Put(replace(t, state=TaskState.DONE)) for t in (a, b)], [])
    assert ready(store) == [both]


def test_a_task_added_after_its_need_was_done_is_ready_at_once(store):
    a = added(store)
    store.commit([Put(replace(a, state=TaskState.DONE))], [])
    later = added(store, after=(a.id,)).id
    assert ready(store) == [later]


def test_needs_that_failed_or_do_not_exist_hold_a_task(store):
    a = added(store)
    store.commit([Put(replace(a, state=TaskState.FAILED))], [])
    added(store, after=(a.id,))
    added(store, after=("t-999",))
    assert ready(store) == []


def test_a_dependency_can_be_taken_away_and_added(store):
    a, b = added(store), added(store)
    waiting = added(store, after=(a.id,))
    (free,) = store.commit([Put(replace(waiting, after=()))], [])
    assert waiting.id in ready(store)
    assert store.dependents(a.id) == []
    store.commit([Put(replace(free, after=(b.id,)))], [])
    assert waiting.id not in ready(store)


def test_an_open_question_holds_its_task_until_it_is_answered(store):
    task = added(store)
    question = a_question(store, task)
    second = a_question(store, task)
    assert ready(store) == []
    assert store.open_messages("question") == [question, second]
    for asked in (question, second):
        closed, reply = answer(asked, "This", by="me", at=1, new_id=store.new_id("m"))
        store.commit([Put(closed), Put(reply)], [])
    assert ready(store) == [task.id]
    assert [m.kind for m in store.messages(task.id)] == ["question", "question", "answer", "answer"]
    assert len(store.open_messages("answer")) == 2


def test_paused_postponed_and_compound_tasks_are_not_candidates(store):
    added(store, paused=True)
    added(store, join=Join.ALL)
    later = added(store, tally=Tally(not_before=store.now() + 60_000_000))
    assert ready(store) == []
    found = store.candidates(now=store.now() + 61_000_000, limit=10)
    assert [t.id for t in found] == [later.id]


def test_a_claimed_task_is_no_candidate_and_a_second_claim_conflicts(store):
    task = added(store)
    running, run = claim(task, Choice("a", "c"), host="h", holder="1", slots=(), at=1)
    store.commit([Put(running), Put(run)], [])
    assert ready(store) == []
    with pytest.raises(Conflict):
        store.commit([Put(running), Put(run)], [])
    assert [r.id for r in store.live_runs()] == [run.id]
    assert store.live_runs(host="elsewhere") == []


def test_tasks_are_listed_newest_first_filtered_and_paged(store):
    made = [added(store, project=f"/p{n % 2}", team="red" if n < 3 else "blue") for n in range(6)]
    (done,) = store.commit([Put(replace(made[0], state=TaskState.DONE))], [])
    ids = [t.id for t in made]
    assert [t.id for t in store.tasks(TaskQuery())] == ids[::-1]
    assert [t.id for t in store.tasks(TaskQuery(states=("done",)))] == [done.id]
    assert [t.id for t in store.tasks(TaskQuery(project="/p1", team="red"))] == [ids[1]]
    first = store.tasks(TaskQuery(limit=2))
    assert [t.id for t in store.tasks(TaskQuery(limit=2, before=first[-1].id))] == [ids[3], ids[2]]
    oldest = store.tasks(TaskQuery(limit=2, oldest_first=True, before=ids[1]))
    assert [t.id for t in oldest] == [ids[2], ids[3]]
    assert store.counts() == {"done": 1, "open": 5}


def test_children_are_found_by_their_parent(store):
    parent = added(store, join=Join.ALL)
    child = added(store, parent=parent.id)
    assert [t.id for t in store.tasks(TaskQuery(parent=parent.id))] == [child.id]


def test_many_are_found_by_id_at_once(store):
    made = [added(store) for _ in range(5)]
    assert store.tasks_by_id([t.id for t in made]) == {t.id: t for t in made}
    assert len(store.tasks_by_id([t.id for t in made] + [f"t-{n}" for n in range(1000, 3000)])) == 5


@pytest.mark.parametrize(
    "text", ["ü 漢字 🚀", "a\0b", "half \ud83d of one", "x" * 1_000_000, "'; --"]
)
def test_text_survives(store, text):
    task = added(store, prompt=text)
    assert store.task(task.id).prompt == text


def test_ids_are_given_once(store):
    assert len({store.new_id("t") for _ in range(50)}) == 50
    assert store.new_id("m").startswith("m-")
