"""What every store promises about claims: one commit, only what is still free, never over a limit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from fleet.adapters.stores.log.store import LogStore
from fleet.adapters.stores.sql import SqlStore
from fleet.adapters.stores.sqlite import Sqlite
from fleet.domain.event import Event, Kind
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.run import Choice, Slots
from fleet.domain.schedule import Claim
from fleet.domain.task import Mode, Spec, Tally, Task, TaskState
from fleet.domain.task import claim as claimed
from fleet.ports import Put, TaskQuery
from fleet.testing.folder_log import FolderLog


def added(store, **given) -> Task:
    given = {"title": "Do it", "prompt": "do it", "project": "/p", "author": "me"} | given
    at = store.now()
    task = Task(id=store.new_id("t"), version=0, state=TaskState.OPEN, created_at=at, **given)
    (task,) = store.commit([Put(task)], [])
    return task


def claim_of(task: Task, *, host="h", room=None) -> Claim:
    room = {f"host {host}": 9} if room is None else room
    running, run = claimed(task, Choice("a", "c"), host=host, holder="#1", slots=tuple(room), at=5)
    return Claim(running, run, Event(Kind.RUN_CLAIMED, task.id, "supervisor", 5, run.id), room)


def test_claims_write_tasks_runs_slots_and_events_in_their_order(store):
    tasks = [added(store) for _ in range(3)]
    runs = store.claim([claim_of(task) for task in tasks])
    assert [run.id for run in runs] == [f"{task.id}.1" for task in tasks]
    assert store.live_runs(host="h") == runs
    assert [store.task(t.id) for t in tasks] == [
        replace(claim_of(t).task, version=2) for t in tasks
    ]
    assert store.slots(["host h"])["host h"].holders == tuple(run.id for run in runs)
    events = store.events()
    assert [(e.type, e.run) for e in events] == [(Kind.RUN_CLAIMED, run.id) for run in runs]
    assert store.candidates(now=store.now(), limit=9) == []


def test_a_claimed_task_is_listed_as_what_it_is_now(store):
    task = added(store, spec=Spec(branch="old"))
    one = claim_of(task)
    edited = replace(one.task, spec=Spec(branch="new", priority=1, mode=Mode.NOW))
    store.claim([one._replace(task=edited)])
    now = replace(edited, version=2)
    assert store.tasks(TaskQuery(states=("running",))) == [now]
    assert store.tasks(TaskQuery(branches=("new",))) == [now]
    assert store.tasks(TaskQuery(branches=("old",))) == []
    assert store.tasks(TaskQuery(states=("open",))) == []
    assert store.tasks(TaskQuery(at_work=True)) == [now]
    assert store.counts() == {"running": 1}


def test_no_claims_are_no_commit(store):
    assert store.claim([]) == []
    assert store.events() == []


def test_a_task_that_changed_is_passed_over_and_the_others_are_claimed(store):
    first, second, third = (added(store) for _ in range(3))
    claims = [claim_of(task) for task in (first, second, third)]
    store.commit([Put(replace(second, title="Another"))], [])
    assert [run.task for run in store.claim(claims)] == [first.id, third.id]
    assert store.task(second.id).state is TaskState.OPEN


def test_a_task_is_claimed_once(store):
    task = added(store)
    (run,) = store.claim([claim_of(task, host="h")])
    assert store.claim([claim_of(task, host="g")]) == []
    assert store.runs(task.id) == [run]
    assert "host g" not in store.slots() or not store.slots()["host g"].holders


def test_a_task_that_asks_meanwhile_is_passed_over_until_it_is_answered(store):
    task = added(store)
    question = Message(
        store.new_id("m"), 0, task.id, "me", MessageKind.QUESTION, "Which?", MessageState.OPEN, 1
    )
    (question,) = store.commit([Put(question)], [])
    assert store.claim([claim_of(store.task(task.id))]) == []
    store.commit([Put(replace(question, state=MessageState.CLOSED))], [])
    assert len(store.claim([claim_of(store.task(task.id))])) == 1


def test_a_run_that_exists_is_not_written_again(store):
    first, second = added(store), added(store)
    there = replace(claim_of(first).run, host="g")
    store.commit([Put(there)], [])
    assert [r.task for r in store.claim([claim_of(first), claim_of(second)])] == [second.id]
    assert store.run(there.id).host == "g"


def test_no_slot_has_more_holders_than_it_has_room(store):
    tasks = [added(store) for _ in range(4)]
    store.commit([Put(Slots("model m", 0, ("t-99.1",), parked_until=7, why="x"))], [])
    claims = [claim_of(task, room={"host h": 3, "model m": 3}) for task in tasks]
    assert [run.task for run in store.claim(claims)] == [tasks[0].id, tasks[1].id]
    held = store.slots(["host h", "model m"])
    assert [len(held[name].holders) for name in ("host h", "model m")] == [2, 3]
    assert (held["model m"].parked_until, held["model m"].why) == (7, "x")
    assert store.claim([claim_of(tasks[2], room={"host h": 3})])
    assert not store.claim([claim_of(tasks[3], room={"host h": 3})])


def test_a_slot_that_was_claimed_can_be_read_back_and_released(store):
    task = added(store)
    (run,) = store.claim([claim_of(task)])
    (row,) = store.slots(["host h"]).values()
    store.commit([Put(replace(row, holders=()))], [])
    assert store.slots(["host h"])["host h"].holders == ()
    assert run.slots == ("host h",)


def test_a_host_that_is_going_to_claim_sees_the_same_candidates_when_it_is_alone(store):
    low = added(store, spec=Spec(priority=3))
    urgent = added(store, spec=Spec(priority=0))
    due = added(store, spec=Spec(priority=1), tally=Tally(not_before=1))
    now = store.now()
    expected = [urgent.id, due.id, low.id]
    assert [t.id for t in store.candidates(now=now, limit=9)] == expected
    for host in ("h", "g", "h"):
        assert [t.id for t in store.offer(host, now=now, limit=9).tasks] == expected


def test_an_offer_has_the_slots_that_were_asked_for_and_exist(store):
    (run,) = store.claim([claim_of(added(store), room={"model m": 3})])
    added(store)
    offer = store.offer("h", now=store.now(), limit=9, names=["host h", "model m"])
    assert len(offer.tasks) == 1
    assert offer.slots == store.slots(["model m"])
    assert offer.slots["model m"].holders == (run.id,)
    assert store.offer("h", now=store.now(), limit=9).slots == {}


@pytest.fixture
def opened(store, request, tmp_path):
    """Opens the same store for another host, which is not the process of the first."""
    made = []

    def another():
        if isinstance(store, LogStore) and "log" in request.node.callspec.params.values():
            one = LogStore(FolderLog(tmp_path / "log", most=1000), tmp_path / f"r{len(made)}.db")
        elif type(store) is SqlStore:
            one = SqlStore(Sqlite(tmp_path / "fleet.db"))
        else:
            from fleet.adapters.stores.postgres.store import open_url

            one = open_url(request.getfixturevalue("postgres_url"), None, None)
        made.append(one)
        return one

    return another


KINDS = ["sqlite", "log", pytest.param("postgres", marks=pytest.mark.real)]


@pytest.mark.parametrize("store", KINDS, indirect=True)
def test_hosts_that_claim_at_once_share_the_tasks_and_the_slots(store, opened):
    tasks, hosts, room = 60, 4, 25
    for _ in range(tasks):
        added(store)

    def work(host: str) -> list[str]:
        mine, made = opened(), []
        empty = 0
        while empty < 3:
            offered = mine.offer(host, now=mine.now(), limit=4).tasks
            shared = {f"host {host}": tasks, "model m": room}
            runs = mine.claim([claim_of(task, host=host, room=shared) for task in offered])
            made += [run.id for run in runs]
            empty = 0 if runs else empty + 1
        mine.close()
        return made

    with ThreadPoolExecutor(hosts) as pool:
        made = [run for runs in pool.map(work, [f"h{n}" for n in range(hosts)]) for run in runs]
    assert len(made) == len(set(made)) == room
    rows = store.slots()
    assert sorted(rows["model m"].holders) == sorted(made)
    assert sum(len(r.holders) for n, r in rows.items() if n.startswith("host ")) == room
    assert len(store.tasks(TaskQuery(states=("running",), limit=tasks))) == room
    numbers = [event.number for event in store.events()]
    assert numbers == sorted(set(numbers))
    assert sorted(event.run for event in store.events()) == sorted(made)


@pytest.mark.real
@pytest.mark.parametrize("store", ["postgres"], indirect=True)
def test_hosts_that_look_at_once_are_offered_different_tasks_in_order(store):
    tasks = [added(store).id for _ in range(8)]
    now = store.now()

    def look(host, limit=3):
        return [task.id for task in store.offer(host, now=now, limit=limit).tasks]

    assert look("a") == tasks[:3]
    assert look("b") == tasks[3:6]
    assert look("a") == tasks[:3], "its own are offered again"
    assert look("c") == tasks[:3], "fewer are left than it asks for: all are shown in their order"
    assert len(store.claim([claim_of(store.task(tasks[0]), host="a")])) == 1
    assert look("d", 2) == tasks[1:3], "what the host did not take is free again"
