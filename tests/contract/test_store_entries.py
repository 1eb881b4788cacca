"""What every store promises of entries and posts: in memory, SQLite, PostgreSQL."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleet.adapters.stores.sql import SqlStore
from fleet.adapters.stores.sqlite import Sqlite
from fleet.domain.entry import Entry, EntryKind
from fleet.domain.errors import Conflict, NotFound
from fleet.domain.message import Details, Message, MessageKind, MessageState, Receipt
from fleet.domain.run import Checkpoint, DoneItem, Summary
from fleet.ports import EntryQuery, MessageQuery, Put, Same


def an_entry(store, key="k", kind=EntryKind.MEMORY, team="red", owner="ann", **given) -> Entry:
    return Entry(store.new_id("e"), 0, kind, team, key, owner, 5, **given)


def kept(store, *args, **given) -> Entry:
    (entry,) = store.commit([Put(an_entry(store, *args, **given))], [])
    return entry


def test_what_counts_no_longer_is_removed_of_one_kind_and_team_alone(store):
    gone, kept_on = kept(store, "a", until=10), kept(store, "b", until=11)
    others = [
        kept(store, "c"),
        kept(store, "d", team="blue", until=10),
        kept(store, "e", kind=EntryKind.FILE, until=10),
    ]
    store.prune(EntryKind.MEMORY, "red", now=10)
    with pytest.raises(NotFound):
        store.entry_by_id(gone.id)
    for entry in (kept_on, *others):
        assert store.entry_by_id(entry.id) == entry


def test_an_entry_comes_back_as_it_was_put(store):
    put = an_entry(store, "a/\u00fc b", until=9, text="\u00dcber", body={"n": [1, {"x": None}]})
    (entry,) = store.commit([Put(put)], [])
    assert entry == replace(put, version=1)
    assert store.entry("memory", "red", "a/\u00fc b") == entry
    assert store.entry_by_id(entry.id) == entry
    assert store.entry("memory", "blue", "a/\u00fc b") is None
    assert store.entry("file", "red", "a/\u00fc b") is None


@pytest.mark.parametrize("odd", ["e-404", "", "nonsense"])
def test_an_entry_that_is_not_there_is_not_found(store, odd):
    kept(store)
    with pytest.raises(NotFound):
        store.entry_by_id(odd)


def test_of_a_kind_team_and_key_there_is_one(store):
    first = kept(store)
    with pytest.raises(Conflict):
        kept(store)
    kept(store, team="blue")
    kept(store, kind=EntryKind.FILE)
    with pytest.raises(Conflict):
        store.commit([Put(replace(first, key="other"))], [])
    assert store.entry("memory", "red", "k") == first


def test_a_change_since_it_was_read_is_a_conflict(store):
    first = kept(store)
    (second,) = store.commit([Put(replace(first, owner="bob", until=7))], [])
    assert (second.version, store.entry_by_id(first.id).owner) == (2, "bob")
    for stale in (Put(first), Same(first)):
        with pytest.raises(Conflict):
            store.commit([stale], [])
    store.commit([Same(second)], [])


def keys(store, **given) -> list[str]:
    return [e.key for e in store.entries(EntryQuery("memory", **given))]


def test_entries_are_found_by_team_and_owner_newest_first_in_pages(store):
    made = [kept(store, f"k{n}", owner="ann" if n % 2 else "bob") for n in range(5)]
    kept(store, "theirs", team="blue")
    kept(store, "else", kind=EntryKind.FILE)
    assert keys(store, team="red") == ["k4", "k3", "k2", "k1", "k0"]
    assert keys(store, team="red", limit=2) == ["k4", "k3"]
    assert keys(store, team="red", limit=2, before=made[3].id) == ["k2", "k1"]
    assert keys(store, owner="bob") == ["k4", "k2", "k0"]
    assert keys(store, team="red", owner="nobody") == []
    assert len(keys(store)) == 6


def test_entries_are_found_by_the_words_in_their_text(store):
    kept(store, "a", text="The Login needs 100% care_ful work!")
    kept(store, "b", text="logout")
    kept(store, "c", text="STRASSE und Stra\u00dfe")
    assert keys(store, text="LOGIN") == ["a"]
    assert keys(store, text="log") == ["b", "a"]
    assert keys(store, text="care login") == ["a"]
    assert keys(store, text="login logout") == []
    assert keys(store, text="100%") == ["a"]
    assert keys(store, text="1%c") == []
    assert keys(store, text="e_f") == ["a"]
    assert keys(store, text="l_g") == []
    assert keys(store, text="work!") == ["a"]
    assert keys(store, text="strasse") == ["c"]


def test_what_counts_no_more_can_be_left_out(store):
    kept(store, "ever")
    kept(store, "soon", until=10)
    kept(store, "over", until=5)
    assert keys(store, counting_at=5) == ["soon", "ever"]
    assert keys(store, counting_at=10) == ["ever"]
    assert len(keys(store)) == 3


def a_post(store, task="t-1", kind=MessageKind.POST, state=MessageState.CLOSED, **given):
    message = Message(store.new_id("m"), 0, task, "ann", kind, "hi", state, 5, **given)
    (made,) = store.commit([Put(message)], [])
    return made


def test_posts_are_found_by_task_and_kind_newest_first_in_pages(store):
    made = [a_post(store, data={"n": n}, receipt=Receipt(("bob",))) for n in range(4)]
    a_post(store, task="t-2")
    a_post(store, kind=MessageKind.NOTE)
    gone = a_post(store, state=MessageState.ARCHIVED)

    def found(**given):
        return store.find_messages(MessageQuery("post", "t-1", **given))

    assert found() == [gone, *reversed(made)]
    assert found(state="closed") == made[::-1]
    assert found(limit=2) == [gone, made[3]]
    assert found(before=made[2].id) == [made[1], made[0]]
    assert store.find_messages(MessageQuery("post", "nonsense")) == []


def a_mail(store, to="bob", team="red", state=MessageState.OPEN, **given):
    mail = Message(
        given.pop("id", "") or store.new_id("m"),
        0,
        "",
        "ann",
        given.pop("kind", MessageKind.MAIL),
        "hi",
        state,
        5,
        to,
        team=team,
        **given,
    )
    (made,) = store.commit([Put(mail)], [])
    return made


def test_what_is_said_in_a_team_is_found_by_where_it_was_said(store):
    first, second = a_mail(store), a_mail(store, state=MessageState.CLOSED)
    other, elsewhere = a_mail(store, to="zo\u00eb \0"), a_mail(store, team="blue")
    line = Message(store.new_id("m"), 0, "", "ann", MessageKind.CHAT, "hi", MessageState.CLOSED, 5)
    (line,) = store.commit([Put(replace(line, team="red", chat="c0"))], [])

    def found(kind="mail", **given):
        return store.find_messages(MessageQuery(kind, **given))

    assert found(team="red", topic="bob") == [second, first]
    assert found(topic="bob") == [elsewhere, second, first]
    assert found(team="red") == [other, second, first]
    assert found(team="red", topic="bob", state="open") == [first]
    assert found(topic="zo\u00eb \0") == [other]
    assert found("chat", team="red", topic="c0") == [line]
    assert found("chat", topic="bob") == []
    assert found("note") == []
    assert store.messages("") == store.messages("nonsense") == []
    assert store.open_messages("mail") == [first, other, elsewhere]
    assert store.open_messages("words") == []


def test_a_message_that_was_an_entry_keeps_its_id_and_is_older_than_all_others(store):
    new = a_mail(store)
    old = [a_mail(store, id=f"e-{n}") for n in (1, 10, 9)]

    def found(**given):
        return [m.id for m in store.find_messages(MessageQuery("mail", **given))]

    assert store.message("e-10") == old[1]
    assert found() == [new.id, "e-10", "e-9", "e-1"]
    assert found(before=new.id) == ["e-10", "e-9", "e-1"]
    assert found(before="e-10") == ["e-9", "e-1"]
    (changed,) = store.commit([Put(replace(old[0], receipt=Receipt(readers=("bob",))))], [])
    assert store.message("e-1") == changed


def test_a_hand_off_comes_back_with_its_checkpoint(store):
    outline = Summary("Goal", "Half", done=(DoneItem("One", ("a.py",)), DoneItem("Two")))
    details = Details(checkpoint=Checkpoint("c0", "s", outline=outline))
    put = a_mail(store, kind=MessageKind.HANDOFF, details=details)
    assert store.message(put.id).details.checkpoint == Checkpoint("c0", "s", "", outline)


def test_what_was_written_before_there_were_entries_is_read(tmp_path):
    """A store of the first schema is brought up; its messages have no data and no readers."""
    import sqlite3
    from contextlib import closing

    from fleet.adapters.stores.migrations import migration
    from fleet.adapters.stores.sql import split_script
    from fleet.adapters.stores.sqlite import APPLICATION, DIALECT

    path = tmp_path / "old.db"
    body = (
        '{"id":"m-1","task":"t-1","author":"me","kind":"note","text":"hi","state":"closed","at":1}'
    )
    with closing(sqlite3.connect(path)) as db, db:
        for statement in split_script(migration(1, DIALECT)):
            db.execute(statement)
        db.execute("INSERT INTO message VALUES (1, 'm-1', 1, 1, 'note', 'closed', ?)", [body])
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute("PRAGMA user_version = 1")
    store = SqlStore(Sqlite(path))
    message = store.message("m-1")
    assert (message.text, message.data, message.receipt.readers) == ("hi", {}, ())
    assert kept(store).version == 1
    store.close()


def test_the_names_that_differ_only_by_case_are_found(store):
    for number, name in enumerate(("bob", "Bob", "bobby", "BOB")):
        kept(store, f"k{number}", EntryKind.MEMBER, owner=name)
    query = EntryQuery(EntryKind.MEMBER, namesake="bOb")
    assert [e.owner for e in store.entries(query)] == ["BOB", "Bob", "bob"]
    assert store.entries(EntryQuery(EntryKind.TOKEN, namesake="bob")) == []
