"""What operations answer with. Moments are UTC microseconds, or None when there was none."""

from __future__ import annotations

from dataclasses import dataclass

from fleet.domain.task import Spec  # noqa: TC001  # whoever decodes a reply reads its types


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Tokens, and the cost in millionths of a dollar. `context` is the size of the newest prompt."""

    input: int = 0
    output: int = 0
    cached: int = 0
    context: int = 0
    cost: int = 0


@dataclass(frozen=True, slots=True)
class RunNow:
    """A task's newest run, as far as a list shows it."""

    id: str
    started_at: int | None
    ended_at: int | None
    heard_at: int | None
    lines: int | None
    peak_context: int | None
    usage: UsageRow
    last: str


@dataclass(frozen=True, slots=True)
class TaskRow:
    """`given`: which of agent, coder and model the task itself asked for."""

    id: str
    title: str
    status: str
    state: str
    team: str
    priority: int
    labels: tuple[str, ...]
    agent: str
    coder: str
    model: str
    given: tuple[str, ...]
    project: str
    cwd: str
    created_at: int
    run: RunNow | None


@dataclass(frozen=True, slots=True)
class RunRow:
    id: str
    state: str
    coder: str
    model: str
    node: str
    host: str
    branch: str
    path: str
    claimed_at: int
    started_at: int | None
    ended_at: int | None
    ending: str
    detail: str
    usage: UsageRow


@dataclass(frozen=True, slots=True)
class WaitRow:
    code: str
    why: str
    fix: str


@dataclass(frozen=True, slots=True)
class MessageRow:
    id: str
    task: str
    author: str
    kind: str
    text: str
    state: str
    at: int
    options: tuple[str, ...]
    reply_to: str


@dataclass(frozen=True, slots=True)
class TaskDetail:
    """`spec` is what was asked for; empty and zero in it mean: as the settings say."""

    task: TaskRow
    prompt: str
    author: str
    spec: Spec
    parent: str
    children: tuple[str, ...]
    after: tuple[str, ...]
    needed_by: tuple[str, ...]
    waits: tuple[WaitRow, ...]
    runs: tuple[RunRow, ...]
    messages: tuple[MessageRow, ...]
    failures: int
    why: str


@dataclass(frozen=True, slots=True)
class Spoken:
    """Lines of a transcript as the coder wrote them, and where the next ones start."""

    run: str
    coder: str
    lines: tuple[str, ...]
    offset: int
    live: bool
