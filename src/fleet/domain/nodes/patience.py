"""How long to wait for a node before asking another, and which models to load in advance."""

from __future__ import annotations

from fleet.domain.data import NamedTuple

MEASURED, GUESSED = (3.0, 2.0), (4.0, 8.0)  # (factor, seconds added) for the expected time
SURE = 1.5  # factor for the longest time at the known speed
RECENT = 600.0  # seconds; a model requested more recently is likely to be requested again


def first_byte_limit(expected: float, *, measured: bool, reread: float = 0.0) -> float:
    """The seconds after which the first byte of a reply is late.

    `expected`: seconds for loading the model, reading the prompt and, where a reply comes in one piece,
    writing it. `reread`: seconds for reading what should be cached: a node that has lost its cache is
    slow, not stuck.
    """
    times, more = MEASURED if measured else GUESSED
    return max(times * expected, SURE * (expected + reread)) + more


class Cold(NamedTuple):
    """A model that is not in its node's memory, on a node that is up."""

    idle: float  # seconds since it was last requested, on any node
    others: bool  # other models are in the node's memory
    room: bool  # it was in memory beside other models before, without evicting one
    busy: bool  # the node loads another model now


def worth_loading(cold: Cold) -> bool:
    """Whether to load the model before it is requested; never where that may evict another model."""
    return cold.idle < RECENT and not cold.busy and (cold.room or not cold.others)
