"""Forges: where pull requests are opened, and where tickets come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.forges.pull import GateNote, PullDraft, PullSeen


class Forge(Protocol):
    """One repository on a forge. Every method asks it over the network, within a deadline.

    Raise `Unavailable` when it does not answer or asks us to wait, and `Refused` when it says no.
    """

    @property
    def name(self) -> str:
        """`github.com/shop/web`."""

    def find(self, branch: str, base: str) -> PullSeen | None:
        """The newest pull request from this branch onto `base`, whatever became of it."""

    def open(self, draft: PullDraft) -> PullSeen: ...

    def update(self, number: int, draft: PullDraft) -> None:
        """Give it this title and body."""

    def show(self, number: int) -> PullSeen: ...

    def report(self, commit: str, note: GateNote) -> None:
        """Report our gate as the status of this commit; the newest report counts."""

    def comment(self, number: int, text: str, mark: str) -> None:
        """Once for each mark, however often it is called."""

    def merge(self, number: int, head: str, how: str) -> None:
        """Raise `Conflict` when its head is another commit, `Refused` when it cannot be merged now."""

    def close(self, number: int) -> None: ...


class Ticket(NamedTuple):
    """An issue of a tracker. Everything but its URL was written by a person outside of the team."""

    url: str
    name: str  # as people there call it: #12, ENG-3
    title: str
    text: str
    author: str
    labels: tuple[str, ...] = ()
    is_open: bool = True


class Tracking(Protocol):
    """The issues of forges and trackers. Every method asks one over the network, within a deadline."""

    def read(self, url: str) -> Ticket:
        """Raise `BadInput` when the address is not that of a ticket that we can read."""

    def search(self, query: str, repository: str, remote: str, limit: int) -> Sequence[Ticket]:
        """Open tickets. `query`: in the words of the forge of this remote; see the how-to page."""

    def comment(self, url: str, text: str, mark: str) -> None:
        """Once for each mark, however often it is called."""


class Forges(Protocol):
    def of(self, repository: str, remote: str) -> Forge:
        """Where this remote is. Raise `Refused` when that is no forge we know."""

    @property
    def tickets(self) -> Tracking: ...
