"""Many tasks at once, written straight into the store: a thousand through HTTP would take a minute."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fleet.app import App
from fleet.domain.event import Event, Kind
from fleet.domain.message import Details, Message, MessageKind, MessageState
from fleet.domain.run import (
    Choice,
    Ending,
    Outcome,
    Progress,
    Run,
    RunState,
    Usage,
    Workspace,
)
from fleet.domain.task import Spec, Tally, Task, TaskState
from fleet.ports import Put

if TYPE_CHECKING:
    from tests.e2e.scratch import Scratch

TOGETHER = 500
WHO = Choice("default", "scripted")
USAGE = Usage(18_000, 600, usd=0.42)


@dataclass
class Crowd:
    """The tasks of one scratch home; `add` answers the id of each."""

    scratch: Scratch
    first: int = 1  # the number of its first task
    tasks: list[Task] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)

    def add(self, title: str, state: str = "open", *, branch: str = "", **given: Any) -> str:
        number = len(self.tasks) + self.first
        name, settings = f"t-{number}", Spec(**given.pop("spec", {}))
        runs = state in {"running", "review", "failed", "done"}
        self.tasks.append(
            Task(
                name, 0, TaskState(state), title, "say Done.", str(self.scratch.repo), "ada", number,
                spec=settings, tally=Tally(runs=int(runs), why=given.pop("why", "")), **given,
            )
        )  # fmt: skip
        if runs:
            self._run(name, state, branch or f"fleet/{name}")
        return name

    def ask(self, task: str, text: str, *options: str) -> None:
        """An open question of this task."""
        self.others.append(
            Message(
                f"m-{len(self.others) + 1000}", 0, task, task, MessageKind.QUESTION, text,
                MessageState.OPEN, len(self.others) + 1, details=Details(options=options),
            )
        )  # fmt: skip

    def _run(self, task: str, state: str, branch: str) -> None:
        live = state == "running"
        ending = Ending.FAILED if state == "failed" else Ending.SUCCEEDED
        workspace = Workspace(str(self.scratch.repo), branch=branch, onto="main")
        run = Run(
            f"{task}.1", 0, task, RunState.RUNNING if live else RunState.ENDED, WHO, "elsewhere",
            "nobody", 1, workspace=workspace, started_at=2, ended_at=0 if live else 3,
            outcome=None if live else Outcome(ending, "All is in.", usage=USAGE),
        )  # fmt: skip
        self.others.append(run)
        self.others.append(Progress(run.id, 0, 2, lines=3, usage=USAGE, last="Reading the code."))

    def write(self) -> None:
        store = App(self.scratch.repo, self.scratch.env).another_store()
        try:
            now = store.now()
            tasks = [
                replace(task, created_at=now - len(self.tasks) + n)
                for n, task in enumerate(self.tasks)
            ]
            for start in range(0, len(tasks), TOGETHER):
                some = tasks[start : start + TOGETHER]
                for _ in some:
                    store.new_id("t")
                events = [Event(Kind.TASK_ADDED, task.id, "ada", now) for task in some]
                store.commit([Put(task) for task in some], events)
            for start in range(0, len(self.others), TOGETHER):
                store.commit([Put(each) for each in self.others[start : start + TOGETHER]], [])
            for _ in range(len(self.others) + 1000):
                store.new_id("m")
        finally:
            store.close()
