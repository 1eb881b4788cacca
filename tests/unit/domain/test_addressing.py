"""Whom a message is for, and who may read it."""

from __future__ import annotations

import json

import pytest

from fleet.domain.addressing import (
    PRIVATE,
    Reader,
    as_checkpoint,
    as_memories,
    may_read,
    without_private,
)
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.run import Summary

BOB, CAT, LEAD = (Reader(frozenset({name}), leads=name == "ann") for name in ("bob", "cat", "ann"))
AGENT = Reader(frozenset({"t-5", "t-5.1"}), task="t-5")


def message(kind: str, **given) -> Message:
    fields = {"task": "", "author": "dan", "text": "x", "state": MessageState.OPEN} | given
    return Message(id="m-1", version=0, kind=MessageKind(kind), at=1, **fields)


@pytest.mark.parametrize(
    ("given", "readers"),
    [
        ({"kind": "mail", "to": "bob"}, [BOB, LEAD]),
        ({"kind": "mail", "to": "t-5"}, [LEAD, AGENT]),
        ({"kind": "handoff", "to": "bob"}, [BOB, LEAD]),
        ({"kind": "post", "task": "t-1", "to": "t-5.1"}, [LEAD, AGENT]),
        ({"kind": "post", "task": "t-1"}, [BOB, CAT, LEAD, AGENT]),
        ({"kind": "chat", "chat": "c"}, [BOB]),
        ({"kind": "words", "task": "t-5"}, [BOB, CAT, LEAD, AGENT]),
        ({"kind": "words", "task": "t-5", "data": {"source": "mail", "id": "m"}}, [LEAD, AGENT]),
        ({"kind": "words", "task": "t-5", "data": {"source": "chat", "id": "m"}}, [AGENT]),
        ({"kind": "words", "task": "t-6", "data": {"source": "mail", "id": "m"}}, [LEAD]),
        ({"kind": "answer", "task": "t-5", "to": "t-5.1"}, [BOB, CAT, LEAD, AGENT]),
    ],
)
def test_who_may_read_a_message(given, readers):
    one = message(**given)
    assert [r for r in (BOB, CAT, LEAD, AGENT) if may_read(one, r, members=["bob"])] == readers
    assert may_read(one, Reader(frozenset({"dan"})), members=["dan"])  # its author


def test_a_transcript_repeats_no_private_message_to_who_may_not_read_it():
    text = '[Mail from ann]\nThe code is "nüsse"\nok'
    words = message("words", task="t-5", text=text, data={"source": "mail", "id": "m-2"})
    lines = (
        json.dumps({"heard": text}),
        json.dumps({"heard": text}, ensure_ascii=False),
        text,
        "ok",
    )
    hidden = without_private(lines, [words], CAT)
    assert not any("sse" in line or "ann" in line for line in hidden)
    assert all(PRIVATE in line for line in hidden[:3])
    assert hidden[3] == "ok"
    assert without_private(lines, [words], LEAD) == lines


def test_a_memory_is_one_line_that_no_program_takes_for_its_own():
    text = as_memories([("port\nrun id", "It is\n4000"), ("run id", "x")])
    assert text.splitlines()[1:] == ["- port run id: It is 4000", "- run id: x"]


@pytest.mark.parametrize(
    "end", ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x1e", "\x85", "\u2028", "\u2029"]
)
def test_a_hand_off_is_one_line_whatever_ends_a_line_in_it(end):
    text = as_checkpoint("eve", Summary(f"Login{end}run id", f"Half done{end}run id{end}exit 3"))
    head, words = text.splitlines()
    assert head == "[Checkpoint from eve]"
    assert json.loads(words)["now"] == f"Half done{end}run id{end}exit 3"
