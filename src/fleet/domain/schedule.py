"""Which of the ready tasks start now, and why the others do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from fleet.domain.message import MessageKind, MessageState
from fleet.domain.task import ENDED, Task, TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fleet.domain.message import Message
    from fleet.domain.run import Choice


class Slot(NamedTuple):
    """Capacity under one name. `down` says why none of it can be had now."""

    name: str
    limit: int
    node: str = ""
    down: str = ""


class Ask(NamedTuple):
    """A ready task, who would do it, and what that needs: of every group, one slot, best first."""

    task: Task
    choice: Choice
    needs: tuple[tuple[Slot, ...], ...] = ()


class Start(NamedTuple):
    task: Task
    choice: Choice
    slots: tuple[str, ...]


class Wait(NamedTuple):
    """Why a task is not running; `fix` is what would change that, where anything can."""

    task: str
    code: str
    why: str
    fix: str = ""


class Plan(NamedTuple):
    starts: tuple[Start, ...]
    waits: tuple[Wait, ...]


def schedule(asks: Iterable[Ask], held: Mapping[str, int]) -> Plan:
    """Take asks in their order; one that lacks a slot is passed over, it holds up nobody."""
    used = Counter(held)
    starts: list[Start] = []
    waits: list[Wait] = []
    for ask in asks:
        taken: list[Slot] = []
        for group in ask.needs:
            slot = next((s for s in group if not s.down and used[s.name] < s.limit), None)
            if slot is None:
                waits.append(_no_slot(ask.task, group, used))
                break
            taken.append(slot)
        else:
            used.update(s.name for s in taken)
            node = next((s.node for s in taken if s.node), ask.choice.node)
            names = tuple(s.name for s in taken)
            starts.append(Start(ask.task, replace(ask.choice, node=node), names))
    return Plan(tuple(starts), tuple(waits))


def _no_slot(task: Task, group: Sequence[Slot], used: Mapping[str, int]) -> Wait:
    parts = [
        f"{s.name} is down ({s.down})" if s.down else f"{s.name} is full ({used[s.name]}/{s.limit})"
        for s in group
    ]
    why = "; ".join(parts) or "nothing serves its model"
    return Wait(task.id, "no_slot", f"No free slot: {why}.")


def waits(
    task: Task, needs: Sequence[Task], messages: Sequence[Message], *, now: int
) -> tuple[Wait, ...]:
    """Every reason in the task itself why it cannot start now; none: it is ready.

    `needs` are the tasks it waits for, `messages` those about it.
    """
    if task.state is not TaskState.OPEN:
        return () if task.state is TaskState.RUNNING else (Wait(task.id, "ended", _how(task)),)
    found = [_needs(task, n) for n in needs if n.state is not TaskState.DONE]
    found += [
        Wait(task.id, "asking", f"It asks ({m.id}): {m.text}", f"fleet answer {task.id} TEXT")
        for m in messages
        if m.kind is MessageKind.QUESTION and m.state is MessageState.OPEN
    ]
    if task.paused:
        why = f"It is paused. {task.tally.why}".strip()
        found.append(Wait(task.id, "paused", why, f"fleet resume {task.id}"))
    if task.tally.not_before > now:
        seconds = (task.tally.not_before - now + 999_999) // 1_000_000
        found.append(Wait(task.id, "postponed", f"Not for {seconds} s: {task.tally.why}"))
    if task.join is not None:
        found.append(Wait(task.id, "children", "It is done when its children are."))
    return tuple(found)


def _needs(task: Task, need: Task) -> Wait:
    fix = ""
    if need.state in ENDED:
        fix = f"fleet retry {need.id}, or fleet dep rm {task.id} {need.id}"
    elif need.state is TaskState.REVIEW:
        fix = f"fleet close {need.id}"
    return Wait(task.id, "after", f"It waits for {need.id}, which is {need.state}.", fix)


def _how(task: Task) -> str:
    if task.state is TaskState.REVIEW:
        return "It waits for your review."
    return f"It is {task.state}. {task.tally.why}".strip()
