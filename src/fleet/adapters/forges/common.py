"""What the forges have in common: marks in comments, refused merges, and unexpected answers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from fleet.adapters.forges.rest import status_of
from fleet.domain.errors import Conflict, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

CONTEXT = "fleet"  # the name of our gate's commit status
MOST_STATUS = 140  # characters of a commit status, of GitHub
HEAD_MOVED = 409
MOST_PAGES = 20  # of comments that are looked through for a mark
MOST_COMMENT = 60_000  # characters; GitHub takes 65,536


def marked(text: str, mark: str) -> str:
    """Return a comment with a hidden mark, by which `has_mark` finds it later."""
    return f"{text[:MOST_COMMENT]}\n\n<!-- fleet {mark} -->"


def has_mark(notes: Callable[[int], Sequence[str]], mark: str, page: int) -> bool:
    """Whether one of the comments has this mark; `notes` gives a page of them, from 1."""
    for number in range(1, MOST_PAGES + 1):
        rows = notes(number)
        if any(f"<!-- fleet {mark} -->" in row for row in rows):
            return True
        if len(rows) < page:
            return False
    return False


@contextmanager
def merging(not_now: Container[int]) -> Iterator[None]:
    """Translate errors of a merge. `not_now`: HTTP statuses that mean it cannot be merged yet."""
    try:
        yield
    except Refused as error:
        if status_of(error) == HEAD_MOVED:
            raise Conflict(error.message) from None
        if status_of(error) in not_now:
            raise Refused(error.message, code="not_mergeable") from None
        raise


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn errors while reading a forge's reply into `Unavailable`, as it may contain anything."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unavailable(
            f"{name} sent an unexpected answer ({type(error).__name__}: {error}).",
            code="forge_odd",
        ) from None
