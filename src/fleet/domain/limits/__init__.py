"""Limits of the fields of a request, declared in their types: `Annotated[str, TextLimit(200)]`.

`limits.check` refuses other values, and the descriptions of HTTP and MCP are made from the same
types. A type without a limit allows whatever a store can keep: see
`fleet.operations.shared.untrusted`.
"""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from fleet.domain.data import NamedTuple

LARGEST_INTEGER = (1 << 63) - 1  # integers in a store have 64 bits
# White space, as `str.isspace` has it, in a class of characters. What `\s` means differs: JSON Schema counts
# U+FEFF, Python U+001C to U+001F and U+0085.
BLANK = r"\t-\r\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
MOST_SECONDS = 1_000_000_000  # seconds: thirty years


class TextLimit(NamedTuple):
    """At most `most` characters, or any number if 0; with `some`, not only white space.

    `pattern`: a regular expression that the whole text matches. `what`: the name of the value in an
    error; empty: the field's name. `example`: the error's fix.
    """

    most: int = 0
    some: bool = False
    pattern: str = ""
    what: str = ""
    example: str = ""


class OneOf(NamedTuple):
    words: tuple[str, ...]
    what: str = ""


class Whole(NamedTuple):
    """A whole number, from `least` to `most`."""

    least: int = -LARGEST_INTEGER - 1
    most: int = LARGEST_INTEGER
    what: str = ""
    example: str = ""


class Items(NamedTuple):
    """How many items a tuple may have."""

    most: int
    least: int = 0
    example: str = ""


Limit = TextLimit | OneOf | Whole | Items
KINDS = (TextLimit, OneOf, Whole, Items)

Name = Annotated[str, TextLimit(200)]  # of a member, a team, an agent, a label
SomeName = Annotated[str, TextLimit(200, some=True)]
Rows = Annotated[int, Whole(1, 10_000, "limit")]  # in one reply


def limit_of(hint: Any) -> tuple[Any, Limit | None]:
    """The type of a field's values, without None, and their limit."""
    if get_origin(hint) in {Union, UnionType}:
        hint = next(kind for kind in get_args(hint) if kind is not NoneType)
    limit = None
    if get_origin(hint) is Annotated:
        limit = next((each for each in hint.__metadata__ if isinstance(each, KINDS)), None)
        if isinstance(hint.__metadata__[0], str):  # a type of `base.outside`
            return hint, None
        hint = hint.__origin__
    return hint, limit
