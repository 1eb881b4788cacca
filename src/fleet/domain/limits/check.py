"""Refuse a request with a field whose value its type does not allow."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

from fleet.domain.errors import BadInput, nearest
from fleet.domain.limits import BLANK, LARGEST_INTEGER, Items, OneOf, TextLimit, Whole, limit_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import Field

    Test = Callable[[str, Any], None]

NOT_BLANK = f"[^{BLANK}]"


def check(request: object) -> None:
    """Raise `BadInput` for the first field whose value its type does not allow."""
    kind: Any = type(request)
    for name, test, usual in _tests(kind):
        value = getattr(request, name)
        if value is not None and value is not usual:
            test(name, value)


@cache
def _tests(kind: Any) -> tuple[tuple[str, Test, Any], ...]:
    """The fields with limits: name, test, and the default, which need not be tested if it passes."""
    hints = get_type_hints(kind, include_extras=True)
    tests = ((f, test_of(hints[f.name])) for f in fields(kind))
    return tuple((f.name, test, _usual(f, test)) for f, test in tests if test is not None)


def _usual(field: Field[Any], test: Test) -> Any:
    if field.default is MISSING or field.default is None:
        return None
    try:
        test(field.name, field.default)
    except BadInput:
        return None
    return field.default


def test_of(hint: Any) -> Test | None:
    """A function that raises `BadInput` for a value that this type does not allow; None: no limit."""
    kind, limit = limit_of(hint)
    if isinstance(limit, TextLimit):
        return text_test(limit)
    if isinstance(limit, OneOf):
        return _word_test(limit)
    if isinstance(limit, Whole):
        return _number_test(limit)
    if get_origin(kind) is tuple:
        inner = test_of(get_args(kind)[0])
        return _items_test(limit if isinstance(limit, Items) else None, inner)
    return _record_test if is_dataclass(kind) else None


def _record_test(_name: str, value: Any) -> None:
    check(value)


def is_text(value: str) -> bool:
    """Whether every store and program can keep this text: no NUL, no lone surrogate."""
    try:
        return "\0" not in value and (value.isascii() or bool(value.encode()))
    except UnicodeEncodeError:
        return False


def text_test(limit: TextLimit) -> Test:
    """A function that raises `BadInput` for a text that breaks this limit."""
    most, some = limit.most, limit.some
    pattern = re.compile(limit.pattern).fullmatch if limit.pattern else None

    def test(name: str, value: str) -> None:
        if not is_text(value):
            raise BadInput(
                f"The {limit.what or _words(name)} is not valid text.",
                fix="Use UTF-8 text without NUL bytes.",
            )
        if most and len(value) > most:
            what = limit.what or _words(name)
            rest = "" if what == "prompt" else "the prompt, or in "
            raise BadInput(
                f"The {what} has {len(value)} characters; the limit is {most}.",
                fix=f"Shorten it: the rest can be in {rest}a file that the prompt names.",
            )
        if some and re.search(NOT_BLANK, value) is None:
            what = limit.what or _words(name)
            raise BadInput(f"The {what} is empty.", fix=limit.example or "Say something.")
        if pattern is not None and pattern(value) is None:
            raise BadInput(
                f"'{value[:60]}' is not a valid {limit.what or _words(name)}.", fix=limit.example
            )

    return test


def _word_test(limit: OneOf) -> Test:
    known = frozenset(limit.words)

    def test(name: str, value: str) -> None:
        if value not in known:
            words = [word for word in limit.words if word]
            fix = nearest(value, words) or f"Choose one of: {', '.join(words)}."
            raise BadInput(f"'{value[:60]}' is not a {limit.what or _words(name)}.", fix=fix)

    return test


def _number_test(limit: Whole) -> Test:
    least, most = limit.least, limit.most

    def test(name: str, value: int) -> None:
        if not least <= value <= most:
            what = (limit.what or _words(name)).capitalize()
            bounds = (
                f"less than {least}"
                if most == LARGEST_INTEGER
                else f"not between {least} and {most}"
            )
            raise BadInput(
                f"{what} {value} is {bounds}.",
                fix=limit.example or "Choose a number in that range.",
            )

    return test


def _items_test(limit: Items | None, inner: Test | None) -> Test | None:
    if limit is None:
        return inner and (lambda name, values: _each(inner, name, values))

    def test(name: str, values: tuple[Any, ...]) -> None:
        if not limit.least <= len(values) <= limit.most:
            how_many = f"{limit.least} to" if limit.least else "at most"
            few = f"{len(values) or 'no'} {_words(name)} were given; ".capitalize()
            bound = f"the limit is {limit.most}" if values else f"at least {limit.least} is needed"
            fix = limit.example if values else ""
            raise BadInput(f"{few}{bound}.", fix=fix or f"Give {how_many} {limit.most}.")
        if inner is not None:
            _each(inner, name, values)

    return test


def _each(test: Test, name: str, values: tuple[Any, ...]) -> None:
    for index, value in enumerate(values):
        try:
            test(name, value)
        except BadInput as error:
            error.about = {**error.about, "index": index}
            raise


def _words(name: str) -> str:
    """The words of a field's name, ours (`max_agents`) or another client's (`maxAgents`)."""
    return re.sub("(?<=[a-z])([A-Z])", r" \1", name).replace("_", " ").lower()
