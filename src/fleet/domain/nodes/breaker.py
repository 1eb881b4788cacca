"""Whether requests may go to a node, or to one model of it: a fold over the results of earlier ones.

A node that cannot be reached is shut off at once. One model of a node is shut off after several
errors; or at once when it is silent while another node answers, when the node does not have it, or
when the node refuses our key. A busy node or model is never shut off. What is shut off is probed,
less and less often; when it answers a probe, it gets one request, then a few, then all.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from fleet.base.loose_json import mapping
from fleet.domain.data import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

WINDOW, FAILURES = 5, 3  # shut off after 3 failures among the last 5 answers
FIRST_PROBE, LAST_PROBE = (
    0.5,
    5.0,
)  # seconds before a probe; at the longest, we notice a return so late
FIRST_TRIAL, LAST_TRIAL = 5.0, 60.0  # seconds, of one model: each trial may load it for a minute
GENTLE_STEPS = 3  # good answers after a probe, after which all slots are used again
BUSY = 1.0  # seconds to wait when a busy node does not say how long; doubled each time
LONGEST_BUSY = 60.0


class State(StrEnum):
    CLOSED = "closed"  # requests go through
    OPEN = "open"
    GENTLE = "gentle"


class NodeResult(StrEnum):
    """The result of a request, as far as its node caused it."""

    GOOD = "good"
    UNREACHABLE = "unreachable"  # the connection was refused or timed out
    FAILED = "failed"  # it answered with a server error, or closed the connection early
    BUSY = "busy"
    UNFIT = "unfit"  # it refused the key, has no credit left, or lacks the model
    SILENT = "silent"  # it said nothing, and meanwhile another node answered the same request


@dataclass(frozen=True, slots=True)
class Breaker:
    state: State = State.CLOSED
    why: str = ""  # why it is open, or was open last
    recent: tuple[bool, ...] = ()  # for each of the last answers, whether it was good
    probes: int = 0  # how often it was shut off, or a probe failed, since it last worked
    next_probe: float = 0.0
    passed: int = 0  # good answers since it came back
    busy_until: float = 0.0
    busy_why: str = ""
    refusals: int = 0  # times in a row that it was too busy
    pauses: tuple[float, float] = (
        FIRST_PROBE,
        LAST_PROBE,
    )  # before the first probe, and the longest


def of_model() -> Breaker:
    """The breaker of one model of a node."""
    return Breaker(pauses=(FIRST_TRIAL, LAST_TRIAL))


def after(
    breaker: Breaker, result: NodeResult, *, now: float, why: str = "", rest: float = 0.0
) -> Breaker:
    """The breaker after this result. `rest`: for how many seconds a busy node wants no requests."""
    match result:
        case NodeResult.UNREACHABLE:
            return _opened(breaker, now, why or "it cannot be reached")
        case NodeResult.SILENT | NodeResult.UNFIT:
            return _opened(breaker, now, why or f"it is {result}")
        case NodeResult.BUSY:
            if now < breaker.busy_until and not rest:
                return breaker  # from a request that was sent before it rested
            pause = rest or BUSY * 2 ** min(breaker.refusals, 16)
            tired = replace(breaker, refusals=breaker.refusals + 1)
            return resting(replace(tired, busy_why=why), now + min(pause, LONGEST_BUSY))
        case NodeResult.FAILED:
            recent = (*breaker.recent, False)[-WINDOW:]
            if breaker.state is State.GENTLE or recent.count(False) >= FAILURES:
                return _opened(breaker, now, why or "it fails")
            return replace(breaker, recent=recent)
        case NodeResult.GOOD:
            return _good(breaker)


def resting(breaker: Breaker, until: float) -> Breaker:
    return replace(breaker, busy_until=max(breaker.busy_until, until))


def probed(breaker: Breaker, *, up: bool, now: float, why: str = "") -> Breaker:
    """The breaker after a probe of a node that is shut off."""
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


def shut_off(facts: object) -> Iterator[tuple[str, str]]:
    """The models of a node that are shut off, and why, read from the relay's status of the node."""
    node = mapping(facts)
    for upstream, each in mapping(node.get("servings")).items():
        shut = [of for of in (mapping(each), node) if of.get("breaker") == State.OPEN]
        if shut:
            yield upstream, f"shut off: {shut[0].get('why')}"


def _good(breaker: Breaker) -> Breaker:
    recent = (*breaker.recent, True)[-WINDOW:]
    breaker = replace(breaker, refusals=0)
    if breaker.state is State.OPEN:  # the request was sent before the node was shut off
        return breaker
    passed = breaker.passed + 1
    if breaker.state is State.GENTLE and passed < GENTLE_STEPS:
        return replace(breaker, recent=recent, passed=passed)
    return replace(breaker, state=State.CLOSED, recent=recent, probes=0, passed=0)


def _opened(breaker: Breaker, now: float, why: str) -> Breaker:
    if breaker.state is State.OPEN and now < breaker.next_probe:
        return replace(
            breaker, why=why
        )  # from a request that was sent before the node was shut off
    first, longest = breaker.pauses
    pause = min(first * 2 ** min(breaker.probes, 16), longest)
    return replace(
        breaker,
        state=State.OPEN,
        why=why,
        recent=(),
        passed=0,
        probes=breaker.probes + 1,
        next_probe=now + pause,
    )
