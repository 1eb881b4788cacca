"""A small record of a team: a member, a token, a chat, a file claim, a memory."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import Any

from fleet.domain.data import dataclass


class EntryKind(StrEnum):
    MEMBER = "member"
    TOKEN = "token"  # noqa: S105  # the name of a kind, no secret
    SWARM = "swarm"  # marks a task with children as a swarm
    FILE = "file"  # a claim on a file, for a while
    MEMORY = "memory"
    CHAT = "chat"  # its members; its lines are messages
    ENROLMENT = "enrolment"  # the hash of a secret that can be exchanged for tokens
    CODE = "code"  # the hash of a one-time code that opens a session
    REVOCATION = "revocation"  # of the tokens that have its key
    PLAN = "plan"  # tasks that were added together, by the hash of what was asked for
    USAGE = "usage"  # what the runs that ended in one hour used
    MARKS = "marks"  # the items of the inbox that a person has put away, and until when
    VIEW = "view"  # a filter of the dashboard's list of tasks, under a name
    RACE = "race"  # its key is the batch; it counts until a winner is picked
    TICKET = "ticket"  # the task of a ticket, by the ticket's address; its owner is the task
    PROJECT = "project"  # how hosts recognize a project; its key is the project's name in the store
    DISK = "disk"  # how much of its disk a host's home takes; its key is the host
    ONCE = "once"  # the reply to a request with an idempotency key, for when it is repeated


@dataclass(frozen=True, slots=True)
class Entry:
    """A record; there is at most one of each kind, team and key.

    `text`: what searches look at. `until`: when it expires; 0: never.
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
    """The words of a query; an entry matches when its text contains all of them."""
    return tuple(dict.fromkeys(query.casefold().split()))


def has_words(text: str, words: tuple[str, ...]) -> bool:
    folded = text.casefold()
    return all(word in folded for word in words)
