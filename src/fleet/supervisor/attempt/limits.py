"""When the supervisor itself ends a run: its time, its context, its budget, its silence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.budget import DOLLAR, granted, overdrawn
from fleet.domain.run import Ending
from fleet.domain.task import SECOND, Budget
from fleet.domain.transcript import Conversation, Cut

if TYPE_CHECKING:
    from fleet.config import Settings
    from fleet.domain.fleet import Fleet
    from fleet.domain.run import Run
    from fleet.domain.task import Task
    from fleet.ports import Clock, Coder

FIRST_LINE = 90.0  # every program that speaks in turns says something at once, or never does
ASLEEP = 30.0  # a gap between two looks in which nobody could have heard anything


def budget_of(task: Task, settings: Settings) -> Budget:
    said = settings.budget
    default = Budget(round(said.usd * DOLLAR), said.tokens, round(said.minutes * 60))
    return granted(task.spec.limits.budget, default, task.tally.grants)


def window_of(run: Run, fleet: Fleet, coder: Coder, heard: Conversation) -> int:
    """Tokens that fit: as our own nodes serve the model, else the program's word."""
    model = fleet.model(run.choice.model) if run.choice.model else None
    return model.context if model is not None else heard.window or coder.window


def is_full(heard: Conversation, window: int, settings: Settings) -> bool:
    most = window * settings.context_pressure_threshold_pct / 100
    return 0 < most <= heard.usage.context


def spent_up(run: Run, task: Task, heard: Conversation, settings: Settings, now: int) -> Cut | None:
    """At every word of usage, so that it is at most one reply over."""
    worked = task.tally.worked + (now - run.started_at if run.started_at else 0)
    why = overdrawn(budget_of(task, settings), task.tally.spent + heard.usage, worked)
    return Cut(Ending.OVER_BUDGET, why) if why else None


def out_of_time(run: Run, task: Task, settings: Settings, now: int) -> Cut | None:
    limit = task.spec.limits.time_limit or settings.run.time_limit
    over = limit and run.started_at and now - run.started_at > limit * SECOND
    return Cut(Ending.TIMED_OUT) if over else None


class Steady:
    """The store's time as it was once, and what has passed since: nobody can set that."""

    def __init__(self, at: int, clock: Clock) -> None:
        self._clock = clock
        self._at, self._from = at, clock.since_boot()

    def now(self) -> int:
        return self._at + int((self._clock.since_boot() - self._from) * SECOND)


class Silence:
    """How long a run has said nothing that it should have said. Time asleep does not count."""

    def __init__(self, now: float) -> None:
        self._since = self._looked = now
        self._lines = 0

    def stalled(
        self, heard: Conversation, limit: float, *, now: float, in_turns: bool
    ) -> Cut | None:
        """Never while a tool runs: whatever it does, it may take its time."""
        awake = now - self._looked < ASLEEP
        if heard.lines != self._lines or heard.open_tools or heard.at_rest or not awake:
            self._since = now
        self._looked, self._lines = now, heard.lines
        quiet = now - self._since
        if in_turns and not heard.lines and limit and quiet > FIRST_LINE:
            return Cut(Ending.STALLED, f"It said nothing at all in {FIRST_LINE:.0f} s.")
        if limit and quiet > limit:
            why = f"It said nothing for {quiet:.0f} s, with no tool running."
            return Cut(Ending.STALLED, why)
        return None
