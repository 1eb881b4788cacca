"""Every kind of event is a sentence for a person, or nothing; its name is neither."""

from __future__ import annotations

import pytest

from fleet.cli.supervisor.sentences import Sentence, line_of, sentence_of
from fleet.domain.event import Event, Kind
from fleet.domain.message import Details, Message, MessageKind, MessageState
from fleet.domain.run import Choice, Run, RunState
from fleet.domain.task import Task, TaskState
from fleet.ports import Put
from fleet.testing.memory_store import MemoryStore

DATA = {
    "message": "m-1", "state": "done", "coder": "claude", "onto": "main", "files": "1",
    "commit": "ea129640c96f00925fd8c31154fa939714883234",
}  # fmt: skip


@pytest.fixture
def store():
    store = MemoryStore()
    task = Task("t-3", 0, TaskState.OPEN, "Fix the login", "", "/shop", "ada", 1)
    run = Run("t-3.1", 0, "t-3", RunState.ENDED, Choice("a", "claude"), "h", "1", 1)
    asked = Message(
        "m-1", 0, "t-3", "t-3.1", MessageKind.QUESTION, "Which?", MessageState.OPEN, 1,
        details=Details(),
    )  # fmt: skip
    store.commit([Put(task), Put(run), Put(asked)], [])
    return store


@pytest.mark.parametrize("kind", Kind)
def test_no_kind_of_event_is_shown_by_its_name_or_with_what_a_person_cannot_read(kind, store):
    sentence = sentence_of(Event(kind, "t-3", "ada", 7, "t-3.1", dict(DATA)), store)
    words = " ".join(sentence[:3]) if sentence else ""
    assert str(kind) not in words
    assert DATA["commit"] not in words


def test_what_fleet_committed_for_an_agent_is_said_with_how_much_it_was(store):
    event = Event(Kind.RUN_COMMITTED, "t-3", "supervisor", 7, "t-3.1", DATA | {"files": "2"})
    head, about, *_ = sentence_of(event, store)
    assert head == "t-3 left uncommitted work, which Fleet committed (2 files changed)"
    assert about == "Fix the login"


def test_an_event_of_another_release_is_shown_as_it_is(store):
    event = Event(Kind("task.painted"), "t-3", "ada", 7, data={"colour": "red"})
    assert sentence_of(event, store).head == "t-3 task.painted red"


def test_on_a_terminal_a_long_sentence_is_broken_between_words_below_its_beginning():
    sentence = Sentence("t-1 is done", "A title of many words for one line", "fleet land t-1")
    first, *rest = line_of(sentence, 0, colour=False, room=40).splitlines()
    assert first[9:] == "t-1 is done: A title of many"
    assert rest == [" " * 9 + "words for one line", " " * 9 + "→ fleet land t-1"]
    assert len(line_of(sentence, 0, colour=False).splitlines()) == 1
    coloured = line_of(sentence._replace(style="green"), 0, colour=True, room=40)
    assert "is done\x1b[0m: A title of many\n" in coloured
