"""Forges: where pull requests are opened, and where tickets come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.domain.forges.pull import GateNote, PullDraft, PullSeen


class Forge(Protocol):
    """One repository on a forge. Every method sends requests, within a deadline.

    They raise `Unavailable` when it does not answer or asks us to wait, `Refused` when it refuses.
    """

    @property
    def name(self) -> str:
        """The repository with its host, such as `github.com/shop/web`."""

    def find(self, branch: str, base: str) -> PullSeen | None:
        """Return the newest pull request from this branch onto `base`, in whatever state."""

    def open(self, draft: PullDraft) -> PullSeen: ...

    def update(self, number: int, draft: PullDraft) -> None:
        """Set the title and body of a pull request."""

    def show(self, number: int) -> PullSeen: ...

    def report(self, commit: str, note: GateNote) -> None:
        """Set the gate's result as the status of this commit, replacing an earlier one."""

    def comment(self, number: int, text: str, mark: str) -> None:
        """Comment on a pull request, unless a comment there has this mark already."""

    def merge(self, number: int, head: str, how: str) -> None:
        """Merge it; raise `Conflict` if its head is another, `Refused` if it cannot be merged."""

    def close(self, number: int) -> None: ...


class Ticket(NamedTuple):
    """An issue of a tracker. All but its URL is untrusted: people outside of the team wrote it."""

    url: str
    name: str  # as the tracker shows it: #12, ENG-3
    title: str
    text: str
    author: str
    labels: tuple[str, ...] = ()
    is_open: bool = True


class Tracking(Protocol):
    """The issues of forges and trackers. Every method sends requests, within a deadline."""

    def read(self, url: str) -> Ticket:
        """Return a ticket; raise `BadInput` when the address is not that of a known tracker's."""

    def search(self, query: str, repository: str, remote: str, limit: int) -> Sequence[Ticket]:
        """Find open tickets. `query`: in the syntax of this remote's forge; see the how-to page."""

    def comment(self, url: str, text: str, mark: str) -> None:
        """Comment on a ticket, unless a comment there has this mark already."""


class Forges(Protocol):
    def of(self, repository: str, remote: str) -> Forge:
        """Return the repository of this remote; raise `Refused` when its forge is not known."""

    @property
    def tickets(self) -> Tracking: ...
