"""What runs used, summed by the hour in which they ended, so that a report need not read runs."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fleet.domain.run import Choice, Outcome, Run

SECOND = 1_000_000
HOUR = 3600 * SECOND
KEPT = 400 * 24 * HOUR  # how long the sums of an hour are kept
MAX_SUMS = 500  # groups, and tasks, with sums of their own in an hour; the rest is one sum
REST = "(others)"


class UsageGroup(NamedTuple):
    """The values of a run by which a report can be grouped."""

    agent: str
    coder: str
    model: str
    node: str
    project: str


class UsedAmount(NamedTuple):
    """`cost` is in millionths of a dollar, `worked` in microseconds."""

    runs: int = 0
    input: int = 0
    output: int = 0
    cached: int = 0
    cost: int = 0
    worked: int = 0

    def plus(self, other: UsedAmount) -> UsedAmount:
        return UsedAmount(*(one + more for one, more in zip(self, other, strict=True)))

    @property
    def tokens(self) -> int:
        return self.input + self.output


class Hour(NamedTuple):
    """What the runs used that ended in one hour: by group, and by task."""

    by: Mapping[UsageGroup, UsedAmount]
    tasks: Mapping[str, UsedAmount]

    def plus(self, who: UsageGroup, task: str, used: UsedAmount) -> Hour:
        return Hour(_added(self.by, who, OTHERS, used), _added(self.tasks, task, REST, used))


OTHERS = UsageGroup(REST, REST, REST, "", REST)
NO_HOUR = Hour({}, {})


def _added(
    sums: Mapping[Any, UsedAmount], key: Any, rest: Any, used: UsedAmount
) -> dict[Any, UsedAmount]:
    name = key if key in sums or len(sums) < MAX_SUMS else rest
    return {**sums, name: sums.get(name, UsedAmount()).plus(used)}


def hour_of(at: int) -> int:
    return at - at % HOUR


def who_of(choice: Choice, project: str) -> UsageGroup:
    return UsageGroup(choice.agent, choice.coder, choice.model, choice.node, project)


def used_by(run: Run, outcome: Outcome, at: int) -> UsedAmount:
    usage = outcome.usage
    worked = max(0, at - run.started_at) if run.started_at else 0
    cost = round(usage.usd * 1_000_000)
    return UsedAmount(1, usage.input, usage.output, usage.cached, cost, worked)


def body_of(hour: Hour) -> dict[str, Any]:
    return {
        "by": [[*who, *used] for who, used in hour.by.items()],
        "tasks": {task: list(used) for task, used in hour.tasks.items()},
    }


def hour_from(body: Mapping[str, Any]) -> Hour:
    wide = len(UsageGroup._fields)
    by = {UsageGroup(*row[:wide]): UsedAmount(*row[wide:]) for row in body.get("by", ())}
    return Hour(by, {task: UsedAmount(*row) for task, row in body.get("tasks", {}).items()})


def summed(pairs: Iterable[tuple[str, UsedAmount]]) -> dict[str, UsedAmount]:
    sums: defaultdict[str, UsedAmount] = defaultdict(UsedAmount)
    for name, used in pairs:
        sums[name] = sums[name].plus(used)
    return dict(sums)


def saved(by: Mapping[UsageGroup, UsedAmount]) -> int:
    """What the tokens served by own nodes would have cost, in millionths of a dollar.

    The price is the average price of the paid tokens in the same sums.
    """
    own = sum(used.tokens for who, used in by.items() if who.node and not used.cost)
    paid = [used for used in by.values() if used.cost]
    tokens = sum(used.tokens for used in paid)
    return round(own * sum(used.cost for used in paid) / tokens) if tokens else 0
