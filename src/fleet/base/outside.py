"""Types of fields that are encoded differently in replies of the server and in its clients.

Inside, a time is whole microseconds since 1970 UTC, and JSON that we only pass on is text. Outside, a
time is RFC 3339 text, and such JSON is the object itself.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, get_origin

Time = Annotated[int, "time"]
Json = Annotated[str, "json"]  # the text of a JSON object

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def moment(at: int) -> datetime:
    return EPOCH + at * _MICROSECOND


def microseconds(text: str) -> int:
    """The microseconds of a time in RFC 3339. Raise `ValueError` for anything else."""
    return (datetime.fromisoformat(text) - EPOCH) // _MICROSECOND


def is_marked(hint: Any, mark: Any) -> bool:
    """Whether the type of a field is `mark`: `Time` or `Json`."""
    return get_origin(hint) is Annotated and hint == mark
