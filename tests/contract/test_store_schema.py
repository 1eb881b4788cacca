"""A store says which releases may read and write it."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest

from fleet.adapters.stores.migrations import LATEST
from fleet.adapters.stores.sql import SqlStore
from fleet.adapters.stores.sqlite import Sqlite
from fleet.app import open_store
from fleet.domain.errors import BadStore
from fleet.domain.event import Event, Kind
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.task import Task, TaskState
from fleet.ports import MessageQuery, Put, TaskQuery, TaskSearch
from fleet.testing.clock import START


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.real)])
def upgraded(request, tmp_path):
    """`upgraded(writes=7)`: a store as a release with the next schema leaves it; gives its URL."""
    sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path}/fleet.db" if sqlite else request.getfixturevalue("postgres_url")

    def make(**ranges: int) -> str:
        with closing(open_store(url)) as store:
            task = Task("t-1", 0, TaskState.OPEN, "Zebra", "", "/a", "me", created_at=START)
            store.commit([Put(task)], [Event(Kind.TASK_ADDED, "t-1", "me", START)])
        statements = ["DELETE FROM meta WHERE key IN ('writes', 'reads')"]  # what this one says
        statements += [f"INSERT INTO meta VALUES ('{k}', '{v}')" for k, v in ranges.items()]
        if sqlite:
            with closing(sqlite3.connect(tmp_path / "fleet.db", isolation_level=None)) as db:
                for sql in (*statements, f"PRAGMA user_version = {LATEST + 1}"):
                    db.execute(sql)
        else:
            import psycopg

            sets = f"UPDATE meta SET value = '{LATEST + 1}' WHERE key = 'schema'"
            with psycopg.connect(url, autocommit=True) as db:
                for sql in (*statements, sets):
                    db.execute(re.sub(r"\bmeta\b", "fleet.meta", sql))
        return url

    return make


def test_an_older_release_goes_on_where_the_newer_one_lets_it_write(upgraded):
    url = upgraded(writes=LATEST, reads=LATEST)
    for _ in range(2):  # and leaves the schema as it is
        with closing(open_store(url)) as store:
            store.commit([Put(store.task("t-1"))], [])
            assert store.new_id("t")
    with closing(open_store(url)) as store:
        assert store.task("t-1").version == 3


def test_it_reads_on_where_it_may_only_read_and_says_what_to_do(upgraded):
    with closing(open_store(upgraded(reads=LATEST))) as store:
        (task,) = store.tasks(TaskQuery())
        assert len(store.events()) == 1
        assert store.search_tasks(TaskSearch(("zebra",))) == []  # what is not indexed stays so
        for write in (
            lambda: store.commit([Put(task)], []),
            lambda: store.new_id("t"),
            lambda: store.forget_tasks([task]),
        ):
            with pytest.raises(BadStore, match="may still read") as refused:
                write()
            assert "fleet update" in refused.value.fix
        assert store.task("t-1") == task


def test_it_is_refused_where_it_may_not_even_read(upgraded):
    url = upgraded(writes=LATEST + 1, reads=LATEST + 1)
    with pytest.raises(BadStore, match=f"newer fleet .schema {LATEST + 1}; this one knows") as no:
        open_store(url)
    assert "fleet update" in no.value.fix


def steps_of(path, ask) -> int:
    """Of SQLite's machine, in tens."""
    counted = Sqlite(path)
    with closing(SqlStore(counted)) as store:
        steps: list[int] = []
        counted._db.set_progress_handler(lambda: steps.append(1), 10)
        ask(store)
        return len(steps)


def steps_of_questions(tmp_path, ended: int) -> int:
    """To find one question among those that ended tasks left open."""
    path = tmp_path / f"{ended}.db"
    with closing(SqlStore(Sqlite(path))) as store, store.together():
        for number in range(1, ended + 2):
            state = TaskState.OPEN if number > ended else TaskState.CANCELLED
            task = Task(f"t-{number}", 0, state, "x", "", "/a", "me", created_at=START)
            kind, wait = MessageKind.QUESTION, MessageState.OPEN
            asked = Message(f"m-{number}", 0, task.id, "me", kind, "Which?", wait, START)
            store.commit([Put(task), Put(asked)], [])

    def ask(store) -> None:
        for team in ("", "local"):
            assert [question.id for question in store.questions(team=team)] == [f"m-{ended + 1}"]

    return steps_of(path, ask)


def test_a_question_is_found_past_any_number_that_ended_tasks_left_open(tmp_path):
    assert steps_of_questions(tmp_path, 500) <= 2 * steps_of_questions(tmp_path, 5)


def steps_of_a_board(tmp_path, archived: int) -> int:
    """To read the one post that is not archived."""
    path = tmp_path / f"{archived}.db"
    kind, data = MessageKind.POST, {"type": "status"}
    with closing(SqlStore(Sqlite(path))) as store, store.together():
        for number in range(1, archived + 2):
            state = MessageState.ARCHIVED if number > 1 else MessageState.CLOSED
            said = Message(f"m-{number}", 0, "t-1", "me", kind, "", state, START, data=data)
            store.commit([Put(said)], [])

    def ask(store) -> None:
        query = MessageQuery(kind, "t-1", state=str(MessageState.CLOSED), limit=100)
        for each in (query, query._replace(type="status")):
            assert [post.id for post in store.find_messages(each)] == ["m-1"]

    return steps_of(path, ask)


def test_a_board_is_read_past_any_number_of_archived_posts(tmp_path):
    assert steps_of_a_board(tmp_path, 500) <= 2 * steps_of_a_board(tmp_path, 5)
