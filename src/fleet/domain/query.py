"""Which records are wanted, a page of them at a time."""

from __future__ import annotations

from fleet.domain.data import NamedTuple


class TaskQuery(NamedTuple):
    """Which tasks. Empty means any; newest first, unless `oldest_first`."""

    states: tuple[str, ...] = ()
    project: str = ""
    team: str = ""
    parent: str = ""
    before: str = ""  # the id after which the page starts
    limit: int = 50
    oldest_first: bool = False


class MessageQuery(NamedTuple):
    """Which messages of one kind about one task; newest first."""

    task: str
    kind: str
    state: str = ""
    before: str = ""  # the id after which the page starts
    limit: int = 50


class EntryQuery(NamedTuple):
    """Which entries of one kind. Empty means any; newest first.

    `text`: each of these words is in theirs. `counting_at`: those that count then.
    """

    kind: str
    team: str = ""
    owner: str = ""
    text: str = ""
    counting_at: int = 0
    before: str = ""
    limit: int = 50
