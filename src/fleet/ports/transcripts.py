"""What coders printed, line by line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable


class Chunk(NamedTuple):
    lines: tuple[str, ...]
    offset: int  # where the next read starts


class SaidQuery(NamedTuple):
    """Which passages have all these words. Empty means any."""

    words: tuple[str, ...]
    team: str = ""
    project: str = ""
    task: str = ""
    since: int = 0
    limit: int = 100


class SaidLine(NamedTuple):
    run: str
    at: int
    kind: str
    text: str


class Passage(NamedTuple):
    """A piece of what the agents of a task said."""

    task: str
    lines: tuple[SaidLine, ...]


class SaidSearch(Protocol):
    """Finds what agents said on this host by its words. It may find too much, so look again."""

    def find(self, query: SaidQuery) -> Iterable[Passage]:
        """Newest first."""

    def newest(self, task_id: str) -> Passage:
        """What was said last and is not in the index yet."""


class Transcripts(Protocol):
    """All that coders said. Lines are read by (run, offset), whole lines only."""

    passages: SaidSearch

    def read(self, run_id: str, offset: int, *, limit: int = 1 << 20, final: bool = False) -> Chunk:
        """Read at most about `limit` bytes. `final`: nothing more comes, so a last half line counts.

        A negative offset: from the first line that begins within so many bytes of the end. A line of
        many megabytes may come in pieces.
        """

    def count(self, run_id: str, *, final: bool = False) -> int:
        """How many whole lines there are; `final`: a last half line counts, too."""

    def lines(
        self, run_id: str, first: int, count: int, *, last: bool = False
    ) -> tuple[int, tuple[str, ...]]:
        """Lines by number, from 0: the number of the first one, and the lines.

        Where they are megabytes, the first of them, or with `last` the last.
        """

    def stderr(self, run_id: str, *, tail: int = 4096) -> str: ...
