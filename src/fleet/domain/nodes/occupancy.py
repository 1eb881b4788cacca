"""Who else is at work on a node: what its own pages say, and what our requests waited for.

Other relays and people use the same nodes. What we sent there we know; the rest is theirs.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.base.loose_json import integer, mapping, mappings
from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.nodes.line import Room, remaining

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.nodes.kinds import Pages

USUAL = 5.0  # seconds that a stranger's request takes, until our own have shown what is usual
HALF = 10.0  # seconds after which a wait that was seen counts half
SHORTEST_WAIT = 0.5  # seconds; less is the network, or a node that measures otherwise


class Occupancy(NamedTuple):
    """Requests that a node works on, and that wait there; `slots`: None when it does not say."""

    busy: int
    waiting: int = 0
    slots: int | None = None

    @property
    def most(self) -> int:
        """How many it takes at once, if it is full; else 0."""
        if self.slots is not None:
            return self.slots if self.busy >= self.slots else 0
        return self.busy if self.waiting else 0


@dataclass(frozen=True, slots=True)
class Strangers:
    """The requests of others on a node: since when each is there, the oldest first."""

    since: tuple[float, ...] = ()
    most: int = 0  # slots of the node, when none was free; else 0
    queue: float = 0.0  # seconds that one of ours waited inside the node behind others
    queued_at: float = 0.0

    def seen(self, occupancy: Occupancy, ours: int, now: float) -> Strangers:
        """After a look. `ours`: how many of its requests are ours, at most."""
        count = max(0, occupancy.busy + occupancy.waiting - ours)
        kept = self.since[max(0, len(self.since) - count) :]
        since = (*kept, *[now] * (count - len(kept)))
        return replace(self, since=since, most=occupancy.most)

    def queued(self, seconds: float, now: float) -> Strangers:
        """After a reply of a node without a page: how long ours waited in it, as far as it says."""
        seconds = seconds if seconds >= SHORTEST_WAIT else 0.0
        return replace(self, queue=seconds, queued_at=now)

    @property
    def beside(self) -> int:
        """How many of them will be at work when a request of ours begins there."""
        return min(len(self.since), self.most - 1) if self.most else len(self.since)

    def wait(self, ours: Sequence[float], usual: float, now: float) -> float:
        """Seconds more until a slot is free than with our own requests alone.

        `ours`: how long each of ours will still take. `usual`: how long one takes.
        """
        lingering: float = self.queue * 0.5 ** ((now - self.queued_at) / HALF)
        if not self.most:
            return lingering
        theirs = [remaining(usual or USUAL, now - since) for since in self.since]
        more = Room(self.most, [*ours, *theirs]).wait() - Room(self.most, list(ours)).wait()
        return max(lingering, more)


def page_of(pages: Pages) -> str:
    """The page on which a server says who is at work; empty when it has none."""
    return pages.slots or pages.metrics or pages.load


def pages_of(pages: Pages) -> tuple[str, ...]:
    """That page, and where an older server has it."""
    return tuple(filter(None, (page_of(pages), pages.older_load)))


def read_page(pages: Pages, text: str) -> Occupancy | None:
    """What `page_of` answered; None when it is no such page."""
    if not text:
        return None
    if not pages.slots and pages.metrics:
        return from_metrics(pages, text)
    with suppress(ValueError, RecursionError):
        answer = json.loads(text)
        if pages.slots:
            return from_slots(answer) if isinstance(answer, list) else None
        return from_load(answer)
    return None


def from_slots(answer: object) -> Occupancy:
    """llama.cpp lists its slots."""
    slots = mappings(answer)
    return Occupancy(sum(bool(each.get("is_processing")) for each in slots), slots=len(slots))


def from_metrics(pages: Pages, text: str) -> Occupancy:
    """The format of Prometheus; vLLM counts for each of its engines."""
    values = dict.fromkeys((pages.running, pages.queued), 0.0)
    for line in text.splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        if name in values:
            with suppress(ValueError):
                values[name] += float(line.rpartition(" ")[2])
    return Occupancy(int(values[pages.running]), int(values[pages.queued]))


def from_load(answer: object) -> Occupancy | None:
    """SGLang counts for each worker those at work and those that wait; an older one both together."""
    loads = mapping(answer).get("loads")
    workers = mappings(loads if loads is not None else answer)
    if not workers:
        return None
    waiting = sum(integer(each.get("num_waiting_reqs")) for each in workers)
    if loads is not None:
        return Occupancy(sum(integer(each.get("num_running_reqs")) for each in workers), waiting)
    every = sum(integer(each.get("num_reqs")) for each in workers)
    return Occupancy(max(0, every - waiting), waiting)
