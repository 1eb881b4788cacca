"""`fleet store copy`: whatever kind of store it was, the other tells the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from itertools import count

import pytest

from fleet.adapters.stores.log.store import LogStore
from fleet.adapters.stores.transfer import Begin, Load, tallies
from fleet.app import open_store
from fleet.app.store.copy import copy_store
from fleet.domain.entry import Entry, EntryKind
from fleet.domain.errors import BadStore, Refused
from fleet.domain.event import Event, Kind
from fleet.domain.hosts.piece import Piece
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.run import Choice, Host, Run, RunState, Slots
from fleet.domain.task import Task, TaskState
from fleet.ports import Put, TaskQuery, TaskSearch
from fleet.testing.clock import START
from fleet.testing.folder_log import FolderLog
from tests import clouds

REAL = ("postgres", *clouds.KINDS)
PAIRS = [
    ("sqlite", "log"),
    ("log", "sqlite"),
    ("sqlite", "sqlite"),
    *(pytest.param(*pair, marks=pytest.mark.real) for kind in REAL for pair in (("sqlite", kind), (kind, "sqlite"))),
    *(pytest.param("postgres", kind, marks=pytest.mark.real) for kind in clouds.KINDS),
    *(pytest.param(kind, "postgres", marks=pytest.mark.real) for kind in clouds.KINDS),
    pytest.param("s3", "dynamodb", marks=pytest.mark.real),
    pytest.param("dynamodb", "firestore", marks=pytest.mark.real),
    pytest.param("firestore", "s3", marks=pytest.mark.real),
]  # fmt: skip


@pytest.fixture
def opener(request, tmp_path):
    """`opener(kind)` is a new store of that kind: a function that opens it, each time anew."""
    numbers = count(1)

    def make(kind: str):
        number = next(numbers)
        if kind == "postgres":
            url = request.getfixturevalue("postgres_url")
            return lambda: open_store(url, schema=f"s{number}_{os.getpid()}", copying=True)
        if kind in clouds.KINDS:
            cloud = request.getfixturevalue("cloud")
            url = cloud.url(kind)
            copies = (tmp_path / f"copies-{number}-{n}" for n in count())
            return lambda: open_store(url, copies=next(copies), copying=True)
        if kind == "sqlite":
            return lambda: open_store(f"sqlite:///{tmp_path}/{number}.db", copying=True)
        replicas = (tmp_path / f"replica-{number}-{n}.db" for n in count())
        log = tmp_path / f"log-{number}"
        return lambda: LogStore(FolderLog(log, most=1000), next(replicas), copying=True)

    return make


def task_of(number: int, **given) -> Task:
    return Task(
        f"t-{number}", 0, state=TaskState.OPEN, title=f"Task {number}", prompt="zebra\u00e9 \0",
        project="/a", author="me", created_at=START, **given,
    )  # fmt: skip


def run_of(number: int, state: RunState) -> Run:
    choice = Choice("implementer", "claude")
    return Run(f"t-1.{number}", 0, "t-1", state, choice, host="h", holder="x", claimed_at=START)


def host_of(name: str) -> Host:
    return Host(name, 0, name, holder="", boot="b", lease_until=0)


def fill(store, tasks: int = 3) -> None:
    """Tasks that wait for each other, a question, and one of some other records."""
    for n in range(1, tasks + 1):
        assert store.new_id("t") == f"t-{n}"
        task = task_of(n, after=(f"t-{n - 1}",) if n > 1 else ())
        store.commit([Put(task)], [Event(Kind.TASK_ADDED, task.id, "m\u00e9\0", START + n)])
    edited = Event(Kind.TASK_EDITED, "t-1", "me", START + 9)
    store.commit([Put(replace(store.task("t-1"), title="Changed"))], [edited])
    question, opened = MessageKind.QUESTION, MessageState.OPEN
    asked = Message(store.new_id("m"), 0, "t-2", "t-2.1", question, "Which?", opened, START)
    memory = Entry(store.new_id("e"), 0, EntryKind.MEMORY, "red", "k\u00e9", "me", START, text="A")
    piece = Piece("ab" * 20, 0, "AAAA" * 1000, needs=("cd" * 20,), at=START)
    others = (run_of(1, RunState.ENDED), asked, memory, piece, Slots("gpu", 0), host_of("h"))
    store.commit([Put(record) for record in others], [])


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_the_copy_tells_the_same_and_goes_on_where_the_other_was(opener, source, target):
    opens, into = opener(source), opener(target)
    with closing(opens()) as old:
        fill(old)
        copied = copy_store(old, into)
        assert copied.counts["task"] == 3
        assert copied.counts["event"] == 4
        with closing(into()) as new:
            assert [t.version for t in new.tasks(TaskQuery())] == [1, 1, 2]
            assert new.tasks(TaskQuery()) == old.tasks(TaskQuery())
            assert new.events() == old.events()
            assert new.pieces(["ab" * 20]) == old.pieces(["ab" * 20])
            assert new.search_tasks(TaskSearch(("zebra",))) == old.search_tasks(
                TaskSearch(("zebra",))
            )
            last = new.events(newest=True, limit=1)[0].number
            now = START + 10**9
            assert [t.id for t in new.candidates(now=now, limit=9)] == ["t-1"]
            done = replace(new.task("t-1"), state=TaskState.DONE)
            new.commit([Put(done)], [Event(Kind.TASK_SETTLED, "t-1", "me", now)])
            assert [e.number > last for e in new.events(after=last)] == [True]
            assert new.candidates(now=now, limit=9) == []  # t-2 still has its question
            (question,) = new.open_questions(["t-2"])
            new.commit([Put(replace(question, state=MessageState.CLOSED))], [])
            assert [t.id for t in new.candidates(now=now, limit=9)] == ["t-2"]
            assert new.new_id("t") == "t-4"
            assert (new.new_id("m"), new.new_id("e")) == ("m-2", "e-2")


def test_a_store_that_has_anything_is_no_target(opener):
    opens, into = opener("sqlite"), opener("log")
    with closing(opens()) as old, closing(into()) as taken:
        fill(old)
        taken.commit([Put(host_of("other"))], [])
        with pytest.raises(Refused, match="rows in `host`"):
            copy_store(old, into)
        assert list(taken.hosts()) == ["other"]


def test_a_source_that_is_worked_on_is_copied_only_with_force(opener):
    opens, into = opener("sqlite"), opener("sqlite")
    with closing(opens()) as old:
        fill(old)
        old.commit([Put(run_of(2, RunState.RUNNING))], [])
        with pytest.raises(Refused, match="1 run is at work"):
            copy_store(old, into)
        assert copy_store(old, into, force=True).counts["run"] == 2


def test_what_was_written_meanwhile_leaves_the_target_half_copied(opener, tmp_path):
    opens, into = opener("sqlite"), opener("sqlite")
    with closing(opens()) as old, closing(opens()) as other:
        fill(old)

        def add_one(table, _rows):
            if table == "event" and not other.tasks_by_id(["t-4"]):
                other.commit([Put(task_of(4))], [Event(Kind.TASK_ADDED, "t-4", "me", START)])

        with pytest.raises(Refused, match="written to the source"):
            copy_store(old, into, progress=add_one)
        with pytest.raises(BadStore, match="half-copied"):
            open_store(f"sqlite:///{tmp_path}/2.db")
        assert copy_store(old, into).counts["task"] == 4


@pytest.mark.parametrize(
    "kind", ["sqlite", "log", *(pytest.param(k, marks=pytest.mark.real) for k in REAL)]
)
def test_a_half_copied_store_is_refused_and_can_be_filled_again(opener, kind):
    opens, into = opener("sqlite"), opener(kind)
    with closing(opens()) as old:
        fill(old)
        with closing(into()) as first:
            first.transfer(Begin("mark"))
            with old.one_moment() as db:
                row = db.rows("SELECT id, version, body FROM task WHERE seq = 2", {})
            first.transfer(Load("mark", "task", row))
            copied = copy_store(old, into)
            with pytest.raises(Refused, match="Another"):
                first.transfer(Load("mark", "task", row))
        with closing(into()) as new, new.one_moment() as db:
            assert {name: tally.rows for name, tally in tallies(db).items()} == copied.counts


CHILD = """
import sys
from fleet.app import open_store
from fleet.app.store.copy import copy_store
def stop(table, rows):
    if table == "event":
        print("half", flush=True)
        sys.stdin.read()
old = open_store(sys.argv[1])
copy_store(old, lambda: open_store(sys.argv[2], copying=True), progress=stop)
"""


def test_a_copy_that_was_killed_leaves_what_nobody_opens_and_another_copy_finishes(tmp_path):
    old_url, new_url = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/new.db"
    with closing(open_store(old_url)) as old:
        fill(old)
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, old_url, new_url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert child.stdout.readline() == "half\n"
        child.send_signal(signal.SIGKILL)
        child.wait()
        with pytest.raises(BadStore, match="half-copied") as refused:
            open_store(new_url)
        assert "again" in refused.value.fix
        copy_store(old, lambda: open_store(new_url, copying=True))
    with closing(open_store(new_url)) as new:
        assert len(new.tasks(TaskQuery())) == 3
