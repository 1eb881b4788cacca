"""The landing train: which merges are tested, which land, and which member is to blame.

The members of a train are merged one after the other onto the target. What comes of a first few
members is a candidate, with a tree that a gate can test. Only a tree that has passed lands, and it
lands with all members before it. When a candidate failed, the cause is among its members: the
stretch is divided among the slots until one member alone is left. That one runs once more before it
is blamed, because gates can be flaky. Slots that are still free test the train without the suspect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MAX_BATCH = 8  # members that one candidate may add to the one before it
MAX_DEPTH = 64  # members of a chain
RATE_STEP = 0.05  # the weight of the newest member in the pass rate
TRIES = 2  # how often a member fails alone before it is blamed

Candidate: TypeAlias = tuple[str, ...]  # its members, in the order of their merges


class GateVerdicts(NamedTuple):
    """How often a tree passed its gate and failed it."""

    passed: int = 0
    failed: int = 0

    @property
    def good(self) -> bool:
        return self.passed > 0

    @property
    def bad(self) -> bool:
        return self.failed > 0 and not self.passed

    @property
    def flaky(self) -> bool:
        return self.passed > 0 and self.failed > 0


class Waiting(NamedTuple):
    """A member that is new in the queue. `needs`: those whose work it has.

    `rivals`: how many others it would conflict with. `lines`: how many it changes.
    """

    id: str
    needs: frozenset[str] = frozenset()
    rivals: int = 0
    lines: int = 0


class Decision(NamedTuple):
    """`land`: this candidate, at once. `blame`: the member that goes back.

    `test`: the candidates that need a gate, most important first. A gate that runs for another
    one is of no use any more.
    """

    land: Candidate = ()
    blame: str = ""
    test: tuple[Candidate, ...] = ()


def arrange(waiting: Sequence[Waiting]) -> list[str]:
    """Who lands before whom: fewest conflicts first, small before large, equals as they came.

    What is small lands soon, and the others are then merged with it only once. Only a size of half
    as much counts as smaller. Work that others have in theirs always comes before them.
    """
    left, order = list(waiting), list[str]()
    while left:
        names = {each.id for each in left}
        free = [each for each in left if not each.needs & names] or left
        best = min(free, key=lambda each: (each.rivals, each.lines.bit_length()))
        left.remove(best)
        order.append(best.id)
    return order


def decide(
    members: Sequence[str],
    verdict: Callable[[Candidate], GateVerdicts],
    *,
    slots: int,
    batch: int = 1,
    rate: float = 1.0,
) -> Decision:
    """What to do with the members, in the order in which they would land.

    `rate`: how many members passed lately. It limits how long the chain of tests gets.
    """
    candidates = [tuple(members[: n + 1]) for n in range(len(members))]
    good = [c for c in candidates if verdict(c).good]
    if good:
        return Decision(land=good[-1])
    if members and verdict(candidates[0]).failed >= TRIES:
        return Decision(blame=members[0])
    return Decision(test=tuple(_tests(members, verdict, slots, batch, deepest(rate))))


def _tests(
    members: Sequence[str],
    verdict: Callable[[Candidate], GateVerdicts],
    slots: int,
    batch: int,
    depth: int,
) -> list[Candidate]:
    """Up to `slots` candidates without a verdict that would say most."""
    if not members or slots <= 0:
        return []
    candidates = [tuple(members[: n + 1]) for n in range(len(members))]
    verdicts = [verdict(candidate) for candidate in candidates]
    green = max((n + 1 for n, v in enumerate(verdicts) if v.good), default=0)
    rest, verdicts = candidates[green:], verdicts[green:]
    suspect = next((n for n, v in enumerate(verdicts) if v.bad), None)
    if not rest:
        return []
    if suspect is None:
        near = rest[: max(depth, batch)]
        return near[batch - 1 :: batch][:slots] or [near[-1]]
    tests = [rest[n] for n in _cuts(suspect, slots)]
    if suspect == 0 and verdicts[0].failed < TRIES:
        tests = [rest[0]]
    without = [m for n, m in enumerate(members) if n != green + suspect]
    more = _tests(without, verdict, slots - len(tests), batch, depth)
    return tests + [candidate for candidate in more if candidate not in tests]


def _cuts(failed: int, slots: int) -> list[int]:
    """Where to cut the stretch up to the candidate that failed into equal parts."""
    parts = min(slots + 1, failed + 1)
    cuts = {(failed + 1) * part // parts - 1 for part in range(1, parts)}
    return sorted(cut for cut in cuts if 0 <= cut < failed)


def next_batch(batch: int, *, passed: bool) -> int:
    """One member more after a landing, half as many after a failure."""
    return min(batch + 1, MAX_BATCH) if passed else max(1, batch // 2)


def deepest(rate: float) -> int:
    """How many members in a row pass together with a chance of a half."""
    depth, chance = 1, rate * rate
    while depth < MAX_DEPTH and chance >= 0.5:
        depth, chance = depth + 1, chance * rate
    return depth


def next_rate(rate: float, *, passed: bool) -> float:
    """The moving pass rate: the last twenty or so members count."""
    return round(rate + (passed - rate) * RATE_STEP, 4)
