"""A log of commits in a service that can create an object only if it does not exist."""

from __future__ import annotations

from typing import Protocol


class CommitLog(Protocol):
    """Numbered entries, from 1 and each written once, and named blobs.

    Every method raises `Unavailable` when the service did not answer; a write may then have
    happened or not.
    """

    most: int  # bytes of one entry; a larger one is stored as a blob that the entry names

    def append(self, number: int, entry: bytes) -> bool:
        """Write an entry under this number; return False if another entry has it."""

    def read(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return the entries after this number, in order and without a gap."""

    def put(self, name: str, blob: bytes) -> None:
        """Write a blob, replacing any with this name."""

    def get(self, name: str) -> bytes | None: ...

    def close(self) -> None: ...
