"""The type of a field says what it may hold."""

from __future__ import annotations

from typing import Annotated

import pytest

from fleet.domain.data import dataclass
from fleet.domain.errors import BadInput
from fleet.domain.limits import Items, OneOf, TextLimit, Whole
from fleet.domain.limits.check import check


@dataclass(frozen=True, slots=True)
class Inner:
    size: Annotated[int, Whole(0)] = 0


@dataclass(frozen=True, slots=True)
class Asked:
    name: Annotated[str, TextLimit(5, some=True, example="Say who.")]
    word: Annotated[str, OneOf(("red", "blue"), "colour")] = "red"
    count: Annotated[int, Whole(1, 9)] = 1
    tags: Annotated[tuple[Annotated[str, TextLimit(3, what="tag")], ...], Items(2)] = ()
    code: Annotated[str, TextLimit(pattern="[a-z]+-[0-9]+", example="As in m-12.")] = "m-1"
    maybe: Annotated[int, Whole(1)] | None = None
    free: str = ""
    inner: Inner = Inner()  # frozen
    inners: tuple[Inner, ...] = ()


@pytest.mark.parametrize(
    ("asked", "message", "fix"),
    [
        (Asked(""), "The name is empty.", "Say who."),
        (Asked("\u2003 "), "The name is empty.", "Say who."),
        (Asked("abcdef"), "The name has 6 characters; the limit is 5.", "Shorten"),
        (Asked("a\0"), "The name is not valid text.", "UTF-8"),
        (Asked("a", word="blu"), "'blu' is not a colour.", "Did you mean 'blue'?"),
        (Asked("a", word=""), "'' is not a colour.", "Choose one of: red, blue."),
        (Asked("a", count=10), "Count 10 is not between 1 and 9.", "in that range"),
        (Asked("a", tags=("a", "b", "c")), "3 tags were given; the limit is 2.", "at most 2"),
        (Asked("a", tags=("abcd",)), "The tag has 4 characters", "Shorten"),
        (Asked("a", code="m-1\n"), "'m-1\n' is not a valid code.", "As in m-12."),
        (Asked("a", maybe=0), "Maybe 0 is less than 1.", "in that range"),
        (Asked("a", inner=Inner(-1)), "Size -1 is less than 0.", "in that range"),
        (Asked("a", inners=(Inner(), Inner(-1))), "Size -1 is less than 0.", "in that range"),
    ],
)
def test_a_value_beyond_the_limit_of_its_type_is_refused(asked, message, fix):
    with pytest.raises(BadInput) as caught:
        check(asked)
    assert message in caught.value.message
    assert fix in caught.value.fix


def test_a_value_within_its_limits_is_taken():
    check(Asked("abcde", "blue", 9, ("abc", ""), "x-0", 1, "a\nb", Inner(3), (Inner(1),)))
