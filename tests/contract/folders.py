"""A home with one task, its store, and whoever writes its folder."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.adapters.home.append import AppendLimits
from fleet.adapters.home.task_folder import FolderFiles
from fleet.domain.errors import Refused
from fleet.domain.event import Event
from fleet.domain.message import Message, MessageKind, MessageState, answer
from fleet.domain.run import Choice, Ending, Outcome, Run, RunState
from fleet.domain.task import Spec, Tally, Task, TaskState
from fleet.domain.transcript import Said, SaidKind
from fleet.operations.messages import qa_file
from fleet.ports import Put
from fleet.testing.clock import FakeClock
from fleet.testing.memory_store import MemoryStore

if TYPE_CHECKING:
    from pathlib import Path

TASK = "t-1"
ENV = {"DEPLOY_TOKEN": "correct-horse-battery"}


def known_coder(name: str) -> str:
    if name not in {"claude", "scripted"}:
        raise Refused(f"'{name}' is not a coder that fleet knows.", fix="Choose one of: claude.")
    return name


class Scratch:
    def __init__(self, home: Path) -> None:
        self.home = home
        self.clock = FakeClock()
        self.store = MemoryStore(self.clock)
        self.files = self.another()
        home.mkdir(exist_ok=True)
        cwd = str(home)
        task = Task(
            TASK, 0, TaskState.OPEN, "Fix the login", "Do it.", cwd, "ada", self.clock.now(),
            spec=Spec(coder="claude", model="opus", cwd=cwd), after=("t-0",),
        )  # fmt: skip
        self.commit(Put(task), event="task.added")

    def another(self, **limits: int) -> FolderFiles:
        """Whoever comes after the one before has died, or works beside it."""
        return FolderFiles(
            self.home,
            self.store,
            self.clock,
            coder=known_coder,
            qa=qa_file,
            env=ENV,
            limits=AppendLimits(**limits),
        )

    def commit(self, *changes, event="", run="", **data) -> Event | None:
        events = [Event(event, TASK, "ada", self.clock.now(), run, data)] if event else []
        self.store.commit(changes, events)
        return self.store.events(newest=True, limit=1)[0] if event else None

    def task(self) -> Task:
        return self.store.task(TASK)

    def run(self, number: int = 1) -> Run:
        """A run that goes on."""
        task = self.task()
        run = Run(f"{TASK}.{number}", 0, TASK, RunState.RUNNING, Choice("a", "claude"), "h", "h", 1)
        self.commit(
            Put(replace(task, state=TaskState.RUNNING, tally=Tally(runs=number))),
            Put(run),
            event="run.started",
            run=run.id,
        )
        return self.store.run(run.id)

    def end(self, run: Run, ending=Ending.FAILED, detail="Exit status 1.") -> Run:
        over = replace(run, state=RunState.ENDED, outcome=Outcome(ending, detail, 1), ended_at=2)
        self.commit(Put(over), event="run.ended", run=run.id)
        return self.store.run(run.id)

    def ask(self, text: str, asker: str = "t-1.1") -> Message:
        name = self.store.new_id("m")
        asked = MessageKind.QUESTION, text, MessageState.OPEN, self.clock.now()
        event = self.commit(
            Put(Message(name, 0, TASK, asker, *asked)), event="message.asked", message=name
        )
        self.files.note(event)
        return self.store.message(name)

    def answer(self, question: Message, text: str) -> None:
        at = self.clock.now()
        closed, reply = answer(question, text, by="ada", at=at, new_id=self.store.new_id("m"))
        event = self.commit(Put(closed), Put(reply), event="message.answered", message=question.id)
        self.files.note(event)

    def path(self, name: str) -> Path:
        return self.home / "tasks" / TASK / name

    def lines(self, name: str) -> list[dict]:
        return [json.loads(line) for line in self.path(name).read_text().splitlines()]

    def texts(self) -> list[str]:
        return [line.get("text", line["kind"]) for line in self.lines("events.jsonl")]


def text(words: str) -> Said:
    return Said(SaidKind.TEXT, words)


def numbered(*words: str, first: int = 1) -> list[tuple[int, Said]]:
    return [(n, text(word)) for n, word in enumerate(words, first)]
