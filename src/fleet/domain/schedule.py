"""Which of the ready tasks start now, and why the others do not."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from enum import IntEnum
from functools import cache
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple
from fleet.domain.message import Message, MessageKind, MessageState
from fleet.domain.run import Slots
from fleet.domain.task import ENDED, Task, TaskState, mend_of

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from fleet.domain.event import Event
    from fleet.domain.run import Choice, Run
    from fleet.domain.task import Tally


GOES_ON = {TaskState.FAILED: "fleet retry {}", TaskState.REVIEW: "fleet close {}"}
NODE_DOWN = "node_down"  # why a task waits: no node that serves its model can be used
NO_SLOT = "no_slot"
GATEWAY = "gateway "  # before the address, in the name of a slot
ON_HOST = " on host "  # before the host, in the name of a slot that each machine has for itself


class Slot(NamedTuple):
    """Capacity under one name, which may also count towards that of a whole node (`within`).

    `down`: why it cannot be used now; empty: it can.
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


class ReadyTask(NamedTuple):
    """A ready task, who would do it, and what it needs: one slot of every group, best first.

    `credential`: the login of its coder, which may be rate-limited; empty when our own nodes serve its
    model.
    """

    task: Task
    choice: Choice
    needs: tuple[tuple[Slot, ...], ...] = ()
    credential: str = ""

    @property
    def names(self) -> set[str]:
        """The names of all rows of slots that decide whether the task can start."""
        slots = {s.name for group in self.needs for slot in group for s in slot.all}
        return slots | {self.credential} if self.credential else slots


class Start(NamedTuple):
    """`room`: by name of each slot that it takes, how many runs may hold it."""

    task: Task
    choice: Choice
    room: dict[str, int]

    @property
    def slots(self) -> tuple[str, ...]:
        return tuple(self.room)


class Claim(NamedTuple):
    """What claiming a task writes: the running task, its run and the event. `room`: as in `Start`."""

    task: Task
    run: Run
    event: Event
    room: Mapping[str, int]


Reason = tuple[str, "Task | Message | None"]  # the code of a `Wait`, and what it waits for
PAUSED: Reason = ("paused", None)
ASSIGNED: Reason = ("assigned", None)
NEEDS_LEAD: Reason = ("held", None)
POSTPONED: Reason = ("postponed", None)
CHILDREN: Reason = ("children", None)


class Wait(NamedTuple):
    """Why a task is not running; `fix`: the command that changes that, if there is one."""

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


def schedule(asks: Iterable[ReadyTask], rows: Mapping[str, Slots], *, now: int) -> Plan:
    """Decide which tasks start, in this order; one that lacks a slot does not hold up the others."""
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
            room = {s.name: s.limit for s in taken}
            starts.append(Start(ask.task, replace(ask.choice, node=node), room))
    return Plan(tuple(starts), tuple(waits))


def admit(
    claims: Iterable[Claim],
    ready: Mapping[str, int],
    runs: Container[str],
    rows: Mapping[str, Slots],
) -> tuple[list[Claim], list[Slots]]:
    """The claims that can still be made, in their order, and the rows of slots that they change.

    `ready`: by task that may start now, its version. `runs`: the runs that exist already. `rows`: who
    holds the slots now.
    """
    holders = {name: row.holders for name, row in rows.items()}
    admitted: list[Claim] = []
    for claim in claims:
        full = any(len(holders.get(name, ())) >= most for name, most in claim.room.items())
        moved = claim.run.id in runs or ready.get(claim.task.id) != claim.task.version
        if full or moved:
            continue
        for name in claim.room:
            holders[name] = (*holders.get(name, ()), claim.run.id)
        admitted.append(claim)
    names = sorted({name for claim in admitted for name in claim.room})
    changed = [replace(rows.get(n) or Slots(n, 0), holders=holders[n]) for n in names]
    return admitted, changed


def _no_slot(task: Task, group: Sequence[Slot], used: Mapping[str, int]) -> Wait:
    if group and all(slot.down for slot in group):
        if group[0].name.startswith(GATEWAY):
            why = f"Its requests would not be answered: {group[0].down}."
            return Wait(task.id, NODE_DOWN, why, "`fleet up` starts the gateway and the relay.")
        down = "; ".join(f"{slot.node or slot.name} ({slot.down})" for slot in group)
        why = f"No node that serves its model answers: {down}."
        return Wait(
            task.id,
            NODE_DOWN,
            why,
            "Start the node, or mend what it reports: `fleet nodes` shows each.",
        )
    why = "; ".join(_taken(slot, used) for slot in group) or "nothing serves its model"
    return Wait(task.id, NO_SLOT, f"No free slot: {why}.")


def _taken(slot: Slot, used: Mapping[str, int]) -> str:
    where = f"{slot.name.partition(ON_HOST)[0]} on node {slot.node}" if slot.node else slot.name
    if slot.down:
        return f"{where} cannot be used ({slot.down})"
    full = slot.full(used) or slot
    what = where if full is slot else f"node {slot.node}"
    return f"{what} is full ({used[full.name]}/{full.limit})"


def on_host(name: str, host: str) -> str:
    """The name of a slot that each host has for itself: for a directory, a login or a local server."""
    return f"{name}{ON_HOST}{host}" if host else name


def credential(choice: Choice, host: str) -> str:
    """The name of the slots for the coder's login, which a rate limit pauses.

    Agents with the same coder share it; with `acp` and `command`, every agent is a program of its own.
    Each host has its own login.
    """
    owner = choice.agent if choice.coder in {"acp", "command"} else choice.coder
    return on_host(f"credential {owner}", host)


def _parked(ask: ReadyTask, row: Slots | None, now: int) -> Wait | None:
    """The wait until the rate limit of its credential is over, if there is one."""
    if row is None or row.parked_until <= now:
        return None
    seconds = (row.parked_until - now + 999_999) // 1_000_000
    why = f"The {row.id.partition(ON_HOST)[0]} is rate-limited for {seconds} s more: {row.why}".rstrip(
        ": "
    )
    return Wait(ask.task.id, "rate_limited", why, f"fleet resume {ask.task.id}")


class Hold(IntEnum):
    """Why no supervisor may start a task, apart from tasks and times that it waits for."""

    NONE = 0
    PAUSED = 1
    SOMEBODY = 2  # a team-lead or coordinator has to let it run
    ASSIGNED = 3
    CHILDREN = 4
    LANDED = 5
    BEATEN = 6
    STUCK = 7  # paused, and somebody has to let it run, or to change what keeps it from running


def _is_held(task: Task) -> bool:
    return bool(task.caused_by) and _held_by_cause()(
        task
    )  # else a person at this machine lets it run


@cache
def _held_by_cause() -> Callable[[Task], bool]:
    from fleet.domain.causes import is_held  # noqa: PLC0415  # start-up time

    return is_held


def hold_of(task: Task) -> Hold:
    if task.state is TaskState.DONE:
        return _done(task.tally)
    if task.state is not TaskState.OPEN:
        return Hold.NONE
    if task.paused:
        return Hold.STUCK if task.tally.stuck or _is_held(task) else Hold.PAUSED
    if _is_held(task):
        return Hold.SOMEBODY
    if task.spec.assignee:
        return Hold.ASSIGNED
    return Hold.NONE if task.join is None else Hold.CHILDREN


def _done(tally: Tally) -> Hold:
    if tally.landing:
        return Hold.NONE
    return Hold.LANDED if tally.landed else Hold.BEATEN if tally.beaten else Hold.NONE


NEED_SOMEBODY = (Hold.SOMEBODY, Hold.STUCK)
HOLDS = {  # by the standing that users see
    "paused": (Hold.PAUSED, Hold.STUCK),
    "assigned": (Hold.ASSIGNED,),
    "held": (Hold.SOMEBODY,),
    "children": (Hold.CHILDREN,),
    "landed": (Hold.LANDED,),
    "beaten": (Hold.BEATEN,),
}


def reasons(
    task: Task, needs: Sequence[Task], messages: Sequence[Message], *, now: int
) -> list[Reason]:
    """Every reason why an open task cannot start now; none: it is ready.

    `needs` are the tasks that it waits for, `messages` the messages about it.
    """
    listed: list[Reason] = []
    for need in needs:
        if need.state is not TaskState.DONE:
            listed.append(("after", need))
        elif wait := without_its_work(task, need):
            listed.append((wait.code, need))
    listed += [
        ("asking", message)
        for message in messages
        if message.kind is MessageKind.QUESTION and message.state is MessageState.OPEN
    ]
    if task.paused:
        listed.append(PAUSED)
    if task.spec.assignee:
        listed.append(ASSIGNED)
    if _is_held(task):
        listed.append(NEEDS_LEAD)
    if task.tally.not_before > now:
        listed.append(POSTPONED)
    if task.join is not None:
        listed.append(CHILDREN)
    return listed


def waits(
    task: Task, needs: Sequence[Task], messages: Sequence[Message], *, now: int
) -> tuple[Wait, ...]:
    """The reasons in words, with fixes, for a task in any state; none for a running task."""
    if task.state is not TaskState.OPEN:
        fix = GOES_ON.get(task.state, "").format(task.id)
        return () if task.state is TaskState.RUNNING else (Wait(task.id, "ended", _how(task), fix),)
    why = reasons(task, needs, messages, now=now)
    return tuple(_in_words(task, reason, now) for reason in why)


def _in_words(task: Task, reason: Reason, now: int) -> Wait:
    (code, about), why, fix = reason, "", ""
    if isinstance(about, Message):
        why, fix = f"It asks ({about.id}): {about.text}", f"fleet answer {task.id} TEXT"
    elif about is not None:
        return without_its_work(task, about) or _needs(task, about)
    elif reason is PAUSED:
        why, fix = f"It is paused. {task.tally.why}".strip(), mend_of(task)
    elif reason is ASSIGNED:
        why = f"{task.spec.assignee} does it by hand."
        fix = f"fleet bd update {task.id} --assignee ''"
    elif reason is NEEDS_LEAD:
        why = f"A {task.caused_by} asked for it: a team-lead or a coordinator must let it run."
        fix = f"fleet resume {task.id}"
    elif reason is POSTPONED:
        seconds = (task.tally.not_before - now + 999_999) // 1_000_000
        why = f"It is tried again in {seconds} s: {task.tally.why}"
    else:
        why = "It is done when its children are."
    return Wait(task.id, code, why, fix)


def _needs(task: Task, need: Task) -> Wait:
    fix = ""
    if need.state in ENDED:
        fix = f"fleet retry {need.id}, or fleet dep rm {task.id} {need.id}"
    elif need.state is TaskState.REVIEW:
        fix = f"fleet close {need.id}"
    return Wait(task.id, "after", f"It waits for {need.id}, which is {need.state}.", fix)


def without_its_work(task: Task, need: Task) -> Wait | None:
    """The wait, if any, for the work of `need`, which is done.

    Either its work must land first, or it has uncommitted changes, which `task` would start without.
    """
    if need.id in task.after_landed and need.state is TaskState.DONE and not need.tally.landed:
        why = f"It waits until {need.id} has landed."
        return Wait(task.id, "unlanded", why, f"fleet land {need.id}")
    left = need.tally.checkpoint.uncommitted if need.tally.checkpoint else 0
    if need.state is not TaskState.DONE or not left or need.project != task.project:
        return None
    files = "1 file that it changed is" if left == 1 else f"{left} files that it changed are"
    why = f"{need.id} is done, but {files} not committed: {task.id} would start without that work."
    return Wait(task.id, "uncommitted", why, f"fleet worktree commit {need.id} -m MESSAGE")


def _how(task: Task) -> str:
    if task.state is TaskState.REVIEW:
        return f"It waits for your review. {task.tally.why}".strip()
    ended = "It failed." if task.state is TaskState.FAILED else f"It is {task.state}."
    return f"{ended} {task.tally.why}".strip()
