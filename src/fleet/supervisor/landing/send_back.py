"""A landing that could not be made goes back to the task's own agent, in its conversation."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.access import SUPERVISOR
from fleet.domain.causes import may_speak
from fleet.domain.errors import Conflict
from fleet.domain.event import Event, Kind
from fleet.domain.landing.landing import LandingState
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.task import TaskState, reopen
from fleet.operations.tasks.commit import parent_changes
from fleet.ports import Put

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.domain.fleet import Fleet
    from fleet.domain.landing.landing import Landing
    from fleet.domain.task import Task
    from fleet.ports import Change, Store

MAX_TRIES = 50


def conflict_text(
    onto: str, commit: str, files: tuple[str, ...], other: str, owners: Sequence[str] = ()
) -> str:
    """What the agent is told about a merge conflict. `owners`: whose work it conflicts with."""
    names = "\n".join(f"- {name}" for name in files)
    side = (
        f"\n\nWhat {onto} changed in them since your work departed from it:\n\n{other}"
        if other
        else ""
    )
    whose = f"The other side is the work of {', '.join(owners)}.\n\n" if owners else ""
    return (
        f"Your work cannot land on {onto} yet: it conflicts with what has landed there meanwhile, in\n"
        f"{names}\n\n"
        f"{whose}Merge commit {commit[:12]} of {onto} into your branch (git merge {commit[:12]}). Merge, do not"
        f" rebase. Keep both intents. Resolve the conflicts, run the tests, and commit.{side}"
    )


def gate_text(onto: str, commit: str, command: str, output: str) -> str:
    """What the agent is told about a gate that fails on the merged tree alone."""
    words = f"Its output ends with:\n\n{output}" if output.strip() else "It printed nothing."
    return (
        f"Your work cannot land on {onto} yet: merged with commit {commit[:12]} of {onto}, it does not"
        f" pass\n\n    {command}\n\n{words}\n\n"
        f"Merge commit {commit[:12]} into your branch (git merge {commit[:12]}). Merge, do not rebase."
        f" Keep both intents. Make it pass, and commit."
    )


def send_back(
    store: Store,
    landing_id: str,
    back: Callable[[Landing], Landing],
    text: str,
    *,
    reconciler: str = "",
) -> None:
    """The task opens again with these words to its agent, unless it needs a person.

    `reconciler`: the agent that gets it instead, in a conversation of its own.
    """
    for _ in range(MAX_TRIES):
        landing = store.landing(landing_id)
        if landing.state is not LandingState.QUEUED:
            return
        try:
            _send_back(store, back(landing), text, reconciler)
        except Conflict:
            continue
        return


def reconciler_of(task: Task, name: str, fleet: Fleet) -> str:
    """The agent of this name, unless it would carry out as a program what others have written."""
    if not name:
        return ""
    is_known = name in fleet.agents
    coder = fleet.agent(name).coder if is_known else name
    return name if may_speak(task.caused_by, coder, program=False) else ""


def _handed_over(task: Task, reconciler: str) -> Task:
    """The task, with a neutral agent: authors tend to overwrite one another."""
    if not reconciler or task.spec.agent == reconciler:
        return task
    point = task.tally.checkpoint
    fresh = replace(point, session="") if point else None
    spec = replace(task.spec, agent=reconciler, coder="", model="")
    return replace(task, spec=spec, choice=None, tally=replace(task.tally, checkpoint=fresh))


def _send_back(store: Store, back: Landing, text: str, reconciler: str) -> None:
    now, task = store.now(), store.task(back.task)
    if task.state in {TaskState.FAILED, TaskState.CANCELLED}:  # it was forced: no agent mends it
        back = replace(back, state=LandingState.HELD)
    changes: list[Change] = [Put(back)]
    about = {"landing": back.id, "onto": back.onto, "why": back.why}
    kind = Kind.LANDING_HELD if back.state is LandingState.HELD else Kind.LANDING_RETURNED
    events = [Event(kind, back.task, SUPERVISOR, now, "", about)]
    if back.state is LandingState.RETURNED:
        words = Message(
            id=store.new_id("m"), version=0, task=task.id, author=SUPERVISOR,
            kind=MessageKind.WORDS, text=text, state=MessageState.OPEN, at=now,
        )  # fmt: skip
        if task.state in {TaskState.DONE, TaskState.REVIEW}:
            opened = _handed_over(reopen(task), reconciler)
            changes += [Put(opened), *parent_changes(store, opened, now=now)]
            events.append(Event(Kind.TASK_REOPENED, task.id, SUPERVISOR, now))
        changes.append(Put(words))
        events.append(Event(Kind.MESSAGE_SENT, task.id, SUPERVISOR, now, "", {"message": words.id}))
    store.commit(changes, events)
