"""A task's `Q&A.md`: questions under `## Q:`, answers below them under `## A: 2026-01-31 17:05`.

Text in, text out. Agents and people write into it by hand, so nothing in it is ever taken away:
what we add is put in after what is there.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple
from fleet.ports import QA

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

HEADING = re.compile(r"^##[ \t]+(Q|A):[ \t]*(.*?)[ \t]*$", re.MULTILINE)
# What only shows how to write one: a comment, or a block of code.
ASIDE = re.compile(r"<!--.*?-->|^(```+|~~~+)[^\n]*\n.*?^\1", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
STAMP = re.compile(r"^<?(\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?Z?)?|YYYY-MM-DD HH:MM|m-\d+)>?\s*")
PLACEHOLDER = "<your answer here>"
ESCAPED = re.compile(r"^\\(?=##[ \t]+[QA]:)", re.MULTILINE)
LIKE_HEADING = re.compile(r"^(?=##[ \t]+[QA]:)", re.MULTILINE)


class _Block(NamedTuple):
    kind: str
    mark: str
    words: str
    end: int


def questions(text: str) -> list[QA]:
    """In the order of the file. Several answers to one question are one, in their order."""
    found: list[QA] = []
    for block in _blocks(text):
        if block.kind == "Q":
            found.append(QA(block.words, "", block.mark))
        elif found:
            last = found[-1]
            said = "\n\n".join(part for part in (last.answer, block.words) if part)
            found[-1] = last._replace(answer=said)
    return found


def with_question(text: str, question: str, mark: str) -> str:
    """With the question at its end, unless it is there: by its mark, or open and by its text.

    `mark` is its message's id (`m-7`); it may be empty. An open one that the question contains is
    the same: an agent wrote it, then asked it with a summary.
    """
    for known in questions(text):
        if mark and known.mark == mark:
            return text
        if not known.answer and _within(known.question, question):
            return text
    heading = f"## Q: {mark}".rstrip()
    return _appended(text, len(text), f"{heading}\n\n{_body(question)}\n")


def with_answer(text: str, question: str, answer: str, at: int) -> str:
    """With the answer below its question, which is added when it is not there.

    `question` is its text or its mark; `at` is in microseconds, and written in UTC.
    """
    place = _place(text, question)
    if place is None:
        text = with_question(text, question, "")
        place = QA(question), len(text)
    known, end = place
    if _same(answer, known.answer) or f"\n\n{answer.strip()}" in f"\n\n{known.answer}":
        return text
    when = datetime.fromtimestamp(at / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M")
    return _appended(text, end, f"## A: {when}\n\n{_body(answer)}\n")


def unanswered(text: str) -> QA | None:
    """The last question, when nobody has answered it."""
    found = questions(text)
    return found[-1] if found and not found[-1].answer else None


def whole_question(text: str, summary: str) -> str:
    """What is asked: the summary, and the last question in the file that it sums up."""
    block = unanswered(text)
    if block is None or not block.question or _within(block.question, summary):
        return summary
    return (
        block.question
        if not summary.strip() or _within(summary, block.question)
        else f"{summary}\n\n{block.question}"
    )


def new_answers(
    text: str, asked: Sequence[tuple[str, str]], heard: Collection[str]
) -> dict[str, str]:
    """By the id of an open question (of `asked`: id and text) the answer that the file has.

    `heard` are answers that were given before. The file's last question is the one that is open,
    whatever its words, when only one is.
    """
    found = questions(text)
    given: dict[str, str] = {}
    for mark, words in asked:
        fresh = [k for k in found if k.mark == mark or (k.answer and k.answer not in heard)]
        named = [k for k in fresh if k.mark == mark or _within(k.question, words)]
        last = fresh[-1:] if len(asked) == 1 and fresh[-1:] == found[-1:] else []
        best = (named or last)[-1:]
        if best and best[0].answer:
            given[mark] = best[0].answer
    return given


def _place(text: str, question: str) -> tuple[QA, int] | None:
    """The newest question of that text or mark, and where all that belongs to it ends."""
    ends: list[int] = []
    for block in _blocks(text):
        if block.kind == "Q":
            ends.append(block.end)
        elif ends:
            ends[-1] = block.end
    known = list(zip(questions(text), ends, strict=True))[::-1]
    named = [(k, end) for k, end in known if question and question in {k.mark, k.question}]
    named += [(k, end) for k, end in known if _same(k.question, question)]
    named += [(k, end) for k, end in known if not k.answer and _within(k.question, question)]
    return named[0] if named else None


def _blocks(text: str) -> list[_Block]:
    asides = [found.span() for found in ASIDE.finditer(text)]
    heads = [
        found
        for found in HEADING.finditer(text)
        if not any(start <= found.start() < end for start, end in asides)
    ]
    ends = [*(head.start() for head in heads), len(text)][1:]
    return [
        _block(head, text[head.end() : end], end) for head, end in zip(heads, ends, strict=True)
    ]


def _block(head: re.Match[str], below: str, end: int) -> _Block:
    beside = head[2]
    stamp = STAMP.match(beside)
    mark = stamp[1] if stamp else ""
    parts = (beside[stamp.end() :] if stamp else beside, below.strip())
    words = "\n\n".join(part for part in parts if part)
    if not COMMENT.sub("", words).strip() or words == PLACEHOLDER:
        words = ""
    return _Block(head[1], mark, ESCAPED.sub("", words).translate(_otherwise()), end)


@cache
def _otherwise() -> dict[int, str]:
    """What is not UTF-8 was read with surrogates; the editor that wrote it meant one of these."""
    return {0xDC00 + n: bytes([n]).decode("cp1252", "replace") for n in range(0x80, 0x100)}


def _body(words: str) -> str:
    """Words that look like a heading of ours are marked as words."""
    return LIKE_HEADING.sub(r"\\", words.strip())


def _appended(text: str, at: int, block: str) -> str:
    """With the block there, an empty line on both its sides."""
    before, after = text[:at], text[at:]
    gap = "" if not before or before.endswith("\n\n") else "\n" if before.endswith("\n") else "\n\n"
    return before + gap + block + (f"\n{after}" if after else "")


def _within(part: str, whole: str) -> bool:
    return bool(part.strip()) and " ".join(part.split()) in " ".join(whole.split())


def _same(one: str, other: str) -> bool:
    return one.split() == other.split()
