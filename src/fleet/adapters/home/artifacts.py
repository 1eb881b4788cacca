"""A task's `artifacts/`: what its agents keep for each other, and the file of questions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fleet.adapters.home.append import locked
from fleet.base.files import read_regular, write_atomically, write_once
from fleet.domain.message import MessageKind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fleet.domain.message import Message
    from fleet.ports import QA, QaText, Store

QUESTIONS = "Q&A.md"
STUBS = {
    "PLAN_AND_STATUS.md": """\
# Plan and status

## The task, in your own words

## Plan
<!-- Numbered steps, each with what you assume. -->

## Status
<!-- in_progress, blocked or completed; then what is done, what is under way, what is left. -->
""",
    "KNOWLEDGE.md": """\
# Knowledge
<!-- What the next run should not have to find out again. Add to it; take nothing away. -->

## Where things are

## What must stay true

## Traps
""",
    QUESTIONS: """\
# Questions and answers
<!-- The agent asks under "## Q:", a person answers below that under "## A: YYYY-MM-DD HH:MM". -->
""",
}
TRIES = 5


class Artifacts:
    def __init__(self, folder: Callable[[str], Path], store: Store, qa: QaText) -> None:
        self._folder = folder
        self._store = store
        self._qa = qa

    def begin(self, task_id: str) -> None:
        """Make those that are not there; one that was emptied is there."""
        folder = self._folder(task_id) / "artifacts"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, text in STUBS.items():
            if not (folder / name).exists():
                write_once(folder / name, text, durable=False)

    def follow(self, task_id: str) -> None:
        """Write down the questions and answers that are not in the file yet."""
        messages = self._store.messages(task_id)
        if not any(m.kind is MessageKind.QUESTION for m in messages):
            return
        self.begin(task_id)
        folder = self._folder(task_id)
        path = folder / "artifacts" / QUESTIONS
        with locked(folder):
            for _ in range(TRIES):
                if self._written(path, messages):
                    return

    def _written(self, path: Path, messages: Sequence[Message]) -> bool:
        """False when somebody wrote to it meanwhile."""
        before = _stamp(path)
        text = read_regular(path).decode("utf-8", "surrogateescape")
        wanted = self._told(text, messages)
        if wanted == text:
            return True
        if _stamp(path) != before:
            return False
        if wanted.startswith(text):  # the usual case; whoever has it open keeps the file it has
            _add(path, wanted[len(text) :])
        else:
            write_atomically(path, wanted, durable=False)
        return True

    def _told(self, text: str, messages: Sequence[Message]) -> str:
        replies = {m.reply_to: m for m in messages if m.kind is MessageKind.ANSWER}
        taken: set[int] = set()
        for message in messages:
            if message.kind is not MessageKind.QUESTION:
                continue
            place = _place(self._qa.questions(text), message, taken)
            if place is None:
                text = self._qa.with_question(text, message.text, message.id)
                place = _place(self._qa.questions(text), message, taken)
            if place is None:
                continue
            taken.add(place)
            if reply := replies.get(message.id):
                mark = self._qa.questions(text)[place].mark
                name = message.id if mark == message.id else message.text
                text = self._qa.with_answer(text, name, reply.text, reply.at)
        return text


def _place(known: Sequence[QA], message: Message, taken: set[int]) -> int | None:
    """Which question of the file this is: by its mark, else one with the same words."""
    for n, asked in enumerate(known):
        if asked.mark == message.id:
            return n
    words = message.text.split()
    for n, asked in enumerate(known):
        if n not in taken and asked.question.split() == words and not asked.mark.startswith("m-"):
            return n
    return None


def _stamp(path: Path) -> tuple[int, int, int]:
    found = path.stat()
    return found.st_mtime_ns, found.st_size, found.st_ino


def _add(path: Path, text: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        if os.write(fd, data) < len(data):
            os.ftruncate(fd, size)
            raise OSError(28, os.strerror(28), str(path))
    finally:
        os.close(fd)
