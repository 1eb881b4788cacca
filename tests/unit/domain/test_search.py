from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.domain.search import matches, query_of, snippet_of, words_of


@pytest.mark.parametrize(
    ("text", "query", "found"),
    [
        ("Fix the Login form", "login FIX", True),
        ("Fix the Login form", "log", True),
        ("Fix the Login form", "ogin", False),
        ("Fix the Login form", "lo", False),  # two characters stand for themselves
        ("a lo b", "lo", True),
        ("fix/login_page.py:12", "login page py 12", True),
        ("Stra\u00dfe caf\u00e9", "STRASSE cafe\u0301", True),
        ("\u6a5f\u80fd\u3092\u8ffd\u52a0", "\u80fd", True),
        ("Die \u0394\u03bf\u03ba\u03b9\u03bc\u03ae", "\u03b4\u03bf\u03ba\u03b9\u03bc\u03ae", True),
        ("\u043f\u0440\u0438\u0432\u0435\u0442", "\u041f\u0420\u0418\u0412\u0415\u0422", True),
        ('he said "NOT OR *"', '"not" or*', True),
        ("x", "login' OR 1=1 --", False),
    ],
)
def test_a_text_is_found_by_its_words(text, query, found):
    assert matches(text, query_of(query)) is found


def test_a_query_of_signs_alone_has_no_words():
    assert query_of('" * ( ) : ^ - + \u2026 \U0001f600') == ()


def test_a_snippet_marks_the_words_and_is_one_short_line():
    text = "a " * 200 + "the Login\nwas refused, then login again " + "b " * 200
    piece = snippet_of(text, query_of("login refused"))
    assert "\n" not in piece.text
    assert len(piece.text) < 250
    assert piece.text.startswith("…")
    assert piece.text.endswith("…")
    marked = [piece.text[m.start : m.end] for m in piece.marks]
    assert marked == ["Login", "refused", "login"]


def test_a_word_as_long_as_a_file_makes_no_long_snippet():
    piece = snippet_of("x" * 100_000, ("xxx",))
    assert len(piece.text) < 500
    assert piece.marks[0].end <= len(piece.text)


@given(st.text(), st.text(max_size=20))
def test_every_mark_is_a_word_of_the_query(text, query):
    words = query_of(query)
    piece = snippet_of(text, words)
    for mark in piece.marks:
        assert 0 <= mark.start < mark.end <= len(piece.text)


@given(st.text())
def test_words_are_letters_and_digits_alone(text):
    assert all(word.isalnum() or len(word) == 1 for word in words_of(text))
