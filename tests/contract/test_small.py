"""What a keeper has in place of `json`, `signal` and `contextlib` does the same."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fleet
from fleet.base import lean as small

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
WRONG = ["", " ", "{", '{"a": ', '{"a": 1} x', "[1,]", "'a'", '"a', '"\n"', b"\xff"]
TAKES = """
import sys; sys.path.insert(0, sys.argv[1])
from fleet.base.lean import loads
assert "json" not in sys.modules
for text in eval(sys.argv[2]):
    try:
        loads(text)
    except ValueError:
        print("refused")
"""
LOADS = """
import sys; sys.path.insert(0, sys.argv[1])
from fleet import keeper
print(*sys.modules)
"""


def bare(code: str, *words: str) -> list[str]:
    """What this prints, in a Python as keepers have it."""
    root = str(Path(fleet.__file__).parents[1])
    argv = [sys.executable, "-I", "-S", "-B", "-c", code, root, *words]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()


@given(VALUES)
def test_json_is_what_json_says(value):
    assert small.dumps(value) == json.dumps(value)
    assert small.loads(json.dumps(value)) == value
    assert small.loads(json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n \n") == value


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_json_is_refused(text):
    with pytest.raises(ValueError):  # each part has its own words
        small.loads(text)


def test_nor_is_it_taken_where_json_is_not_loaded():
    """As in a keeper: a record that was torn by a crash must not end it."""
    assert bare(TAKES, repr(WRONG)) == ["refused"] * len(WRONG)


def test_signals_have_their_numbers():
    for name in ("SIGTERM", "SIGKILL", "SIGCHLD", "SIGTSTP", "SIG_DFL", "SIG_IGN", "SIG_BLOCK"):
        assert getattr(small.signal, name) == getattr(signal, name)


def test_only_what_is_named_is_suppressed():
    with small.suppress(OSError, ValueError):
        raise FileNotFoundError
    with small.suppress(OSError):
        pass
    with pytest.raises(KeyError), small.suppress(OSError):
        raise KeyError


def test_a_keeper_loads_next_to_nothing():
    """Every agent has one, for as long as it works."""
    loaded = set(bare(LOADS))
    heavy = {"json", "re", "enum", "typing", "contextlib", "collections", "functools", "signal"}
    assert heavy & loaded == set()
    assert len(loaded) < 50
