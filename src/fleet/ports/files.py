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
    """A task's own folder, for people and agents to read. What is in it decides nothing."""

    @property
    def trouble(self) -> str:
        """What could not be written, and why; empty when all is well."""

    def is_there(self, task_id: str) -> bool:
        """Whether its folder was written at all."""

    def refresh(self, task_id: str) -> None:
        """Bring it up to date, for a reader who looks now. A task that does not exist has none."""

    def begin(self, task: Task, run: Run) -> None:
        """Before its coder starts: `task.json`, and the artifacts that are not there yet."""

    def add_to_transcript(self, run: Run, heard: Sequence[tuple[int, Said]]) -> None:
        """What was said, each with the number of its line; known lines are passed over."""

    def note(self, event: Event) -> None:
        """A fact about a task, or about none."""

    def ended(self, run: Run) -> None: ...

    def edited(self, task: Task) -> Spec:
        """What it asks for, with what a person wrote into its `task.json` since.

        Raise `BadInput` when that cannot be taken in.
        """


class QA(NamedTuple):
    """`answer` is empty while there is none; `mark` is what its heading says beside the text."""

    question: str
    answer: str = ""
    mark: str = ""


class QaText(Protocol):
    """What `Q&A.md` says, as text: `fleet.operations.messages.qa_file`."""

    def questions(self, text: str) -> Sequence[QA]: ...

    def with_question(self, text: str, question: str, mark: str) -> str: ...

    def with_answer(self, text: str, question: str, answer: str, at: int) -> str: ...
