"""The audit trail: who asked the server for what, from where, and with what result."""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from typing import Any

from fleet.base.outside import Time
from fleet.domain.data import NamedTuple, dataclass

MAX_TARGET = 200  # characters
MAX_NAME = 64  # of one name in the target: too few for a whole token that a person pasted there
REFUSED_STATUSES = frozenset({401, 403, 421, 429})
REFUSED_CODES = frozenset({"no_such_place"})
# Fields of requests that name a thing; never those with free text.
NAMING = (
    "task", "swarm", "run", "message", "mail", "question", "chat", "checkpoint", "handoff", "posts",
    "token", "enrolment", "member", "name", "handle", "to", "assignee", "key", "path", "file",
)  # fmt: skip


class AuditOutcome(StrEnum):
    ALLOWED = "allowed"  # it was carried out
    REFUSED = "refused"  # the caller may not, or is not known
    FAILED = "failed"  # the caller may, and something else was wrong


@dataclass(frozen=True, slots=True)
class AuditRecord:
    """One request. `token`: the token's id. `count`: how many refusals this record stands for."""

    id: str
    at: Time
    outcome: str
    actor: str = ""
    role: str = ""
    team: str = ""
    run: str = ""
    token: str = ""
    address: str = ""
    operation: str = ""
    target: str = ""
    code: str = ""
    count: int = 1


class AuditQuery(NamedTuple):
    """Which records. Empty means any; newest first, with `after` oldest first."""

    actor: str = ""
    team: str = ""
    refused: bool = False
    since: int = 0
    before: str = ""
    after: str = ""
    limit: int = 100

    def wants(self, record: AuditRecord) -> bool:
        return (
            (not self.actor or record.actor == self.actor)
            and (not self.team or record.team == self.team)
            and (not self.refused or record.outcome == AuditOutcome.REFUSED)
            and record.at >= self.since
        )


def outcome_of(status: int, code: str) -> AuditOutcome:
    """The outcome of an answer with this HTTP status and error code."""
    if status < 400:
        return AuditOutcome.ALLOWED
    refused = status in REFUSED_STATUSES or code in REFUSED_CODES
    return AuditOutcome.REFUSED if refused else AuditOutcome.FAILED


def target_of(request: object, reply: object = None) -> str:
    """The ids and names of what a request is about and of what it made; never free text."""
    kind: Any = type(request)
    names = [getattr(reply, "id", ""), *(getattr(request, name) for name in _naming(kind))]
    texts = dict.fromkeys(text for name in names for text in _texts(name))
    return " ".join(texts)[:MAX_TARGET]


@cache
def _naming(kind: Any) -> tuple[str, ...]:
    return tuple(name for name in NAMING if hasattr(kind, name))


def _texts(name: Any) -> list[str]:
    some = name[:10] if isinstance(name, tuple) else (name,)
    return [text[:MAX_NAME] for text in some if isinstance(text, str) and text]


def number_of(record_id: str) -> int:
    """The number in the id of a record, as 57 in `a-57`; 0 when it is not an id."""
    number = record_id.removeprefix("a-")
    return int(number) if number.isascii() and number.isdigit() and len(number) < 19 else 0
