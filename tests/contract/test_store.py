"""What every store promises: in memory, SQLite, PostgreSQL."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.adapters.stores.rows import select_tasks
from fleet.domain.errors import Conflict, NotFound
from fleet.domain.event import Event, Kind
from fleet.domain.hosts.piece import Piece
from fleet.domain.message import Details, Message, MessageKind, MessageState, answer
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
from fleet.domain.search import MOST_SEARCHED, query_of
from fleet.domain.task import Join, Limits, Spec, Tally, Task, TaskState, claim
from fleet.ports import STANDINGS, Put, Same, TaskQuery, TaskSearch, Totals


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
        details=Details(options=("a",), parked=True),
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


def test_those_who_wait_for_a_task_are_counted_while_they_are_open(store):
    a, b = added(store), added(store)
    added(store, after=(a.id, b.id))
    over = added(store, after=(a.id,))
    assert store.waiting([a.id, b.id, over.id]) == {a.id: 2, b.id: 1}
    store.commit([Put(replace(over, state=TaskState.CANCELLED))], [])
    assert store.waiting([a.id]) == {a.id: 1}


def test_a_held_task_is_found_until_somebody_lets_it_run(store):
    added(store, paused=True)
    held = added(store, caused_by="worker")
    by_hand = added(store, caused_by="worker", spec=Spec(assignee="bob"))
    assert store.tasks(TaskQuery(is_held=True)) == [held]
    assert not {held.id, by_hand.id} & set(ready(store))
    store.commit([Put(replace(held, caused_by="team-lead"))], [])
    assert store.tasks(TaskQuery(is_held=True)) == []
    assert held.id in ready(store)


def test_candidates_are_read_page_by_page_and_by_team(store):
    first, second = added(store), added(store, team="red")
    later = added(store, tally=Tally(not_before=1))
    urgent = added(store, team="red", spec=Spec(priority=0))
    added(store, team="red", paused=True)

    def page(after=None, **given):
        tasks = store.candidates_after(after, now=store.now(), **{"limit": 10, **given})
        return [task.id for task in tasks]

    everything = [urgent.id, first.id, second.id, later.id]
    assert page() == [task.id for task in store.candidates(now=store.now(), limit=10)]
    assert page() == everything
    assert page(limit=2) == everything[:2]
    assert page(first, limit=2) == everything[2:]
    assert page(team="red") == [urgent.id, second.id]
    assert page(urgent, team="red") == [second.id]
    assert page(team="blue") == page(later) == []


def test_tasks_are_found_by_where_they_stand(store):
    plain = added(store)
    done = (added(store, tally=tally) for tally in (Tally(landed="c0ffee"), Tally(beaten="t-9")))
    landed, beaten = (replace(task, state=TaskState.DONE) for task in done)
    store.commit([Put(landed), Put(beaten)], [])
    stands = {
        "landed": landed,
        "beaten": beaten,
        "paused": added(store, paused=True),
        "assigned": added(store, spec=Spec(assignee="bob")),
        "held": added(store, caused_by="worker"),
        "children": added(store, join=Join.ALL),
        "waiting": added(store, after=(plain.id,)),
        "postponed": added(store, tally=Tally(not_before=1 << 60)),
        "asking": added(store),
    }
    a_question(store, stands["asking"])
    ended = added(store, paused=True)
    store.commit([Put(replace(ended, state=TaskState.CANCELLED))], [])
    for standing, task in stands.items():
        found = {one.id for one in store.tasks(TaskQuery(may_be=(standing,)))}
        assert task.id in found, standing
        assert not found & {plain.id, ended.id}, standing
    assert {one.id for one in store.tasks(TaskQuery(may_be=("ready",)))} >= {plain.id}
    assert not store.tasks(TaskQuery(may_be=("ready",), team="red"))
    both = store.tasks(TaskQuery(may_be=("asking", "waiting"), limit=1))
    assert [task.id for task in both] == [stands["asking"].id]
    assert set(STANDINGS) - {"landing", "ready"} == set(stands)


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("query", "index"),
    [
        (TaskQuery(may_be=("postponed",)), "task_postponed"),
        (TaskQuery(may_be=("postponed",), project="/p"), "task_postponed"),
        (TaskQuery(may_be=("ready",), project="/p"), "task_project"),
        (TaskQuery(may_be=("ready",), team="red"), "task_team"),
        (TaskQuery(may_be=("ready", "paused"), team="red"), "task_team"),
    ],
)
def test_tasks_that_stand_somewhere_are_found_without_reading_the_others(store, query, index):
    one = added(store)
    store.commit([Put(replace(one, id=f"t-{n}", version=0)) for n in range(1000, 4000)], [])
    store._db.rows("ANALYZE", {})
    sql, values = select_tasks(query)
    plan = [row[3] for row in store._db.rows(f"EXPLAIN QUERY PLAN {sql}", values)]
    assert any(index in step for step in plan), plan
    assert not any(step.startswith("SCAN task") for step in plan), plan


def test_a_task_that_the_supervisor_paused_is_found_until_it_is_resumed(store):
    stuck = added(store, paused=True, tally=Tally(stuck=True, why="No commit."))
    added(store, paused=True)
    assert store.tasks(TaskQuery(is_held=True)) == [stuck]
    store.commit([Put(replace(stuck, paused=False, tally=Tally()))], [])
    assert store.tasks(TaskQuery(is_held=True)) == []
    assert stuck.id in ready(store)


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


def test_a_question_waits_while_its_task_has_not_ended_and_in_the_team_of_its_task(store):
    red = added(store, team="red")
    asked = a_question(store, red)

    def waiting() -> list[list[str]]:
        return [[q.id for q in store.questions(team=team)] for team in ("", "red", "blue")]

    assert waiting() == [[asked.id], [asked.id], []]
    (blue,) = store.commit([Put(replace(store.task(red.id), team="blue"))], [])
    assert waiting() == [[asked.id], [], [asked.id]]
    (ended,) = store.commit([Put(replace(blue, state=TaskState.CANCELLED))], [])
    assert waiting() == [[], [], []]
    late = a_question(store, red)
    assert waiting() == [[], [], []]
    (again,) = store.commit([Put(replace(ended, state=TaskState.OPEN))], [])
    assert waiting() == [[asked.id, late.id], [], [asked.id, late.id]]
    store.commit([Put(replace(asked, state=MessageState.CLOSED))], [])
    assert waiting() == [[late.id], [], [late.id]]
    store.commit([Put(replace(again, state=TaskState.DONE))], [])
    assert waiting() == [[], [], []]


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


def test_events_of_some_kinds_are_read_from_a_time_on(store):
    kinds = [Kind.TASK_ADDED, Kind.RUN_STARTED, Kind.TASK_CLOSED]
    for n in range(30):
        at = 100 * (n // 3)
        store.commit([], [Event(kinds[n % 3], f"t-{n}", "ada", at)])
    assert store.number_before(0) == 0
    start = store.number_before(500)
    found = store.events_of_kinds((Kind.TASK_ADDED, Kind.TASK_CLOSED), after=start, limit=100)
    assert [(e.task, e.at) for e in found][:3] == [("t-15", 500), ("t-17", 500), ("t-18", 600)]
    assert len(found) == 10
    assert store.events_of_kinds((Kind.TASK_ADDED,), after=start, limit=1) == found[:1]
    last = store.number_before(10_000)
    assert store.events_of_kinds(kinds, after=last, limit=10) == []


def test_a_store_without_events_has_no_number_before_a_time(store):
    assert store.number_before(5) == 0


def words_found(store, text: str, **given) -> list[str]:
    return [t.id for t in store.search_tasks(TaskSearch(query_of(text), **given))]


def test_tasks_are_searched_by_the_words_of_their_title_and_prompt(store):
    one = added(store, title="Fix the Login", prompt="The session-cookie is refused.")
    two = added(
        store, title="Caf\u00e9 page", prompt="fix_it in src/app.py", team="red", project="/q"
    )
    added(store, title="Other", prompt="Nothing.")
    assert words_found(store, "LOGIN") == [one.id]
    assert words_found(store, "fix") == [two.id, one.id]
    assert words_found(store, "cook sess") == [one.id]
    assert words_found(store, "ookie") == []
    assert words_found(store, "it") == [two.id]
    assert words_found(store, "cafe\u0301 app py") == [two.id]
    assert words_found(store, "fix", team="red") == [two.id]
    assert words_found(store, "fix", project="/p") == [one.id]
    assert words_found(store, "fix", task=one.id) == [one.id]
    assert words_found(store, "fix", limit=1) == [two.id]
    assert words_found(store, "fix", since=store.now() + 1_000_000) == []


@pytest.mark.parametrize(
    "text",
    ['"', "'", "fix* AND", "NOT fix", "a:b", "^fix", "{words}: fix", "fix'':*", "\\ | & !", "NEAR(a b)",
     "x" * 5000, "\U0001f600 \u202e", "\u0130stanbul", "\ufdfa"],
)  # fmt: skip
def test_no_query_is_anything_but_words(store, text):
    task = added(store, title=f"Odd {text[:100]}", prompt=text)
    words = query_of(text)
    assert words_found(store, text) == ([task.id] if words else [])
    assert words_found(store, f"zebra {text}") == []


def test_a_long_prompt_of_different_words_can_be_searched(store):
    prompt = " ".join(f"w{n}\u00fc\U00020000" for n in range(60_000))
    task = added(store, prompt=prompt)
    assert words_found(store, "w17\u00fc") == [task.id]
    assert len(prompt) > MOST_SEARCHED


def test_a_task_that_was_edited_is_found_by_its_new_words_alone(store):
    task = added(store, title="Before", prompt="The cookie.")
    changed = replace(task, title="After", prompt="The token.")
    store.commit([Put(changed)], [Event(Kind.TASK_EDITED, task.id, "ada", store.now())])
    assert words_found(store, "token after") == [task.id]
    assert words_found(store, "cookie") == []
    assert words_found(store, "before") == []
    (still,) = store.commit([Put(replace(store.task(task.id), paused=True))], [])
    assert words_found(store, "token") == [still.id]


def test_words_are_indexed_when_somebody_looks_whatever_came_before(store):
    first = added(store, title="First")
    changed = replace(first, title="Second")
    store.commit([Put(changed)], [Event(Kind.TASK_EDITED, first.id, "ada", store.now())])
    while store.index_words(1):
        pass
    assert store.index_words() == 0
    assert words_found(store, "second") == [first.id]
    assert words_found(store, "first") == []


def test_a_piece_of_megabytes_comes_back_as_it_was(store):
    piece = Piece("f" * 40, 0, "QUJD" * 1_000_000, needs=("a" * 40,), roots=("b" * 40,))
    store.commit([Put(piece)], [])
    (back,) = store.pieces(["f" * 40, "0" * 40]).values()
    assert (
        back == replace(piece, version=1)
    ) is True  # a difference of that size is not for people
    with pytest.raises(Conflict):
        store.commit([Put(piece)], [])
