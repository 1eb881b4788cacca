"""What coders printed, line by line."""

from __future__ import annotations

from typing import Protocol

from fleet.domain.data import NamedTuple


class Chunk(NamedTuple):
    lines: tuple[str, ...]
    offset: int  # where the next read starts


class Transcripts(Protocol):
    """All that coders said. Lines are read by (run, offset), whole lines only."""

    def read(self, run_id: str, offset: int, *, limit: int = 1 << 20, final: bool = False) -> Chunk:
        """At most about `limit` bytes. `final`: nothing more comes, so a last half line counts."""

    def stderr(self, run_id: str, *, tail: int = 4096) -> str: ...
