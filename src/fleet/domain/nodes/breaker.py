"""Whether requests may go to a node: a fold over what came of those that did.

A node that cannot be reached is shut off at once, one that fails is shut off when it fails often, and
a busy one is never shut off. What is shut off is asked how it is, less and less often; when it answers,
one request goes first, then a few.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from fleet.domain.data import dataclass

WINDOW, FAILURES = 5, 3  # so many of the last ones
FIRST_PROBE, LAST_PROBE = 0.5, 5.0  # seconds; the last is how late a return can be noticed
GENTLE_STEPS = 3  # good answers until all of its slots are used again
BUSY = 1.0  # seconds, when a busy node does not say how long
LONGEST_BUSY = 60.0


class State(StrEnum):
    CLOSED = "closed"  # requests go through
    OPEN = "open"
    GENTLE = "gentle"


class Result(StrEnum):
    """What came of a request, as far as its node is to blame."""

    GOOD = "good"
    UNREACHABLE = "unreachable"  # refused, or nobody there within the connect timeout
    FAILED = "failed"  # it answered with an error of its own, or broke off
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class Breaker:
    state: State = State.CLOSED
    why: str = ""  # it is open, or was last
    recent: tuple[bool, ...] = ()  # of the last answers, which were good
    probes: int = 0  # in vain, or followed by a failure
    next_probe: float = 0.0
    passed: int = 0  # good answers since it came back
    busy_until: float = 0.0


def after(
    breaker: Breaker, result: Result, *, now: float, why: str = "", rest: float = 0.0
) -> Breaker:
    """`rest`: how long a busy node asked to be left alone."""
    match result:
        case Result.UNREACHABLE:
            return _opened(breaker, now, why or "it cannot be reached")
        case Result.BUSY:
            until = now + min(rest or BUSY, LONGEST_BUSY)
            return replace(breaker, busy_until=max(breaker.busy_until, until))
        case Result.FAILED:
            recent = (*breaker.recent, False)[-WINDOW:]
            if breaker.state is State.GENTLE or recent.count(False) >= FAILURES:
                return _opened(breaker, now, why or "it fails")
            return replace(breaker, recent=recent)
        case Result.GOOD:
            return _good(breaker)


def probed(breaker: Breaker, *, up: bool, now: float, why: str = "") -> Breaker:
    """After a look at a node that is shut off."""
    if breaker.state is not State.OPEN:
        return breaker
    if up:
        return replace(breaker, state=State.GENTLE, passed=0, recent=())
    return _opened(breaker, now, why or breaker.why)


def probe_due(breaker: Breaker, now: float) -> bool:
    return breaker.state is State.OPEN and now >= breaker.next_probe


def allowed(breaker: Breaker, slots: int, now: float) -> int:
    """How many of its slots may be used."""
    if breaker.state is State.OPEN:
        return 0
    if now < breaker.busy_until:
        return 0
    return min(slots, 1 + breaker.passed) if breaker.state is State.GENTLE else slots


def _good(breaker: Breaker) -> Breaker:
    recent = (*breaker.recent, True)[-WINDOW:]
    if breaker.state is State.OPEN:  # one that was under way when it was shut off
        return breaker
    passed = breaker.passed + 1
    if breaker.state is State.GENTLE and passed < GENTLE_STEPS:
        return replace(breaker, recent=recent, passed=passed)
    return replace(breaker, state=State.CLOSED, recent=recent, probes=0, passed=0)


def _opened(breaker: Breaker, now: float, why: str) -> Breaker:
    if breaker.state is State.OPEN and now < breaker.next_probe:
        return replace(breaker, why=why)  # others that were under way tell the same
    pause = min(FIRST_PROBE * 2**breaker.probes, LAST_PROBE)
    return replace(
        breaker,
        state=State.OPEN,
        why=why,
        recent=(),
        passed=0,
        probes=breaker.probes + 1,
        next_probe=now + pause,
    )
