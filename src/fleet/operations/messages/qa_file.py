"""A task's `Q&A.md`: questions under `## Q:`, answers below them under `## A: 2026-01-31 17:05`.

Text in, text out. Agents and people write into it by hand, so we never remove anything: what we add
goes after what is there.
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

# Patterns are compiled on first use: most commands load this module and read no such file.
HEADING = r"(?m)^##[ \t]+(Q|A):[ \t]*(.*?)[ \t]*$"
# A comment or a block of code, which may show how to write a question.
ASIDE = r"(?ms)<!--.*?-->|^(```+|~~~+)[^\n]*\n.*?^\1"
COMMENT = r"(?s)<!--.*?-->"
STAMP = r"^<?(\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?Z?)?|YYYY-MM-DD HH:MM|m-\d+)>?\s*"
PLACEHOLDER = "<your answer here>"
ESCAPED = r"(?m)^\\(?=##[ \t]+[QA]:)"
LIKE_HEADING = r"(?m)^(?=##[ \t]+[QA]:)"


class _QaBlock(NamedTuple):
    kind: str
    mark: str
    words: str
    end: int


def questions(text: str) -> list[QA]:
    """The questions of the file, in order, with their answers; several answers are joined."""
    pairs: list[QA] = []
    for block in _blocks(text):
        if block.kind == "Q":
            pairs.append(QA(block.words, "", block.mark))
        elif pairs:
            last = pairs[-1]
            answer = "\n\n".join(part for part in (last.answer, block.words) if part)
            pairs[-1] = last._replace(answer=answer)
    return pairs


def with_question(text: str, question: str, mark: str) -> str:
    """Append the question, unless the file has one with the same mark, or an open one like it.

    `mark` is the id of its message (`m-7`), or empty. An open question whose text is part of this one
    counts as the same: an agent wrote it, then asked it with a summary.
    """
    for known in questions(text):
        if mark and known.mark == mark:
            return text
        if not known.answer and _within(known.question, question):
            return text
    heading = f"## Q: {mark}".rstrip()
    return _appended(text, len(text), f"{heading}\n\n{_body(question)}\n")


def with_answer(text: str, question: str, answer: str, at: int) -> str:
    """Put the answer below its question, which is appended when it is missing.

    `question` is its text or its mark; `at` is in microseconds, and written in UTC.
    """
    position = _find(text, question)
    if position is None:
        text = with_question(text, question, "")
        position = QA(question), len(text)
    known, end = position
    if _same(answer, known.answer) or f"\n\n{answer.strip()}" in f"\n\n{known.answer}":
        return text
    when = datetime.fromtimestamp(at / 1_000_000, UTC).strftime("%Y-%m-%d %H:%M")
    return _appended(text, end, f"## A: {when}\n\n{_body(answer)}\n")


def unanswered(text: str) -> QA | None:
    """The last question, if it has no answer."""
    pairs = questions(text)
    return pairs[-1] if pairs and not pairs[-1].answer else None


def whole_question(text: str, summary: str) -> str:
    """The summary and, unless one contains the other, the last open question in the file."""
    block = unanswered(text)
    if block is None or not block.question or _within(block.question, summary):
        return summary
    return (
        block.question
        if not summary.strip() or _within(summary, block.question)
        else f"{summary}\n\n{block.question}"
    )


def new_answers(
    text: str, pending: Sequence[tuple[str, str]], heard: Collection[str]
) -> dict[str, str]:
    """The answers in the file, by the ids of open questions.

    `pending` are the open questions (id, text), `heard` the answers given before. When one question
    is open, it is the last one in the file, whatever its text.
    """
    pairs = questions(text)
    answers: dict[str, str] = {}
    for mark, words in pending:
        fresh = [k for k in pairs if k.mark == mark or (k.answer and k.answer not in heard)]
        named = [k for k in fresh if k.mark == mark or _within(k.question, words)]
        last = fresh[-1:] if len(pending) == 1 and fresh[-1:] == pairs[-1:] else []
        best = (named or last)[-1:]
        if best and best[0].answer:
            answers[mark] = best[0].answer
    return answers


def _find(text: str, question: str) -> tuple[QA, int] | None:
    """The newest question with that text or mark, and the offset at which its answers end."""
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


def _blocks(text: str) -> list[_QaBlock]:
    asides = [match.span() for match in re.finditer(ASIDE, text)]
    heads = [
        match
        for match in re.finditer(HEADING, text)
        if not any(start <= match.start() < end for start, end in asides)
    ]
    ends = [*(head.start() for head in heads), len(text)][1:]
    return [
        _block(head, text[head.end() : end], end) for head, end in zip(heads, ends, strict=True)
    ]


def _block(head: re.Match[str], below: str, end: int) -> _QaBlock:
    beside = head[2]
    stamp = re.match(STAMP, beside)
    mark = stamp[1] if stamp else ""
    parts = (beside[stamp.end() :] if stamp else beside, below.strip())
    words = "\n\n".join(part for part in parts if part)
    if not re.sub(COMMENT, "", words).strip() or words == PLACEHOLDER:
        words = ""
    return _QaBlock(head[1], mark, re.sub(ESCAPED, "", words).translate(_as_cp1252()), end)


@cache
def _as_cp1252() -> dict[int, str]:
    """Bytes that are not UTF-8 were read as surrogates; their editor most likely wrote cp1252."""
    return {0xDC00 + n: bytes([n]).decode("cp1252", "replace") for n in range(0x80, 0x100)}


def _body(words: str) -> str:
    """Escape lines that look like one of our headings."""
    return re.sub(LIKE_HEADING, r"\\", words.strip())


def _appended(text: str, at: int, block: str) -> str:
    """Insert the block, with an empty line on both sides."""
    before, after = text[:at], text[at:]
    gap = "" if not before or before.endswith("\n\n") else "\n" if before.endswith("\n") else "\n\n"
    return before + gap + block + (f"\n{after}" if after else "")


def _within(part: str, whole: str) -> bool:
    return bool(part.strip()) and " ".join(part.split()) in " ".join(whole.split())


def _same(one: str, other: str) -> bool:
    return one.split() == other.split()
