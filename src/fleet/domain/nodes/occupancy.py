"""How busy a node is with the requests of others.

Other relays and people use the same nodes. A node's status page, or how long our own requests
waited there, tells how many requests it has; those that are not ours are theirs.
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

USUAL = 5.0  # seconds that we assume for a request of others, until we have measured our own
HALF = 10.0  # seconds after which an observed wait counts half
SHORTEST_WAIT = 0.5  # seconds; a shorter wait may be network delay


class Occupancy(NamedTuple):
    """Requests that a node works on, and that wait there; `slots`: None when it does not say."""

    busy: int
    waiting: int = 0
    slots: int | None = None

    @property
    def most(self) -> int:
        """How many requests the node processes at once, if it is full now; else 0."""
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
        """Update after reading the node's page. `ours`: at most so many of its requests are ours."""
        count = max(0, occupancy.busy + occupancy.waiting - ours)
        kept = self.since[max(0, len(self.since) - count) :]
        since = (*kept, *[now] * (count - len(kept)))
        return replace(self, since=since, most=occupancy.most)

    def queued(self, seconds: float, now: float) -> Strangers:
        """Update after a reply of a node without a page: our request waited there for so many seconds."""
        seconds = seconds if seconds >= SHORTEST_WAIT else 0.0
        return replace(self, queue=seconds, queued_at=now)

    @property
    def beside(self) -> int:
        """How many requests of others the node will be processing when one of ours begins."""
        return min(len(self.since), self.most - 1) if self.most else len(self.since)

    def wait(self, ours: Sequence[float], usual: float, now: float) -> float:
        """The seconds by which the requests of others delay the next free slot.

        `ours`: the seconds that each of our requests will still take. `usual`: what a request takes.
        """
        lingering: float = self.queue * 0.5 ** ((now - self.queued_at) / HALF)
        if not self.most:
            return lingering
        theirs = [remaining(usual or USUAL, now - since) for since in self.since]
        more = Room(self.most, [*ours, *theirs]).wait() - Room(self.most, list(ours)).wait()
        return max(lingering, more)


def page_of(pages: Pages) -> str:
    """The path of the page that shows how busy a server is; empty when it has none."""
    return pages.slots or pages.metrics or pages.load


def pages_of(pages: Pages) -> tuple[str, ...]:
    """The paths of that page, in this release of the server and in older ones."""
    return tuple(filter(None, (page_of(pages), pages.older_load)))


def read_page(pages: Pages, text: str) -> Occupancy | None:
    """Read the text of `page_of`; None when it is not such a page."""
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
    """Read llama.cpp's list of slots."""
    slots = mappings(answer)
    return Occupancy(sum(bool(each.get("is_processing")) for each in slots), slots=len(slots))


def from_metrics(pages: Pages, text: str) -> Occupancy:
    """Read Prometheus metrics; vLLM reports them for each of its engines."""
    values = dict.fromkeys((pages.running, pages.queued), 0.0)
    for line in text.splitlines():
        name = line.partition("{")[0].partition(" ")[0]
        if name in values:
            with suppress(ValueError):
                values[name] += float(line.rpartition(" ")[2])
    return Occupancy(int(values[pages.running]), int(values[pages.queued]))


def from_load(answer: object) -> Occupancy | None:
    """Read SGLang's load: running and waiting requests by worker; older releases count them together."""
    loads = mapping(answer).get("loads")
    workers = mappings(loads if loads is not None else answer)
    if not workers:
        return None
    waiting = sum(integer(each.get("num_waiting_reqs")) for each in workers)
    if loads is not None:
        return Occupancy(sum(integer(each.get("num_running_reqs")) for each in workers), waiting)
    every = sum(integer(each.get("num_reqs")) for each in workers)
    return Occupancy(max(0, every - waiting), waiting)
