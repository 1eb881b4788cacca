"""Which of the ready tasks start now, and why the others do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.domain.causes import is_held
from fleet.domain.data import NamedTuple
from fleet.domain.message import MessageKind, MessageState
from fleet.domain.task import ENDED, Task, TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fleet.domain.message import Message
    from fleet.domain.run import Choice, Slots


NODE_DOWN = "node_down"  # why a task waits: no node that serves its model can be used


class Slot(NamedTuple):
    """Capacity under one name, which may also count towards that of a whole node (`within`).

    `down` says why it cannot be used now.
    """

    name: str
    limit: int
    node: str = ""
    down: str = ""
    within: Slot | None = None

    @property
    def all(self) -> tuple[Slot, ...]:
        return (self, self.within) if self.within else (self,)

    def full(self, used: Mapping[str, int]) -> Slot | None:
        return next((s for s in self.all if used[s.name] >= s.limit), None)


class Ask(NamedTuple):
    """A ready task, who would do it, and what it needs: one slot of every group, best first.

    `credential`: the account that pays for its model; empty when a node of ours serves it.
    """

    task: Task
    choice: Choice
    needs: tuple[tuple[Slot, ...], ...] = ()
    credential: str = ""

    @property
    def names(self) -> set[str]:
        """The names of all rows that decide whether it can start."""
        slots = {s.name for group in self.needs for slot in group for s in slot.all}
        return slots | {self.credential} if self.credential else slots


class Start(NamedTuple):
    task: Task
    choice: Choice
    slots: tuple[str, ...]


class Wait(NamedTuple):
    """Why a task is not running; `fix` is the command that changes it, if there is one."""

    task: str
    code: str
    why: str
    fix: str = ""


class Plan(NamedTuple):
    starts: tuple[Start, ...]
    waits: tuple[Wait, ...]


def within_parent(parent: Task | None) -> tuple[Slot, ...]:
    """The slot that limits how many children of one task run at once, if it has a limit."""
    most = parent.spec.limits.agents if parent else 0
    return (Slot(f"swarm {parent.id}", most),) if parent and most else ()


def schedule(asks: Iterable[Ask], rows: Mapping[str, Slots], *, now: int) -> Plan:
    """Take the asks in order. One that lacks a slot is skipped, and does not hold up the others."""
    used = Counter({name: len(row.holders) for name, row in rows.items()})
    starts: list[Start] = []
    waits: list[Wait] = []
    for ask in asks:
        if wait := _parked(ask, rows.get(ask.credential), now):
            waits.append(wait)
            continue
        taken: list[Slot] = []
        for group in ask.needs:
            slot = next((s for s in group if not s.down and not s.full(used)), None)
            if slot is None:
                waits.append(_no_slot(ask.task, group, used))
                break
            taken += slot.all
        else:
            used.update(s.name for s in taken)
            node = next((s.node for s in taken if s.node), ask.choice.node)
            names = tuple(s.name for s in taken)
            starts.append(Start(ask.task, replace(ask.choice, node=node), names))
    return Plan(tuple(starts), tuple(waits))


def _no_slot(task: Task, group: Sequence[Slot], used: Mapping[str, int]) -> Wait:
    why = "; ".join(_taken(slot, used) for slot in group) or "nothing serves its model"
    down = bool(group) and all(slot.down for slot in group)
    return Wait(task.id, NODE_DOWN if down else "no_slot", f"No free slot: {why}.")


def _taken(slot: Slot, used: Mapping[str, int]) -> str:
    where = f"{slot.name} on node {slot.node}" if slot.node else slot.name
    if slot.down:
        return f"{where} cannot be used ({slot.down})"
    full = slot.full(used) or slot
    what = where if full is slot else f"node {slot.node}"
    return f"{what} is full ({used[full.name]}/{full.limit})"


def credential(choice: Choice) -> str:
    """The name of the account that pays for its model, which several agents may share.

    It is the coder's, but with `acp` and `command` every agent is another program.
    """
    owner = choice.agent if choice.coder in {"acp", "command"} else choice.coder
    return f"credential {owner}"


def _parked(ask: Ask, row: Slots | None, now: int) -> Wait | None:
    """The wait until the rate limit of its credential is over, if there is one."""
    if row is None or row.parked_until <= now:
        return None
    seconds = (row.parked_until - now + 999_999) // 1_000_000
    why = f"The {row.id} met a limit, for {seconds} s more: {row.why}".rstrip(": ")
    return Wait(ask.task.id, "rate_limited", why, f"fleet resume {ask.task.id}")


def waits(
    task: Task, needs: Sequence[Task], messages: Sequence[Message], *, now: int
) -> tuple[Wait, ...]:
    """Every reason in the task itself why it cannot start now; without any it is ready.

    `needs` are the tasks that it waits for, `messages` the messages about it.
    """
    if task.state is not TaskState.OPEN:
        return () if task.state is TaskState.RUNNING else (Wait(task.id, "ended", _how(task)),)
    reasons = [_needs(task, n) for n in needs if n.state is not TaskState.DONE]
    reasons += [
        Wait(task.id, "asking", f"It asks ({m.id}): {m.text}", f"fleet answer {task.id} TEXT")
        for m in messages
        if m.kind is MessageKind.QUESTION and m.state is MessageState.OPEN
    ]
    if task.paused:
        why = f"It is paused. {task.tally.why}".strip()
        reasons.append(Wait(task.id, "paused", why, f"fleet resume {task.id}"))
    if task.spec.assignee:
        why = f"{task.spec.assignee} does it by hand."
        reasons.append(Wait(task.id, "assigned", why, f"fleet bd update {task.id} --assignee ''"))
    if is_held(task):
        why = f"A {task.caused_by} asked for it: a team-lead or a coordinator must let it run."
        reasons.append(Wait(task.id, "held", why, f"fleet resume {task.id}"))
    if task.tally.not_before > now:
        seconds = (task.tally.not_before - now + 999_999) // 1_000_000
        reasons.append(Wait(task.id, "postponed", f"Not for {seconds} s: {task.tally.why}"))
    if task.join is not None:
        reasons.append(Wait(task.id, "children", "It is done when its children are."))
    return tuple(reasons)


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
