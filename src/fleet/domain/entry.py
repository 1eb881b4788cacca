"""A small thing that a team keeps: a member, a token, a chat, a file claim, a memory."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Any

from fleet.domain.data import dataclass


class EntryKind(StrEnum):
    MEMBER = "member"
    TOKEN = "token"  # noqa: S105  # the name of a kind, no secret
    SWARM = "swarm"  # that a task with children is one
    FILE = "file"  # claimed by somebody for a while
    MEMORY = "memory"
    CHAT = "chat"  # who is in it; what is said there are messages
    ENROLMENT = "enrolment"  # a secret that is exchanged for tokens; only its hash is kept
    ONCE = "once"  # what was replied to a request that may come again


@dataclass(frozen=True, slots=True)
class Entry:
    """There is one of a kind, team and key. `owner` is whose it is; `text` is what is searched.

    `until`: it counts only so long; 0: for ever.
    """

    id: str
    version: int
    kind: EntryKind
    team: str
    key: str
    owner: str
    at: int
    until: int = 0
    text: str = ""
    body: dict[str, Any] = field(default_factory=dict)

    def counts(self, now: int) -> bool:
        return not self.until or self.until > now


def words_of(query: str) -> tuple[str, ...]:
    """What an entry's text must contain, each of them, to be found."""
    return tuple(dict.fromkeys(query.casefold().split()))


def has_words(text: str, words: tuple[str, ...]) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)
