"""Full-text search: split texts into words, match them against a query, and cut out a snippet.

A word is a sequence of letters and digits, in any case. A query matches a text that has all of its
words; a word of three or more characters also matches the beginning of a longer one. Chinese and
Japanese are written without spaces, so there each character is a word.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from fleet.domain.data import dataclass

ALONE = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # kana and ideographs
LONGEST_WORD = 64  # characters of a word that count
BEGINNING = 3  # characters from which on a word also matches longer ones
MOST_WORDS = 20  # of a query
MOST_SEARCHED = 100_000  # characters of a prompt; PostgreSQL holds no more words of one row
AROUND = 60  # characters before and after the first match in a snippet


@cache
def _word() -> re.Pattern[str]:
    """Compiled on first use: it takes 1.5 ms, and every command that opens a store loads this module."""
    return re.compile(rf"[{ALONE}]|[^\W_{ALONE}]+")


def normal(text: str) -> str:
    """The text in composed form and without case, for comparisons; its length may differ."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def words_of(text: str) -> list[str]:
    """The words of the text, each once."""
    return list(dict.fromkeys(word[:LONGEST_WORD] for word in _word().findall(normal(text))))


def query_of(text: str) -> tuple[str, ...]:
    return tuple(words_of(text)[:MOST_WORDS])


def stands_for_longer(word: str) -> bool:
    return len(word) >= BEGINNING


def matches(text: str, query: tuple[str, ...]) -> bool:
    """Whether the text has all words of the query."""
    known = set(words_of(text))
    return all(
        word in known
        or (stands_for_longer(word) and any(other.startswith(word) for other in known))
        for word in query
    )


@dataclass(frozen=True, slots=True)
class MatchSpan:
    """Where a match is in a text: from `start` up to `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of a text, on one line."""

    text: str
    marks: tuple[MatchSpan, ...] = ()


def snippet_of(text: str, query: tuple[str, ...]) -> Snippet:
    """The piece around the first match."""
    text = unicodedata.normalize("NFC", " ".join(text.split()))
    spots = _spots(text, query)
    start = max(0, spots[0][0] - AROUND) if spots else 0
    start = text.rfind(" ", 0, start) + 1 if start else 0
    end = (spots[0][1] if spots else start) + AROUND
    end = min((text.find(" ", end) + 1 or len(text) + 1) - 1, end + AROUND, len(text))
    end = min(end, start + 6 * AROUND)  # a word can be as long as a file
    head, tail = "…" if start else "", "…" if end < len(text) else ""
    shift = len(head) - start
    marks = tuple(MatchSpan(a + shift, min(b, end) + shift) for a, b in spots if start <= a < end)
    return Snippet(f"{head}{text[start:end]}{tail}", marks)


def _spots(text: str, query: tuple[str, ...]) -> list[tuple[int, int]]:
    """Where words of the text match one of the query, first to last."""
    spots = []
    for match in _word().finditer(text):
        word = normal(match[0])
        if any(
            word == wanted or (stands_for_longer(wanted) and word.startswith(wanted))
            for wanted in query
        ):
            spots.append(match.span())
    return spots
