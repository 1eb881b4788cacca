"""How long a node may say nothing before another is asked the same, and what we load unasked."""

from __future__ import annotations

from fleet.domain.data import NamedTuple

MEASURED, GUESSED = (3.0, 2.0), (4.0, 8.0)  # times what is expected, and seconds more
SURE = 1.5  # times what it takes at most, at the speed that is known
RECENT = 600.0  # seconds since a model was last asked for; then it is asked for again, likely


def first_byte_limit(expected: float, *, measured: bool, reread: float = 0.0) -> float:
    """Seconds until its first byte is late.

    `expected` is for loading and for reading the prompt, and for writing where a reply comes in one
    piece. `reread`: for reading what should be in its cache. A node may have lost that, and is not stuck.
    """
    times, more = MEASURED if measured else GUESSED
    return max(times * expected, SURE * (expected + reread)) + more


class Cold(NamedTuple):
    """A model that is not in its node's memory, on a node that is up."""

    idle: float  # seconds since it was asked for, on whichever node
    others: bool  # other models are in the node's memory
    room: bool  # it has been there beside others, and nothing had to go
    busy: bool  # the node loads another model now


def worth_loading(cold: Cold) -> bool:
    """Whether to load it before a request has to wait for that. Nothing is evicted on a guess."""
    return cold.idle < RECENT and not cold.busy and (cold.room or not cold.others)
