"""What a coder can do, and how that was verified, in sentences that `fleet coders` shows."""

from __future__ import annotations

from fleet.domain.data import dataclass


@dataclass(frozen=True, slots=True)
class Abilities:
    """Each field says how it is done, or that it is not; `verified` names the version tried."""

    program: str
    resume: str
    words: str  # to it, while it runs
    usage: str
    cost: str
    context: str
    limits: str
    read: str  # what the permission `read` comes to; likewise the next two
    edit: str
    full: str
    verified: str
