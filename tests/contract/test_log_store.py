"""A store that is a log: several hosts, each with its own copy, lost replies, large entries, kills."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from fleet.adapters.stores.log import store as log_store
from fleet.adapters.stores.log.store import LogStore
from fleet.domain.entry import Entry, EntryKind
from fleet.domain.errors import BadStore, Conflict, Spoiled, Unavailable
from fleet.domain.event import Event, Kind
from fleet.ports import EntryQuery, Put
from fleet.testing.folder_log import FolderLog
from tests.wait import LIMIT, until


@pytest.fixture
def host(tmp_path):
    """`host("a")`: the store as that machine has it."""
    made = []

    def open_host(name: str, log=None) -> LogStore:
        store = LogStore(log or FolderLog(tmp_path / "log"), tmp_path / name / "replica.db")
        made.append(store)
        return store

    yield open_host
    for store in made:
        store.close()


def memory(store, key: str, text: str = "") -> Entry:
    return Entry(store.new_id("e"), 0, EntryKind.MEMORY, "red", key, "ann", 5, text=text)


def put(store, key: str, text: str = "") -> Entry:
    (made,) = store.commit([Put(memory(store, key, text))], [Event(Kind.TASK_ADDED, "t-1", key, 1)])
    return made


def keys(store) -> list[str]:
    return sorted(row.key for row in store.entries(EntryQuery(EntryKind.MEMORY, "red")))


def test_what_one_host_writes_another_reads_with_the_same_numbers(host):
    a, b = host("a"), host("b")
    put(a, "from-a")
    until(lambda: keys(b) == ["from-a"], "it to arrive")
    put(b, "from-b")
    until(lambda: keys(a) == ["from-a", "from-b"], "it to arrive")
    assert [(e.number, e.actor) for e in a.events()] == [(1, "from-a"), (2, "from-b")]
    assert a.events() == b.events()


def test_a_change_on_a_stale_copy_is_a_conflict_and_the_next_read_is_fresh(host):
    a, b = host("a"), host("b")
    old = put(a, "x")
    b.catch_up()
    a.commit([Put(replace(old, text="first"))], [])
    with pytest.raises(Conflict):
        b.commit([Put(replace(old, text="second"))], [])
    assert b.entry_by_id(old.id).text == "first"


def test_ids_of_two_hosts_are_never_the_same(host):
    stores = [host("a"), host("b")]
    ids = [stores[n % 2].new_id("t") for n in range(20)]
    assert ids == [f"t-{n}" for n in range(1, 21)]


def test_a_group_whose_number_was_taken_is_written_after_what_came(host):
    a, b = host("a"), host("b")
    with a.together():
        first = a.commit([Put(memory(a, "grouped"))], [])
        a.commit([Put(replace(first[0], text="twice"))], [])
        b.prune("memory", "blue", now=1)  # an entry that is none of the group's business
    assert keys(a) == ["grouped"]
    b.catch_up()
    assert keys(b) == ["grouped"]


def test_a_group_that_another_host_contradicts_is_spoiled_and_leaves_nothing(host):
    a, b = host("a"), host("b")

    def contradicted() -> None:
        with a.together():
            a.commit([Put(memory(a, "mine"))], [])
            put(b, "theirs")  # it is given the same id

    with pytest.raises(Spoiled):
        contradicted()
    assert keys(a) == ["theirs"]


class Losing(FolderLog):
    """The service does it, and its reply is lost; or it does nothing."""

    lose = ""

    def append(self, number: int, entry: bytes) -> bool:
        lost, self.lose = self.lose, ""
        if lost != "request":
            done = super().append(number, entry)
        if lost:
            raise Unavailable("The service did not answer.")
        return done


class Retrying(FolderLog):
    """A client that tries again after it lost the reply is told that the number is taken."""

    def append(self, number: int, entry: bytes) -> bool:
        super().append(number, entry)
        return super().append(number, entry)


def test_a_success_whose_reply_was_lost_is_a_success(host, tmp_path):
    log = Losing(tmp_path / "log")
    store = host("a", log)
    made = memory(store, "x")
    log.lose = "reply"
    store.commit([Put(made)], [Event(Kind.TASK_ADDED, "t-1", "x", 1)])
    assert keys(store) == ["x"]
    assert len(store.events()) == 1


def test_a_request_that_was_lost_has_changed_nothing(host, tmp_path):
    log = Losing(tmp_path / "log")
    store = host("a", log)
    made = memory(store, "x")
    log.lose = "request"
    with pytest.raises(Unavailable):
        store.commit([Put(made)], [])
    assert keys(store) == []
    store.commit([Put(made)], [])
    assert keys(store) == ["x"]


def test_a_client_that_retries_by_itself_writes_nothing_twice(host, tmp_path):
    store = host("a", Retrying(tmp_path / "log"))
    put(store, "x")
    assert keys(store) == ["x"]
    assert [event.number for event in store.events()] == [1]


def test_an_entry_over_the_limit_is_kept_beside_the_log(host, tmp_path):
    text = "".join(chr(33 + n * n % 90) for n in range(50_000))
    put(host("a", FolderLog(tmp_path / "log", most=500)), "long", text)
    (row,) = host("b", FolderLog(tmp_path / "log", most=500)).entries(
        EntryQuery(EntryKind.MEMORY, "red")
    )
    assert row.text == text


def test_a_new_host_begins_with_the_snapshot(host, tmp_path, monkeypatch):
    monkeypatch.setattr(log_store, "SNAPSHOT_EVERY", 10)
    a = host("a")
    for n in range(12):
        put(a, f"k{n:02}")
    for number in range(1, 20):
        (tmp_path / "log" / f"{number:012d}").unlink()
    b = host("b")
    assert keys(b) == keys(a)
    assert b.events() == a.events()
    put(b, "more")
    until(lambda: "more" in keys(a), "it to arrive")


class WithoutBlobs(FolderLog):
    """The service takes entries, and no blobs."""

    def put(self, name: str, blob: bytes) -> None:
        raise Unavailable(f"The service did not take {name}: {len(blob)} bytes.")


def test_a_snapshot_that_cannot_be_written_fails_no_commit(host, tmp_path, monkeypatch):
    monkeypatch.setattr(log_store, "SNAPSHOT_EVERY", 2)
    store = host("a", WithoutBlobs(tmp_path / "log"))
    for key in ("x", "y", "z"):
        put(store, key)
    assert keys(store) == ["x", "y", "z"]
    assert [event.number for event in store.events()] == [1, 2, 3]


def test_a_copy_that_was_lost_is_made_again(host, tmp_path):
    a = host("a")
    put(a, "x")
    a.close()
    for file in (tmp_path / "a").iterdir():
        file.unlink()
    assert keys(host("a")) == ["x"]


def test_an_entry_that_cannot_be_read_says_so(host, tmp_path):
    put(host("a"), "x")
    (tmp_path / "log" / f"{3:012d}").write_bytes(b"nonsense")
    with pytest.raises(BadStore, match="cannot read"):
        host("b").events()


def test_wait_returns_when_another_host_has_written(host, tmp_path):
    b = host("b")
    b.catch_up()

    def write() -> None:
        store = LogStore(FolderLog(tmp_path / "log"), tmp_path / "c" / "replica.db")
        store.new_id("t")
        store.close()

    writer = threading.Timer(0.1, write)
    writer.start()
    b.wait(LIMIT)
    writer.join()
    assert b.new_id("t") == "t-2"


WRITER = """
import sys
from pathlib import Path
from fleet.adapters.stores.log.store import LogStore
from fleet.domain.event import Event, Kind
from fleet.testing.folder_log import FolderLog

folder, copy, name = sys.argv[1:]
store = LogStore(FolderLog(Path(folder)), Path(copy))
print("open", flush=True)
for n in range(1000):
    store.commit([], [Event(Kind.TASK_ADDED, "t-1", f"{name}-{n}", 1)])
    print(n, flush=True)
"""


def test_writers_that_are_killed_lose_and_double_nothing(host, tmp_path):
    """Two on each of two hosts, killed at different moments: what was confirmed is there once."""
    writers = {}
    for number in range(4):
        words = [str(tmp_path / "log"), str(tmp_path / f"h{number % 2}" / "r.db"), f"w{number}"]
        writers[f"w{number}"] = subprocess.Popen(
            [sys.executable, "-c", WRITER, *words], stdout=subprocess.PIPE, text=True
        )
    confirmed = {}
    for number, (name, process) in enumerate(writers.items()):
        lines = [process.stdout.readline() for _ in range(5 + 3 * number)]
        process.send_signal(signal.SIGKILL)
        lines += process.communicate()[0].splitlines()
        confirmed[name] = {int(line) for line in lines if line.strip().isdigit()}
    actors = [event.actor for event in host("reader").events(limit=10_000)]
    assert len(actors) == len(set(actors))
    for name, numbers in confirmed.items():
        there = {int(actor.partition("-")[2]) for actor in actors if actor.startswith(f"{name}-")}
        assert numbers <= there
        assert there == set(range(len(there)))
