"""What `fleet top` lists: what needs you, then the tasks that run, then those that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.cli.status.views import WORDS
from fleet.cli.terminal.human import DAY, HOUR, MINUTE, SECOND, duration, money
from fleet.cli.terminal.measure import fit, harmless, pad, width
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fleet.domain.inbox import InboxItem
    from fleet.operations.tasks.rows import TaskRow

RUNNING = frozenset({"running", "starting", "stopping"})
DOING = {"waiting": "yellow", "idle": "yellow", "exited": "red"}  # of an agent in a terminal
STYLES = {"high": "bold yellow", "medium": "red", "low": "cyan"}
AGE = 4  # columns of the age, at the right edge


class TopRow(NamedTuple):
    """A line of the list: an item, a task, or a heading, which has no `key`."""

    key: str
    task: str
    what: str
    words: str
    since: int | None = None
    style: str = ""
    item: InboxItem | None = None
    row: TaskRow | None = None


class TopReading(NamedTuple):
    """What was read at one time; `doing`: by task, as `fleet list` says it; `error`: why it could not be read.

    `supervised`: whether something starts what waits.
    """

    items: tuple[InboxItem, ...] = ()
    tasks: tuple[TaskRow, ...] = ()
    at: int = 0
    error: str = ""
    doing: Mapping[str, str] | None = None
    supervised: bool = True


def rows_of(look: TopReading, words: str = "") -> list[TopRow]:
    """`words`: only what has all of these in its id, its state or its words."""
    tasks = {task.id: task for task in look.tasks}
    urgent = [_item_row(item, tasks.get(item.task)) for item in look.items]
    needing = {item.task for item in look.items}
    others = [task for task in look.tasks if task.id not in needing]
    doing = look.doing or {}
    running = [_running_row(t, doing.get(t.id, "")) for t in others if t.status in RUNNING]
    waiting = [_waiting_row(task) for task in others if task.status not in RUNNING]
    parts = {"Needs you": urgent, "Running": running, "Waiting": waiting}
    listed: list[TopRow] = []
    for heading, rows in parts.items():
        matching = [row for row in rows if _has(row, words.casefold().split())]
        if matching:
            listed += [TopRow("", "", "", f"{heading} ({len(matching)})", style="bold"), *matching]
    return listed


def _item_row(item: InboxItem, task: TaskRow | None) -> TopRow:
    what, words = WORDS.get(item.kind, item.kind), item.words
    if item.kind in {"not-landed", "review"} and item.title:
        words = item.title
    if item.given:
        words = f"with {item.given}: {words}"
    style = STYLES[item.severity]
    return TopRow(item.id, item.task, what, words, item.since, style, item, task)


def _running_row(task: TaskRow, doing: str) -> TopRow:
    since = task.run.started_at if task.run else task.created_at
    what = doing if doing in DOING and task.status == "running" else task.status
    return TopRow(task.id, task.id, what, task.title, since, DOING.get(what, "green"), row=task)


def _waiting_row(task: TaskRow) -> TopRow:
    return TopRow(task.id, task.id, task.status, task.title, task.created_at, "dim", row=task)


def is_running(row: TopRow) -> bool:
    return row.row is not None and row.row.status in RUNNING


def _has(row: TopRow, words: Iterable[str]) -> bool:
    text = f"{row.task} {row.what} {row.words}".casefold()
    return all(word in text for word in words)


def columns_of(rows: Sequence[TopRow]) -> tuple[int, int]:
    """How wide the tasks and their states are."""
    known = [row for row in rows if row.key]
    task = max((width(row.task) for row in known), default=0)
    return min(task, 8), min(max((width(row.what) for row in known), default=0), 11)


def cells(row: TopRow, room: int, now: int, columns: tuple[int, int]) -> list[tuple[str, str]]:
    """Pieces of text with their styles, together exactly as wide as the room."""
    if not row.key:
        return [(pad(fit(row.words, room), room), row.style)]
    task, what = columns
    left = f" {pad(fit(harmless(row.task), task), task)} "
    state = pad(fit(row.what, what), what)
    space = max(room - width(left) - what - AGE - 2, 0)
    words = pad(fit(harmless(" ".join(row.words.split())), space), space)
    old = pad(age(row.since, now), AGE, right=True)
    pieces = [(left, "bold"), (state, row.style), (f" {words} ", ""), (old, "dim")]
    over = sum(width(text) for text, _ in pieces) - room
    return pieces if over <= 0 else [(fit("".join(text for text, _ in pieces), room), "")]


def age(since: int | None, now: int) -> str:
    """One unit: `7s`, `3m`, `2h`, `4d`."""
    if not since:
        return ""
    passed = max(0, now - since)
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "m")):
        if passed >= unit:
            return f"{passed // unit}{name}"
    return f"{passed // SECOND}s"


def summary(look: TopReading, scope_name: str) -> str:
    running = sum(task.status in RUNNING for task in look.tasks)
    needing = {item.task for item in look.items}
    waiting = sum(task.status not in RUNNING and task.id not in needing for task in look.tasks)
    need = "needs" if len(look.items) == 1 else "need"
    spent = sum(task.run.usage.cost for task in look.tasks if task.run)
    starter = "" if look.supervised or not waiting else " for `fleet run`"
    parts = [f"{len(look.items)} {need} you", f"{running} running", f"{waiting} waiting{starter}"]
    parts += [money(spent)] if spent else []
    return " · ".join([*parts, scope_name])


def facts(row: TopRow, now: int) -> list[tuple[str, str]]:
    """The lines above what is shown of a row, each with its style."""
    task, item = row.row, row.item
    title = item.title if item and item.title else task.title if task else row.words
    lines = [(f"{row.task} {title}".strip(), "bold")]
    if task is not None:
        lines.append((_figures(task, now), "dim"))
    if item is not None:
        lines += [(harmless(text), row.style) for text in item.words.splitlines()[:6]]
        lines += [(f"  {n}) {option}", "yellow") for n, option in enumerate(item.options, 1)]
        tasks = "task waits" if item.behind == 1 else "tasks wait"
        lines += [(f"{item.behind} {tasks} for it", "yellow")] if item.behind else []
        lines.append((f"→ {item.actions[0].command}", "cyan"))
    return [(harmless(" ".join(text.split()) if not text.startswith("  ") else text), style)
            for text, style in lines]  # fmt: skip


def _figures(task: TaskRow, now: int) -> str:
    run = task.run
    took = ((run.ended_at or now) - run.started_at) if run and run.started_at else 0
    known = (
        task.status,
        task.agent if task.agent == task.coder else f"{task.agent}/{task.coder}",
        task.model,
        run.branch if run else "",
        duration(max(0, took) // SECOND * SECOND) if took else "",
        money(run.usage.cost) if run and run.usage.cost else "",
        f"setting up: {run.setup}" if run and run.setup else "",
    )
    return " · ".join(filter(None, known))


KEYS = {  # by the kind of an item, or the state of a task
    "question": ("a answer",),
    "budget": ("a answer",),
    "permission": ("y approve", "n deny", "t attach"),
    **dict.fromkeys(("panel", "first-start"), ("t attach",)),
    "failed": ("r retry", "x drop"),
    "conflict": ("d diff",),
    "held": ("r resume", "x drop"),
    "review": ("d diff", "c accept", "p prompt", "l land"),
    "not-landed": ("d diff", "l land"),
    "running": ("p prompt", "t attach", "x kill"),
}
ALWAYS = ("? keys", "q quit", "⏎ open", "/ find")


def keys_of(row: TopRow | None) -> str:
    return "  ".join((*own_keys(row), *ALWAYS))


def own_keys(row: TopRow | None) -> tuple[str, ...]:
    """The keys that do something with this row alone."""
    if row is None:
        return ()
    kind = row.item.kind if row.item else "running" if is_running(row) else "waiting"
    choose = ("1-9 choose",) if row.item and row.item.options else ()
    return (*choose, *KEYS.get(kind, ("x drop",) if row.task else ()))


def first_tab(row: TopRow) -> str:
    """What is shown of it unless something else is asked for."""
    reviewed = row.item is not None and row.item.kind in {"not-landed", "review", "conflict"}
    return "diff" if reviewed else "output"
