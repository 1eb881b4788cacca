"""Decide when the supervisor ends a run: time limit, full context, budget, silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.run import Ending
from fleet.domain.spending.budget import declared_budget, granted, overdrawn
from fleet.domain.task import SECOND, Budget
from fleet.domain.transcript import Conversation, Cut

if TYPE_CHECKING:
    from fleet.config import Settings
    from fleet.domain.fleet import Fleet
    from fleet.domain.run import Run
    from fleet.domain.task import Task
    from fleet.ports import Clock, Coder

FIRST_LINE = 90.0  # seconds for a program that speaks in turns to print anything at all
ASLEEP = 30.0  # seconds; if two looks are further apart, the machine was asleep


def budget_of(task: Task, settings: Settings) -> Budget:
    declared = settings.budget
    default = declared_budget(declared.usd, declared.tokens, declared.minutes)
    return granted(task.spec.limits.budget, default, task.tally.grants)


def window_of(run: Run, fleet: Fleet, coder: Coder, conversation: Conversation) -> int:
    """The context window in tokens: as declared for a model of ours, else as the coder reports it."""
    model = fleet.model(run.choice.model) if run.choice.model else None
    return model.context if model is not None else conversation.window or coder.window


def is_full(conversation: Conversation, window: int, settings: Settings) -> bool:
    """Whether the context that the coder reports has reached the threshold; estimates do not count."""
    if conversation.usage.estimated:
        return False
    most = window * settings.context_pressure_threshold_pct / 100
    return 0 < most <= conversation.usage.context


def over_budget(
    run: Run, task: Task, conversation: Conversation, settings: Settings, now: int
) -> Cut | None:
    """Why to end the run, when its task has used up its budget of money, tokens or time."""
    worked = task.tally.worked + (now - run.started_at if run.started_at else 0)
    why = overdrawn(budget_of(task, settings), task.tally.spent + conversation.usage, worked)
    return Cut(Ending.OVER_BUDGET, why) if why else None


def out_of_time(run: Run, task: Task, settings: Settings, now: int) -> Cut | None:
    limit = task.spec.limits.time_limit or settings.run.time_limit
    over = limit and run.started_at and now - run.started_at > limit * SECOND
    return Cut(Ending.TIMED_OUT) if over else None


class SteadyClock:
    """The store's time at the start plus the time elapsed since, whatever the wall clock is set to."""

    def __init__(self, at: int, clock: Clock) -> None:
        self._clock = clock
        self._at, self._from = at, clock.since_boot()

    def now(self) -> int:
        return self._at + int((self._clock.since_boot() - self._from) * SECOND)


class Silence:
    """How long a working run has printed nothing. Time while the machine sleeps does not count."""

    def __init__(self, now: float) -> None:
        self._since = self._looked = now
        self._lines = 0

    def stalled(
        self, conversation: Conversation, limit: float, *, now: float, in_turns: bool
    ) -> Cut | None:
        """Why to end the run, when it was silent too long; None while a tool runs or between turns."""
        awake = now - self._looked < ASLEEP
        if (
            conversation.lines != self._lines
            or conversation.open_tools
            or conversation.at_rest
            or not awake
        ):
            self._since = now
        self._looked, self._lines = now, conversation.lines
        quiet = now - self._since
        if in_turns and not conversation.lines and limit and quiet > FIRST_LINE:
            return Cut(Ending.STALLED, f"It printed nothing in its first {FIRST_LINE:.0f} s.")
        if limit and quiet > limit:
            why = f"It printed nothing for {quiet:.0f} s, with no tool running."
            return Cut(Ending.STALLED, why)
        return None
