import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum, StrEnum
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.cli.terminal.encode import dumps


class State(StrEnum):
    OPEN = "open"


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
    with pytest.raises(TypeError, match="object cannot be said"):
        dumps(object())


@given(st.text(alphabet=st.characters()) | st.just("\udcff half"))
def test_the_document_is_always_valid_utf8(text):
    assert isinstance(json.loads(dumps({"title": text}).encode()), dict)
