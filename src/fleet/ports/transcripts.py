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
    """A piece of a task's transcript."""

    task: str
    lines: tuple[SaidLine, ...]


class SaidSearch(Protocol):
    """Full-text search in this host's transcripts. It may find too much: check the passages."""

    def find(self, query: SaidQuery) -> Iterable[Passage]:
        """Newest first."""

    def newest(self, task_id: str) -> Passage:
        """Return the end of a task's transcript, which is not in the index yet."""


class Transcripts(Protocol):
    """The transcripts of runs. Whole lines are read, by run and offset."""

    passages: SaidSearch

    def read(self, run_id: str, offset: int, *, limit: int = 1 << 20, final: bool = False) -> Chunk:
        """Read about `limit` bytes. `final`: the run has ended, so include an incomplete last line.

        With a negative offset, begin at the first line that starts within so many bytes of the
        end. A line of many megabytes may be returned in pieces.
        """

    def count(self, run_id: str, *, final: bool = False) -> int:
        """Count the whole lines; with `final`, also an incomplete last one."""

    def lines(
        self, run_id: str, first: int, count: int, *, last: bool = False
    ) -> tuple[int, tuple[str, ...]]:
        """Return lines by number, from 0: the number of the first one, and the lines.

        Of many megabytes only the first lines are returned or, with `last`, the last ones.
        """

    def stderr(self, run_id: str, *, tail: int = 4096) -> str: ...
