import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.domain.record_json import changed, dumps, reader


class State(StrEnum):
    OPEN = "open"
    DONE = "done"


class Level(Enum):
    HIGH = "high"


@dataclass(frozen=True, slots=True)
class Child:
    path: Path


@dataclass(frozen=True)
class Record:
    state: State
    created: int
    child: Child
    labels: frozenset[str] = frozenset({"b", "a"})


def test_a_record_is_an_object_of_its_fields():
    record = Record(State.OPEN, 1_763_193_600_123_456, Child(Path("/tmp/x")))
    assert json.loads(dumps(record)) == {
        "state": "open",
        "created": 1_763_193_600_123_456,
        "child": {"path": "/tmp/x"},
        "labels": ["a", "b"],
    }


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (Level.HIGH, "high"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (timedelta(seconds=2), 2_000_000),
        (b"bytes", "bytes"),
        (MappingProxyType({"a": 1}), {"a": 1}),
        ((n for n in (1, 2)), [1, 2]),
        (float("nan"), None),
        ({"a": [Child(Path("x")), float("inf")]}, {"a": [{"path": "x"}, None]}),
    ],
)
def test_values_that_json_lacks_have_one_form(value, said):
    assert json.loads(dumps(value)) == said


def test_what_cannot_be_said_is_a_bug():
    with pytest.raises(TypeError, match="object cannot be written as JSON"):
        dumps(object())


@given(st.text(alphabet=st.characters()) | st.just("\udcff half"))
def test_the_document_is_always_valid_utf8(text):
    assert isinstance(json.loads(dumps({"title": text}).encode()), dict)


@dataclass(frozen=True, slots=True)
class Tally:
    runs: int = 0
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Work:
    id: str
    state: State = State.OPEN
    tally: Tally = field(default_factory=Tally)
    last: Tally | None = None
    all: tuple[Tally, ...] = ()


FULL = Work("t-1", State.DONE, Tally(2, ("a",)), Tally(), (Tally(1), Tally()))


def test_what_equals_its_default_is_left_out():
    assert changed(Work("t-1")) == {"id": "t-1"}
    assert changed(Work("t-1", tally=Tally(runs=2))) == {"id": "t-1", "tally": {"runs": 2}}
    assert changed(Work("t-1", last=Tally())) == {"id": "t-1", "last": {}}


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("write", [dumps, lambda record: dumps(changed(record))])
@pytest.mark.parametrize("record", [Work("t-1"), FULL])
def test_a_record_is_read_back_as_it_was_written(record, write, strict):
    assert reader(Work, strict=strict)(json.loads(write(record))) == record


def test_a_field_that_we_do_not_know_is_refused_or_dropped():
    values = {"id": "t-1", "tally": {"runs": 2, "newer": 1}}
    assert reader(Work, strict=False)(values) == Work("t-1", tally=Tally(2))
    with pytest.raises(TypeError, match="newer"):
        reader(Work, strict=True)(values)
