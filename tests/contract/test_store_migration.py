"""A store in which mail, chats and hand-offs were entries is brought up, and nothing of it is lost."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import closing

import pytest

from fleet.app import open_store
from fleet.domain.access import Actor, Role
from fleet.domain.entry import EntryKind
from fleet.domain.errors import NotFound
from fleet.domain.message import MessageKind, MessageState
from fleet.domain.run import Checkpoint, DoneItem, Summary
from fleet.domain.search import query_of
from fleet.operations.catalogue import Context, perform
from fleet.operations.messages.boards import ReadBoard
from fleet.operations.messages.chats import ListChats, MarkChat, OpenChat, ReadChat, Say
from fleet.operations.messages.deliver import is_read, read_marks
from fleet.operations.messages.mail import ListMail, ReadMail, SendMail
from fleet.operations.messages.remembered import known_to
from fleet.operations.team.checkpoints import AcceptCheckpoint, ListCheckpoints, LoadCheckpoint
from fleet.operations.team.members import ShowMember, uid_of
from fleet.ports import EntryQuery, MessageQuery, TaskQuery, TaskSearch
from tests.contract.old_stores import old_postgres, old_sqlite

ADA = Actor("ada", Role.COORDINATOR, "red")
BOB = Actor("bob", Role.WORKER, "red")
ZOE = Actor("zo\u00eb", Role.WORKER, "bl\u00e5")
CHAT = "924d8ea53d4e9e7c"


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.real)])
def old(request, tmp_path):
    """Makes the old store, with so many mails more, and gives its URL."""

    def make(more: int = 0) -> str:
        if request.param == "sqlite":
            old_sqlite(tmp_path / "fleet.db", more=more)
            return f"sqlite:///{tmp_path / 'fleet.db'}"
        url = request.getfixturevalue("postgres_url")
        old_postgres(url, more=more)
        return url

    return make


@pytest.fixture
def store(old):
    with closing(open_store(old())) as opened:
        yield opened


def call(store, request, actor=ADA):
    return perform(Context(actor, store, lambda: None, lambda _: None), request)


def test_mail_keeps_its_id_its_words_and_whether_it_was_read(store):
    rows = call(store, ListMail(), BOB)
    assert [(m.id, m.sender, m.to, m.team) for m in rows] == [
        (i, "ada", "bob", "red") for i in ("e-9", "e-6", "e-5")
    ]
    assert [(m.subject, m.text) for m in rows[1:]] == [
        ("Two\u2028lines", 'Unread: \u00fcber \U0001f600 "quoted" \\ end.'),
        ("Hi", "Read it."),
    ]
    assert [bool(m.read_at) for m in rows] == [False, False, True]
    assert [m.id for m in call(store, ListMail(unread=True), BOB)] == ["e-9", "e-6"]
    assert call(store, ReadMail("e-6"), BOB).read_at
    assert [m.id for m in call(store, ListMail(unread=True), BOB)] == ["e-9"]
    assert [m.text for m in call(store, ListMail(), ZOE)] == ["Elsewhere."]


def test_new_mail_comes_after_what_was_there_and_pages_go_on_across_both(store):
    new = call(store, SendMail("bob", "New."))
    assert new.id.startswith("m-")
    assert [m.id for m in call(store, ListMail(limit=2), BOB)] == [new.id, "e-9"]
    assert [m.id for m in call(store, ListMail(before=new.id), BOB)] == ["e-9", "e-6", "e-5"]
    assert [m.id for m in call(store, ListMail(before="e-6"), BOB)] == ["e-5"]


def test_a_chat_keeps_its_lines_and_how_far_each_has_read(store):
    (line, *_), chats = call(store, ReadChat(CHAT), BOB), call(store, ListChats(), BOB)
    assert [(c.participants, c.unread) for c in chats] == [((), 0), (("ada", "bob"), 1)]
    assert (line.id, line.author, line.text, line.data) == ("e-15", "ada", "Line 3", "{}")
    new = call(store, Say(CHAT, "New."))
    lines = call(store, ReadChat(CHAT), BOB)
    assert [row.id for row in lines] == [new.id, "e-15", "e-14", "e-13", "e-12"]
    assert lines[-1].data == '{"n":0}'
    assert [row.id for row in call(store, ReadChat(CHAT, after="e-14"), BOB)] == [new.id, "e-15"]
    assert call(store, MarkChat(CHAT), BOB).unread == 0
    assert call(store, OpenChat(("bob",))).id == CHAT


def test_hand_offs_keep_their_summary_and_what_became_of_them(store):
    rows = call(store, ListCheckpoints("bob"))
    assert [(c.id, c.status, c.why) for c in rows] == [
        ("e-20", "rejected", "Not mine."),
        ("e-19", "accepted", ""),
        ("e-18", "pending", ""),
    ]
    assert [bool(c.settled_at) for c in rows] == [True, True, False]
    pending = call(store, LoadCheckpoint("e-18"), BOB)
    assert (pending.sender, pending.task) == ("t-2.1", "t-2")
    assert pending.summary == Summary(
        "A port",
        "It is chosen",
        "make test",
        (DoneItem("Read it", ("a.py", "b.py")), DoneItem("Wrote it")),
        ("none",),
        ("why?",),
        ("more", "yet more"),
        ("this",),
        ("that",),
        ("c.py",),
    )
    assert call(store, AcceptCheckpoint("e-18"), BOB).status == "accepted"


def test_words_that_waited_are_still_of_the_mail_that_they_tell(store):
    words = [m for m in store.messages("t-2") if m.kind is MessageKind.WORDS]
    assert [m.text for m in words] == [
        "Words.",
        "[Mail from bob]\nFor the agent.",
        "[To the whole team, from ada: All]\nHear!",
        "[status from ada, board of t-2]\nPosted",
    ]
    plain, mail, *_ = words
    assert read_marks(store, plain, "t-2.1", now=5) == []
    (put,) = read_marks(store, mail, "t-2.1", now=5)
    assert (put.record.id, put.record.state) == ("e-7", MessageState.CLOSED)
    assert not is_read(store, mail, "t-2.1")
    store.commit([put], [])
    assert is_read(store, mail, "t-2.1")


def test_all_else_is_as_it_was(store):
    checkpoint = Checkpoint("c0ffee", "session-1", "Half of it is there.")
    assert store.task("t-1").tally.checkpoint == checkpoint
    assert store.run("t-1.1").outcome.checkpoint == checkpoint
    assert [m.kind for m in store.messages("t-1")] == ["question", "note"]
    assert [m.id for m in store.open_messages("question")] == ["m-1"]
    assert [p.readers for p in call(store, ReadBoard("t-2"))] == [("bob",)]
    assert len(store.entries(EntryQuery(EntryKind.MEMBER))) == 4
    assert len(store.entries(EntryQuery(EntryKind.MEMORY))) == 1
    assert len(store.entries(EntryQuery(EntryKind.FILE))) == 1
    for moved in ("e-5", "e-12", "e-18"):
        with pytest.raises(NotFound):
            store.entry_by_id(moved)
    assert known_to(store, store.task("t-1"), []) == ""


def test_tasks_of_before_are_found_by_branch_assignee_and_as_agents(old):
    url = old()
    with closing(connection(url)) as db:
        for seq, spec in (1, {"branch": "fix/login", "assignee": "bob"}), (2, {"mode": "terminal"}):
            ((body,),) = db.execute(f"SELECT body FROM task WHERE seq = {seq}").fetchall()
            body = json.dumps(json.loads(body) | {"spec": spec}).replace("'", "''")
            db.execute(f"UPDATE task SET body = '{body}', state = 'open' WHERE seq = {seq}")
        db.commit()
    with closing(open_store(url)) as store:
        ids = [
            [task.id for task in store.tasks(query)]
            for query in (
                TaskQuery(branches=("fix/login",)),
                TaskQuery(branch_end="login"),
                TaskQuery(assignee="bob"),
                TaskQuery(at_work=True),
            )
        ]
        assert ids == [["t-1"], ["t-1"], ["t-1"], ["t-2"]]
        assert [p.type for p in call(store, ReadBoard("t-2", type="status"))] == ["status"]
        assert call(store, ReadBoard("t-2", type="request")) == ()
        assert call(store, ShowMember(uid_of("red", "bob"))).name == "bob"


def test_tasks_of_before_are_searched_by_their_words(old):
    with closing(open_store(old())) as store:
        for task in store.tasks(TaskQuery()):
            search = TaskSearch(query_of(task.title))
            assert task.id in [found.id for found in store.search_tasks(search)]
        assert store.tasks(TaskQuery())


def test_tasks_of_before_that_are_held_are_found(old):
    url = old()
    with closing(connection(url)) as db:
        for seq, more in (1, {"caused_by": "worker"}), (2, {"title": '"caused_by":"worker"'}):
            ((body,),) = db.execute(f"SELECT body FROM task WHERE seq = {seq}").fetchall()
            text = json.dumps(json.loads(body) | more, separators=(",", ":")).replace("'", "''")
            db.execute(
                f"UPDATE task SET body = '{text}', state = 'open', held = 1 WHERE seq = {seq}"
            )
        db.commit()
    with closing(open_store(url)) as store:
        assert [task.id for task in store.tasks(TaskQuery(is_held=True))] == ["t-1"]


OPEN = """
import os, signal, sys
from fleet.app import open_store
url, name, event, times = sys.argv[1:]
left = int(times)
def watch(frame, happened, _):
    global left
    code = frame.f_code
    if (code.co_name, happened) == (name, event) and code.co_filename.endswith("speech.py"):
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)
sys.setprofile(watch)
open_store(url)
"""


@pytest.mark.parametrize(
    ("name", "event", "times"),
    [("_mail", "call", 1), ("_mail", "call", 900), ("carry", "return", 1)],
    ids=["at the first row", "in the middle", "before the commit"],
)
def test_killed_in_the_middle_it_is_as_it_was_and_is_brought_up_by_the_next(
    old, name, event, times
):
    url = old(1000)
    child = [sys.executable, "-c", OPEN, url, name, event, str(times)]
    assert subprocess.run(child, check=False).returncode == -signal.SIGKILL
    with closing(connection(url)) as db:
        ((left,),) = db.execute("SELECT count(*) FROM entry WHERE kind = 'mail'").fetchall()
        ((moved,),) = db.execute("SELECT count(*) FROM message WHERE kind = 'mail'").fetchall()
    assert (left, moved) == (1006, 0)
    with closing(open_store(url)) as store:
        query = MessageQuery(MessageKind.MAIL, team="red", topic="many", limit=2000)
        mails = store.find_messages(query)
        assert [m.id for m in mails] == [f"e-{n}" for n in range(1999, 999, -1)]
        assert [m.text for m in mails[:2]] == ["1999", "1998"]
        assert len(call(store, ListMail(), BOB)) == 3


def test_a_process_of_the_code_before_is_refused_and_not_ignored(old):
    """It was there before the upgrade, and goes on writing mail where nobody looks any more."""
    url = old()
    open_store(url).close()
    insert = (
        "INSERT INTO entry (seq, id, version, kind, team, key, owner, until, words, body) "
        "VALUES (99, 'e-99', 1, '{}', 'red', 'k', 'bob', 0, '', '') ON CONFLICT DO NOTHING"
    )
    refused = pytest.raises(Exception, match=r"this.store.was.upgraded")
    with closing(connection(url)) as db, refused:
        db.execute(insert.format("mail"))
    with closing(connection(url)) as db:
        db.execute(insert.format("memory"))
    task = (
        "INSERT INTO task (seq, id, version, state, priority, created_at, not_before, held, "
        "blockers, needs, project, team, parent, body) "
        "VALUES (99, 't-99', 1, 'open', 2, 1, 0, 0, 0, '', '', 'red', '', '{}')"
    )
    refused = pytest.raises(Exception, match=r"this.store.was.upgraded|newer.schema")
    with closing(connection(url)) as db, refused:
        db.execute(task)


def connection(url: str):
    if url.startswith("sqlite"):
        import sqlite3

        return sqlite3.connect(url.removeprefix("sqlite:///"))
    import psycopg

    return psycopg.connect(url, options="-c search_path=fleet")
