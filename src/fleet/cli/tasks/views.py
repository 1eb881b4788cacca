"""How tasks look on a terminal."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.cli.terminal.human import SECOND, ago, clock, duration, money, tokens
from fleet.cli.terminal.measure import fit
from fleet.cli.terminal.render import Cell, Column, Pairs, Stack, Table, Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fleet.cli.terminal.view import Style, Value, View
    from fleet.domain.task import Budget
    from fleet.operations.messages.rows import MessageRow
    from fleet.operations.tasks.rows import TaskRow
    from fleet.operations.tasks.show import RunRow, TaskDetail

LONGEST_PROMPT = 4000  # characters on the screen
LONGEST_RESULT = 500  # columns of a run's result, also where no screen cuts it
_STYLES: dict[str, Style] = {
    "running": "green",
    "done": "green",
    "succeeded": "green",
    "asking": "yellow",
    "asked": "yellow",
    "review": "yellow",
    "paused": "yellow",
    "failed": "red",
    "cancelled": "dim",
    "waiting": "dim",
}


def status(name: str) -> Cell:
    return Cell(name, _STYLES.get(name, ""))


def task_status(task: TaskRow, now: int, *, whole: bool = False) -> Cell:
    """The status of a task, with details: the landed commit, uncommitted files, or a running set-up.

    `whole`: name the set-up command, too.
    """
    run = task.run
    if task.status == "landed":
        return Cell(f"landed {task.landed[:7]}", "green")
    if task.status == "done" and task.uncommitted:
        return Cell("uncommitted", "yellow")
    if run is None or not run.setup or not run.heard_at:
        return status(task.status)
    command = f": {run.setup}" if whole else ""
    return Cell(f"setting up{command} ({_seconds(now - run.heard_at)})", "yellow")


def elapsed(task: TaskRow, now: int) -> Value:
    run = task.run
    return _seconds((run.ended_at or now) - run.started_at) if run and run.started_at else None


def _clock(task: TaskRow) -> Value:
    return clock(task.run.started_at) if task.run and task.run.started_at else None


def _idle(task: TaskRow, now: int) -> Value:
    run = task.run
    return _seconds(now - run.heard_at) if run and run.heard_at and not run.ended_at else None


def _seconds(micros: int) -> str:
    """Whole ones: a table that is drawn again should not flicker."""
    return duration(max(0, micros // SECOND * SECOND))


def peak_context(task: TaskRow, _now: int) -> Value:
    if not task.run or not task.run.peak_context:
        return None
    return ("~" if task.run.usage.estimated else "") + tokens(task.run.peak_context)


def _lines(task: TaskRow, _now: int) -> Value:
    return task.run.lines if task.run else None


def _cost(task: TaskRow, _now: int) -> Value:
    return money(task.run.usage.cost) if task.run and task.run.usage.cost else None


def _changes(task: TaskRow, _now: int) -> Value:
    return lines_changed(task.run.added, task.run.removed) if task.run else None


def lines_changed(added: int | None, removed: int | None) -> Value:
    return None if added is None or removed is None else f"+{added} -{removed}"


def _branch(task: TaskRow, _now: int) -> Value:
    return task.run.branch or None if task.run else None


def _chosen(task: TaskRow, what: str) -> Value:
    """A cell that is bold if the task names the value, and dim if it comes from the settings."""
    value = str(getattr(task, what))
    if not value:
        return None
    return Cell(value, "bold" if what in task.given else "dim")


LIST: tuple[tuple[Column, Callable[[TaskRow, int], Value]], ...] = (
    (Column("task"), lambda t, _: t.id),
    (Column("status"), task_status),
    (Column("started", spare=7), lambda t, _: _clock(t)),
    (Column("elapsed", right=True, spare=1), elapsed),
    (Column("idle", right=True, spare=8), _idle),
    (Column("context", right=True, spare=4), peak_context),
    (Column("lines", right=True, spare=6), _lines),
    (Column("coder", spare=3), lambda t, _: _chosen(t, "coder")),
    (Column("model", flexible=True, wants=18, spare=5), lambda t, _: _chosen(t, "model")),
    (Column("cost", right=True, spare=1), _cost),
    (Column("branch", flexible=True, least=10, wants=12, spare=2), _branch),
    (Column("changes", right=True, spare=2), _changes),
    (Column("title", flexible=True, least=12, wants=24), lambda t, _: t.title),
    (
        Column("cwd", flexible=True, spare=9, path=True),
        lambda t, _: Cell(t.cwd or t.project, "dim"),
    ),
)


PROJECT = Column("project", flexible=True, least=6, wants=10)


def project_names(paths: Iterable[str]) -> dict[str, str]:
    """The last part of each path; of two that end alike, as many parts as tell them apart."""
    unnamed = {path: [part for part in path.split("/") if part] for path in paths if path}
    names: dict[str, str] = {}
    length = 1
    while unnamed:
        short = {path: "/".join(parts[-length:]) for path, parts in unnamed.items()}
        often = Counter(short.values())
        names |= {p: s for p, s in short.items() if often[s] == 1 or length >= len(unnamed[p])}
        unnamed = {path: parts for path, parts in unnamed.items() if path not in names}
        length += 1
    return names


def task_table(
    tasks: Sequence[TaskRow], now: int, *, empty: str = "No tasks.", everywhere: bool = False
) -> Table:
    """`everywhere`: of all projects, so each names its own."""
    cells = LIST
    if everywhere:
        names = project_names(task.project for task in tasks)
        cells = (LIST[0], (PROJECT, lambda task, _: names.get(task.project)), *LIST[1:])
    rows = [[cell(task, now) for _, cell in cells] for task in tasks]
    return Table([column for column, _ in cells], rows, empty=empty)


def ready_view(tasks: Sequence[TaskRow]) -> View:
    cwd = Column("cwd", flexible=True, spare=1, path=True)
    columns = ("task", Column("title", flexible=True), cwd)
    return Table(columns, [(t.id, t.title, t.cwd) for t in tasks], empty="No ready tasks.")


def detail_view(detail: TaskDetail, now: int) -> View:
    parts: list[tuple[str, View]] = [("", Pairs(_facts(detail, now)))]
    if why := _why(detail):
        is_landing = detail.task.state == "done"
        heading = "Why it has not landed" if is_landing else "Why it is not running"
        parts.append((heading, Text(why)))
    if detail.prompt:
        parts.append(("Prompt", Text(_cut(detail.prompt, detail.task.id))))
    if detail.runs:
        parts.append(("Runs", _runs(detail.runs, now)))
    if detail.messages:
        parts.append(("Messages", _messages(detail.messages, now)))
    return Stack(parts)


def _cut(prompt: str, task: str) -> str:
    """The beginning of a long text, so that it does not push everything else off the screen."""
    if len(prompt) <= LONGEST_PROMPT:
        return prompt
    more = len(prompt) - LONGEST_PROMPT
    return f"{prompt[:LONGEST_PROMPT]}…\n({more:,} more characters: fleet show {task} --json)"


def _facts(detail: TaskDetail, now: int) -> list[tuple[str, Value]]:
    """Those that every task has, then those that this one was given."""
    task, spec = detail.task, detail.spec
    facts: list[tuple[str, Value]] = [
        ("task", task.id),
        ("title", task.title),
        ("status", task_status(task, now, whole=True)),
        ("cwd", f"{task.cwd} (in place)" if spec.in_place else task.cwd or task.project),
        ("agent", _with_origin(task, "agent")),
        ("coder", _with_origin(task, "coder")),
        ("model", _with_origin(task, "model")),
        ("priority", task.priority),
        ("added", f"{ago(task.created_at, now)} by {detail.author}"),
    ]
    given: list[tuple[str, Value]] = [
        ("route", _route(task)),
        ("team", task.team if task.team != "local" else ""),
        ("labels", ", ".join(task.labels)),
        ("base", spec.base),
        ("branch", spec.branch),
        ("review", "done only when you close it" if spec.review else ""),
        ("attempts", spec.limits.attempts),
        ("time limit", _seconds(spec.limits.time_limit * SECOND) if spec.limits.time_limit else ""),
        ("budget", _budget(spec.limits.budget)),
        ("permissions", spec.limits.permissions),
        ("gate", spec.gate),
        ("runs", _location(detail)),
        ("part of", detail.parent),
        ("made of", ", ".join(detail.children)),
        ("after", ", ".join(detail.after)),
        ("needed by", ", ".join(detail.needed_by)),
        ("failed runs", detail.failures),
        ("worktree", _worktree(detail)),
        ("changes", _changes(task, now)),
        ("landed", task.landed[:12]),
        ("next", _next(detail)),
        (
            "last words",
            "" if _why(detail) and task.state != "done" else fit(detail.why, LONGEST_RESULT),
        ),
    ]
    return facts + [(name, value) for name, value in given if value]


def _route(task: TaskRow) -> str:
    return f"routes.{task.route} matched when it was added" if task.route else ""


def _worktree(detail: TaskDetail) -> str:
    """The worktree's directory, if it is on this machine."""
    paths = [run.path for run in detail.runs if run.branch]
    return paths[-1] if paths and Path(paths[-1]).is_dir() else ""


def _next(detail: TaskDetail) -> str:
    """The command for work that is done and has not landed."""
    task = detail.task
    run = task.run
    if task.status != "done" or not run or not run.branch:
        return ""
    if task.uncommitted:
        return f"fleet diff {task.id}, fleet worktree commit {task.id} -m MESSAGE"
    if run.added == run.removed == 0:
        return ""
    return f"fleet diff {task.id}, fleet land {task.id}"


def _location(detail: TaskDetail) -> str:
    """The live run of the task, its host, and the node that serves its model."""
    run = next((r for r in detail.runs if not r.ending), None)
    if run is None:
        return ""
    served = f", {run.model} on node {run.node}" if run.node else ""
    return f"{run.id} on host {run.host}{served}"


def _budget(budget: Budget) -> str:
    limits = (
        money(budget.cost) if budget.cost else "",
        f"{tokens(budget.tokens)} tokens" if budget.tokens else "",
        duration(budget.seconds * SECOND) if budget.seconds else "",
    )
    return ", ".join(filter(None, limits))


def _with_origin(task: TaskRow, what: str) -> str:
    from fleet.domain.choice import DEFAULT

    value = str(getattr(task, what)) or "its own"
    if value == DEFAULT:
        return "the supervisor's default, when it starts"
    if what in task.given or task.route:  # a route may choose some of them, and is shown itself
        return value
    return f"{value} (the default when it was added)"


def _why(detail: TaskDetail) -> str:
    """Why the task is not running; nothing for a task that is done or cancelled."""
    if detail.task.state == "cancelled" or (
        detail.task.state == "done" and not detail.task.landing
    ):
        return ""
    return "\n".join(with_fix(w.why, w.fix) for w in detail.waits)


def with_fix(why: str, fix: str) -> str:
    """The reason with the command to type, unless the reason already ends with it."""
    return f"{why.removesuffix(fix).rstrip(': ')}  → {fix}" if fix else why


def _runs(runs: Sequence[RunRow], now: int) -> View:
    several = len({r.host for r in runs}) > 1
    columns: list[Column | str] = [
        "run",
        "state",
        "coder",
        Column("took", right=True),
        Column("branch", flexible=True),
        Column("result", flexible=True, least=16),
        *([Column("host", flexible=True)] if several else []),
    ]
    rows: list[list[Value]] = [
        [
            r.id,
            status(r.ending or r.state),
            r.coder,
            duration((r.ended_at or now) - (r.started_at or r.claimed_at)),
            r.branch or r.path,
            fit(" ".join(r.detail.split()), LONGEST_RESULT),
            *([r.host] if several else []),
        ]
        for r in runs
    ]
    return Table(columns, rows)


def _messages(messages: Sequence[MessageRow], now: int) -> View:
    columns = (
        "message",
        "kind",
        "status",
        Column("from", flexible=True),
        "when",
        Column("text", flexible=True, least=16),
    )
    rows = [
        (
            m.id,
            m.kind,
            m.status or None,
            m.author,
            ago(m.at, now),
            " ".join(f"{_spot(m)}{m.text} {choices(m)}".split()),
        )
        for m in messages
    ]
    return Table(columns, rows)


def _spot(message: MessageRow) -> str:
    """The file and line that a remark is about."""
    line = f":{message.line}" if message.line else ""
    return f"{message.path}{line}: " if message.path else ""


def choices(message: MessageRow) -> str:
    """The options of a question, numbered."""
    return "  ".join(f"{n}) {option}" for n, option in enumerate(message.options, 1))
