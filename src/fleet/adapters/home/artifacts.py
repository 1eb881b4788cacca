"""A task's `artifacts/`: the notes of its agents for each other, and the file of questions."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fleet.adapters.home.append import locked
from fleet.base.files import make_folder, read_regular, write_atomically, write_once
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
        """Create the missing files; a file that was emptied stays empty."""
        folder = self._folder(task_id) / "artifacts"
        if not folder.exists() and make_folder(folder, STUBS):
            return
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, text in STUBS.items():
            if not (folder / name).exists():
                write_once(folder / name, text, durable=False)

    def follow(self, task_id: str) -> None:
        """Add the questions and answers that are not in the file yet."""
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
        """Write the messages into the file; return False if the file changed meanwhile."""
        before = _stamp(path)
        text = read_regular(path).decode("utf-8", "surrogateescape")
        new_text = self._with_messages(text, messages)
        if new_text == text:
            return True
        if _stamp(path) != before:
            return False
        if new_text.startswith(
            text
        ):  # the usual case; an editor that has it open keeps the same file
            _add(path, new_text[len(text) :])
        else:
            write_atomically(path, new_text, durable=False)
        return True

    def _with_messages(self, text: str, messages: Sequence[Message]) -> str:
        replies = {m.reply_to: m for m in messages if m.kind is MessageKind.ANSWER}
        taken: set[int] = set()
        for message in messages:
            if message.kind is not MessageKind.QUESTION:
                continue
            index = _index_of(self._qa.questions(text), message, taken)
            if index is None:
                text = self._qa.with_question(text, message.text, message.id)
                index = _index_of(self._qa.questions(text), message, taken)
            if index is None:
                continue
            taken.add(index)
            if reply := replies.get(message.id):
                mark = self._qa.questions(text)[index].mark
                name = message.id if mark == message.id else message.text
                text = self._qa.with_answer(text, name, reply.text, reply.at)
        return text


def _index_of(questions: Sequence[QA], message: Message, taken: set[int]) -> int | None:
    """The index of this question in the file: by its mark, else by the same words."""
    for index, question in enumerate(questions):
        if question.mark == message.id:
            return index
    words = message.text.split()
    for index, question in enumerate(questions):
        if (
            index not in taken
            and question.question.split() == words
            and not question.mark.startswith("m-")
        ):
            return index
    return None


def _stamp(path: Path) -> tuple[int, int, int]:
    stat = path.stat()
    return stat.st_mtime_ns, stat.st_size, stat.st_ino


def _add(path: Path, text: str) -> None:
    data = text.encode("utf-8", "surrogateescape")
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        if os.write(fd, data) < len(data):
            os.ftruncate(fd, size)
            raise OSError(28, os.strerror(28), str(path))
    finally:
        os.close(fd)
