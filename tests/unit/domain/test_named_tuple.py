"""Our named tuples behave as those of the standard library do."""

from __future__ import annotations

import copy
import pickle
import typing
from typing import get_type_hints

import pytest

from fleet.domain.data import NamedTuple


class Ours(NamedTuple):
    """Words of its own."""

    name: str
    count: int = 1
    words: tuple[str, ...] = ()

    @property
    def loud(self) -> str:
        return self.name.upper()

    def twice(self) -> Ours:
        return self._replace(count=2 * self.count)

    @classmethod
    def of(cls, name: str) -> Ours:
        return cls(name, 7)


class Theirs(typing.NamedTuple):
    name: str
    count: int = 1
    words: tuple[str, ...] = ()


class Nothing(NamedTuple):
    pass


class Loud(NamedTuple):
    name: str

    def __repr__(self) -> str:
        return f"{self.name}!"


class Shown(Ours):
    def __repr__(self) -> str:
        return f"<{self.name}>"


@pytest.mark.parametrize(
    ("args", "named"),
    [(("a",), {}), (("a", 2, ("x",)), {}), ((), {"words": ("y",), "name": "b"})],
)
def test_it_holds_and_shows_what_it_was_given(args, named):
    ours, theirs = Ours(*args, **named), Theirs(*args, **named)
    assert ours == theirs == tuple(ours)
    assert hash(ours) == hash(theirs)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert ours._asdict() == theirs._asdict()
    assert (ours.name, ours.count, ours.words) == (theirs.name, theirs.count, theirs.words)
    assert ours._replace(count=9) == theirs._replace(count=9)
    assert type(ours._replace(name="z")) is Ours
    assert Ours._make(list(ours)) == ours


@pytest.mark.parametrize(
    ("args", "named"), [((), {}), (("a", 1, (), "one too many"), {}), (("a",), {"nmae": 1})]
)
def test_what_does_not_fit_is_refused_as_ever_and_again(args, named):
    with pytest.raises(TypeError) as theirs:
        Theirs(*args, **named)
    for _ in range(2):
        with pytest.raises(TypeError) as ours:
            Ours(*args, **named)
        assert str(ours.value) == str(theirs.value).replace("Theirs", "Ours")
    with pytest.raises(TypeError, match="nmae"):
        Ours("a")._replace(nmae="b")
    with pytest.raises(TypeError):
        Ours._make([])


class Fresh(NamedTuple):
    name: str
    size: int = 1


@pytest.mark.parametrize(
    "wrong", [((), {"size": 2}), (("a",), {"sise": 2}), (("a",), {"name": "b"})]
)
@pytest.mark.parametrize("made", range(6))
def test_the_first_objects_are_as_the_later_ones(made, wrong):
    """`__new__` is written for the fourth, or when arguments do not fit."""

    class Few(NamedTuple):
        name: str
        size: int = 1

    for _ in range(made):
        assert (Few("a"), Few("a", size=2)) == (("a", 1), ("a", 2))
    args, named = wrong
    with pytest.raises(TypeError, match=r"'(name|sise)'"):
        Few(*args, **named)


def test_what_makes_an_object_is_written_once():
    first = Fresh.__new__
    for _ in range(4):
        Fresh("a")
    written = Fresh.__new__
    Fresh("b")
    assert first is not written is Fresh.__new__


def test_what_it_does_not_know_is_refused_rather_than_passed_over():
    with pytest.raises(TypeError, match=r"see fleet\.domain\.data"):
        type(NamedTuple)("Odd", (NamedTuple, Ours), {})
    with pytest.raises(TypeError, match=r"see fleet\.domain\.data"):
        type(NamedTuple)("Odd", (NamedTuple,), {"__new__": tuple.__new__})


def test_what_the_class_says_of_itself_is_the_same():
    for said in ("_fields", "_field_defaults", "__match_args__", "__slots__", "__bases__"):
        assert getattr(Ours, said) == getattr(Theirs, said), said
    assert get_type_hints(Ours) == get_type_hints(Theirs)
    assert Ours.__doc__ == "Words of its own."
    assert Ours.__module__ == __name__


def test_nothing_of_it_can_be_changed():
    held = Ours("a")
    with pytest.raises(AttributeError):
        held.name = "b"
    with pytest.raises(AttributeError):
        held.other = 1
    assert not hasattr(held, "__dict__")


def test_it_has_its_own_methods_and_can_be_built_upon():
    assert (Ours("a").loud, Ours("a", 3).twice().count, Ours.of("b").count) == ("A", 6, 7)
    assert (repr(Shown("a")), repr(Loud("a"))) == ("<a>", "a!")
    assert type(Shown("a")._replace(count=2)) is Shown
    assert Nothing() == ()


def test_it_can_be_taken_apart():
    name, _, _ = Ours("a")
    match Ours("a", 2):
        case Ours("a", count=count):
            assert (name, count) == ("a", 2)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))]
)
def test_a_copy_is_equal_and_of_its_class(again):
    for held in (Ours("a", 2, ("x",)), Nothing(), Shown("a")):
        assert again(held) == held
        assert type(again(held)) is type(held)
