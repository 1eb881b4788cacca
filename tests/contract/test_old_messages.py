"""Messages in a database of the code before `Details` and `Receipt`, when all fields were flat."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from fleet.adapters.stores.sql import SqlStore
from fleet.adapters.stores.sqlite import Sqlite
from fleet.domain.message import Details, Message, Receipt, read
from fleet.domain.run import Checkpoint, Summary
from fleet.ports import Put

ROWS = Path(__file__).with_name("stores") / "messages.jsonl"  # written by that code, one per kind
INSERT = (
    "INSERT INTO message (seq, id, version, task, kind, state, body) VALUES (?, ?, 1, 1, ?, ?, ?)"
)


@pytest.fixture
def store(tmp_path):
    SqlStore(Sqlite(tmp_path / "fleet.db")).close()
    with closing(sqlite3.connect(tmp_path / "fleet.db")) as db, db:
        for seq, line in enumerate(ROWS.read_text("utf-8").splitlines(), 1):
            row = json.loads(line)
            db.execute(INSERT, [seq, row["id"], row["kind"], row["state"], line])
    store = SqlStore(Sqlite(tmp_path / "fleet.db"))
    yield store
    store.close()


def body_of(path: Path, message: str) -> dict:
    with closing(sqlite3.connect(path)) as db:
        return json.loads(
            db.execute("SELECT body FROM message WHERE id = ?", [message]).fetchone()[0]
        )


def test_they_are_read_with_all_that_they_had(store):
    question, _, words, post, mail, line, handoff, _ = (
        store.message(f"m-{n}") for n in range(1, 9)
    )
    assert question.details == Details(options=("Left", "Right"), parked=True)
    assert words.receipt == Receipt(closed_at=8, reason="It has ended.")
    assert post.receipt == Receipt(("bob", "eve"), 12)
    assert (mail.details.subject, mail.receipt) == ("Login", Receipt(("bob",), 11))
    assert (line.chat, line.receipt.closed_at) == ("c-1", 11)
    outline = Summary("Login", "Half done")
    assert handoff.details.checkpoint == Checkpoint("c0", "s-1", outline=outline)


def test_they_are_written_as_that_code_can_read_them(store, tmp_path):
    old = [json.loads(line) for line in ROWS.read_text("utf-8").splitlines()]
    for row in old:
        message: Message = store.message(row["id"])
        store.commit([Put(replace(message, text="Again."))], [])
    assert [body_of(tmp_path / "fleet.db", row["id"]) for row in old] == [
        row | {"text": "Again."} for row in old
    ]


def test_reading_one_adds_the_reader_to_those_it_had(store, tmp_path):
    store.commit([Put(read(store.message("m-4"), "cat", at=99))], [])
    assert body_of(tmp_path / "fleet.db", "m-4")["readers"] == ["bob", "eve", "cat"]
