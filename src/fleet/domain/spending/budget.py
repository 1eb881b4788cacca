"""What a task may cost, and the question that it asks when that is spent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.task import SECOND, Budget

if TYPE_CHECKING:
    from fleet.domain.run import Usage

DOLLAR = 1_000_000  # budgets are in millionths of a dollar
TELLING = 20  # seconds of work after which the cost per minute is meaningful
GO_ON, GIVE_UP = OPTIONS = ("Continue with the same budget again", "Cancel the task")


def declared_budget(usd: float, tokens: int, minutes: float) -> Budget:
    """The budget that the settings declare."""
    return Budget(round(usd * DOLLAR), tokens, round(minutes * 60))


def granted(own: Budget, default: Budget, grants: int) -> Budget:
    """The total budget of a task: its own limits or the default ones, and the same for each grant."""
    times = 1 + grants
    return Budget(
        (own.cost or default.cost) * times,
        (own.tokens or default.tokens) * times,
        (own.seconds or default.seconds) * times,
    )


def overdrawn(budget: Budget, spent: Usage, worked: int) -> str:
    """Which limit is reached, and how fast, in words; empty while none is. `worked` in microseconds."""
    cost, seconds = round(spent.usd * DOLLAR), worked // SECOND
    if budget.cost and cost >= budget.cost:
        burn = per_minute(cost, worked)
        rate = f", ${burn / DOLLAR:.2f} a minute" if burn else ""
        return f"It has cost ${cost / DOLLAR:.2f} of ${budget.cost / DOLLAR:.2f}{rate}."
    if budget.tokens and spent.tokens >= budget.tokens:
        burn = per_minute(spent.tokens, worked)
        rate = f", {round(burn):,} a minute" if burn else ""
        return f"It has used {spent.tokens:,} of {budget.tokens:,} tokens{rate}."
    if budget.seconds and seconds >= budget.seconds:
        return f"It has worked {seconds // 60} of {budget.seconds / 60:g} minutes."
    return ""


def per_minute(spent: float, worked: int) -> float:
    """The use per minute of work; 0 while it is too early to tell. `worked` in microseconds."""
    return spent / (worked / SECOND / 60) if worked >= TELLING * SECOND else 0.0


def left(budget: Budget, spent: Usage) -> float:
    """The dollars that are left, at least a cent; 0 when they are not limited."""
    if not budget.cost:
        return 0.0
    return max(0.01, budget.cost / DOLLAR - spent.usd)
