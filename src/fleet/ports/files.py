"""A task's own folder, and the text of its `Q&A.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.event import Event
    from fleet.domain.run import Run
    from fleet.domain.task import Spec, Task
    from fleet.domain.transcript import Said


class TaskFiles(Protocol):
    """Task folders, for people and agents to read. Fleet decides nothing by them."""

    @property
    def trouble(self) -> str:
        """What could not be written, and why; empty: nothing."""

    def is_there(self, task_id: str) -> bool:
        """Whether the task's folder has been written."""

    def refresh(self, task_id: str) -> None:
        """Bring the folder up to date for a reader; do nothing if the task does not exist."""

    def begin(self, task: Task, run: Run) -> None:
        """Write `task.json` and missing artifacts, before the run's coder starts."""

    def add_to_transcript(self, run: Run, heard: Sequence[tuple[int, Said]]) -> None:
        """Add what the agent said, by line number; lines that are there already are skipped."""

    def note(self, event: Event) -> None:
        """Log an event, which may be about a task."""

    def ended(self, run: Run) -> None: ...

    def edited(self, task: Task) -> Spec:
        """Return the task's spec with what a person has changed in its `task.json`.

        Raise `BadInput` when that is not valid.
        """


class QA(NamedTuple):
    """A question and its answer, which may be empty. `mark`: the heading's text besides it."""

    question: str
    answer: str = ""
    mark: str = ""


class QaText(Protocol):
    """Reads and writes the text of `Q&A.md`: `fleet.operations.messages.qa_file`."""

    def questions(self, text: str) -> Sequence[QA]: ...

    def with_question(self, text: str, question: str, mark: str) -> str: ...

    def with_answer(self, text: str, question: str, answer: str, at: int) -> str: ...
