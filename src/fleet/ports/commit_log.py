"""A log of commits in a service that can create a thing only if it is absent."""

from __future__ import annotations

from typing import Protocol


class CommitLog(Protocol):
    """Entries are numbered from 1, and each number is given once. A blob has a name.

    Every method raises `Unavailable` when the service did not answer; then nobody knows whether
    what was to be written is there.
    """

    most: int  # bytes of one entry; a larger one is a blob that its entry names

    def append(self, number: int, entry: bytes) -> bool:
        """Whether this entry has the number now; False: another one has it."""

    def read(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        """The entries after this number, in order and without a gap."""

    def put(self, name: str, blob: bytes) -> None:
        """Write it, in place of the one that had this name."""

    def get(self, name: str) -> bytes | None: ...

    def close(self) -> None: ...
