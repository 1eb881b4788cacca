"""Statistics of a span of time, by day, agent, coder and project: a pure fold."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from fleet.base.outside import Time
from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.event import Kind
from fleet.domain.task import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from fleet.domain.event import Event
    from fleet.domain.message import Message
    from fleet.domain.run import Choice, Run
    from fleet.domain.task import Task

SECOND = 1_000_000
MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE
LANDED = frozenset({Kind.TASK_LANDED, Kind.WORKTREE_MERGED})
SETTLING = frozenset({Kind.TASK_SETTLED, Kind.TASK_CLOSED, Kind.TASK_CANCELLED, Kind.TASK_REOPENED})
KINDS = tuple(sorted(str(k) for k in {*LANDED, *SETTLING, Kind.RUN_ENDED, Kind.MESSAGE_ANSWERED}))
REVIEW = str(TaskState.REVIEW)


@dataclass(frozen=True, slots=True)
class StatRow:
    """Sums. `cost` is in millionths of a dollar, `worked` and `waited` are in microseconds.

    `tokens`: read and written by coders. `worked`: by agents. `waited`: for people, in review or with
    an open question.
    """

    name: str
    done: int = 0
    landed: int = 0
    failed: int = 0
    runs: int = 0
    cost: int = 0
    tokens: int = 0
    worked: int = 0
    waited: int = 0


@dataclass(frozen=True, slots=True)
class Stats:
    """Statistics from `since` to `until`. A task counts once, by its last ending."""

    since: Time
    until: Time
    total: StatRow
    days: tuple[StatRow, ...]
    agents: tuple[StatRow, ...]
    coders: tuple[StatRow, ...]
    projects: tuple[StatRow, ...]


class StatsSpan(NamedTuple):
    """A span of time. `east`: the user's offset from UTC in minutes, for the borders of days."""

    since: int
    until: int
    east: int = 0

    def part(self, start: int, end: int) -> int:
        """How many microseconds of the time from `start` to `end` are in the span."""
        return max(0, min(end, self.until) - max(start, self.since))

    def day(self, at: int) -> str:
        from datetime import UTC, datetime  # noqa: PLC0415  # start-up time

        moved = min(max(at, self.since), self.until) + self.east * MINUTE
        return datetime.fromtimestamp(moved // SECOND, UTC).date().isoformat()


class StatsFacts(NamedTuple):
    """The records of the span. Only the tasks in `tasks` count, and records about them."""

    events: Sequence[Event]
    tasks: Mapping[str, Task]
    runs: Mapping[str, Run]  # that ended in the span, or that their tasks had last
    live: Sequence[Run]
    questions: Sequence[Message]  # answered in the span, or open


def stats_of(facts: StatsFacts, span: StatsSpan) -> Stats:
    sums = _Sums(facts, span)
    sums.settle()
    for run in _ended_or_live(facts):
        sums.work(run)
    for question in facts.questions:
        sums.wait(question.task, question.at, question.receipt.closed_at or span.until)
    return sums.stats()


def _ended_or_live(facts: StatsFacts) -> Iterable[Run]:
    ended = {e.run for e in facts.events if e.type == Kind.RUN_ENDED}
    return [*(run for name, run in facts.runs.items() if name in ended), *facts.live]


class _Sums:
    def __init__(self, facts: StatsFacts, span: StatsSpan) -> None:
        self._facts, self._span = facts, span
        self._total: Counter[str] = Counter()
        self._by: dict[str, defaultdict[str, Counter[str]]] = {
            group: defaultdict(Counter) for group in ("days", "agents", "coders", "projects")
        }

    def settle(self) -> None:
        """How each task ended last, what landed, and how long reviews took."""
        last: dict[str, Event] = {}
        landed: dict[str, Event] = {}
        reviews = {
            task.id: task.tally.ended_at
            for task in self._facts.tasks.values()
            if task.state is TaskState.REVIEW
        }
        begun: dict[str, int] = {}
        for event in self._facts.events:
            if event.type in LANDED:
                landed[event.task] = event
            elif event.type in SETTLING:
                last[event.task] = event
                if start := begun.pop(event.task, 0):
                    self.wait(event.task, start, event.at)
                if event.data.get("state") == REVIEW:
                    begun[event.task] = event.at
        for name, start in (reviews | begun).items():
            self.wait(name, start, self._span.until)
        for name, event in last.items():
            ending = _ending(event)
            done, failed = int(ending == "done"), int(ending == "failed")
            self._add(name, event.at, done=done, failed=failed)
        for name, event in landed.items():
            self._add(name, event.at, landed=1)

    def work(self, run: Run) -> None:
        end = run.ended_at or self._span.until
        worked = self._span.part(run.started_at, end) if run.started_at else 0
        usage = run.outcome.usage if run.outcome else None
        self._add(
            run.task,
            end,
            choice=run.choice,
            runs=1,
            worked=worked,
            cost=round(usage.usd * 1_000_000) if usage else 0,
            tokens=usage.input + usage.output if usage else 0,
        )

    def wait(self, task: str, start: int, end: int) -> None:
        self._add(task, end, waited=self._span.part(start, end))

    def _add(self, name: str, at: int, *, choice: Choice | None = None, **counts: int) -> None:
        task = self._facts.tasks.get(name)
        if task is None or not any(counts.values()):
            return
        run = self._facts.runs.get(task.run_id)
        who = choice or (run.choice if run else task.choice)
        self._total.update(counts)
        keys = {
            "days": self._span.day(at),
            "agents": who.agent if who else "",
            "coders": who.coder if who else "",
            "projects": task.project,
        }
        for group, key in keys.items():
            self._by[group][key].update(counts)

    def stats(self) -> Stats:
        rows = {
            group: [StatRow(key, **counts) for key, counts in by.items()]
            for group, by in self._by.items()
        }
        days = sorted(rows.pop("days"), key=lambda row: row.name, reverse=True)
        others = (tuple(sorted(some, key=_most_first)) for some in rows.values())
        total = StatRow("", **self._total)
        return Stats(self._span.since, self._span.until, total, tuple(days), *others)


def _most_first(row: StatRow) -> tuple[int, int, str]:
    return -row.done, -row.worked, row.name


def _ending(event: Event) -> str:
    if event.type == Kind.TASK_CLOSED:
        return "done"
    return str(event.data.get("state", "")) if event.type == Kind.TASK_SETTLED else ""
