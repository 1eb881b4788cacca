"""Our frozen dataclasses behave as those of the standard library do."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from dataclasses import field

import pytest

from fleet.domain.data import dataclass


@dataclass(frozen=True, slots=True)
class Ours:
    name: str
    count: int = 1
    words: list[str] = field(default_factory=list)
    tags: tuple[str, ...] = ()

    @property
    def loud(self) -> str:
        return self.name.upper()


@dataclasses.dataclass(frozen=True, slots=True)
class Theirs:
    name: str
    count: int = 1
    words: list[str] = field(default_factory=list)
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plain:
    name: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class More(Plain):
    size: int = 0

    def __repr__(self) -> str:
        return f"<{self.name}>"


@dataclass(frozen=True, slots=True)
class Nothing:
    """Without a field."""


@pytest.mark.parametrize(
    ("args", "named"),
    [
        (("a",), {}),
        (("a", 2), {}),
        (("a", 2, ["x"]), {"tags": ("t",)}),
        ((), {"name": "b", "words": ["y"]}),
    ],
)
def test_it_holds_and_shows_what_it_was_given(args, named):
    ours, theirs = Ours(*args, **named), Theirs(*args, **named)
    assert dataclasses.asdict(ours) == dataclasses.asdict(theirs)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert ours == Ours(*args, **named)
    assert dataclasses.replace(ours, count=9) == Ours(ours.name, 9, ours.words, ours.tags)


@pytest.mark.parametrize(
    ("args", "named"), [((), {}), (("a", 1, [], (), "one too many"), {}), (("a",), {"nmae": 1})]
)
def test_what_does_not_fit_is_refused_as_ever_and_again(args, named):
    with pytest.raises(TypeError) as theirs:
        Theirs(*args, **named)
    for _ in range(2):
        with pytest.raises(TypeError) as ours:
            Ours(*args, **named)
        assert str(ours.value) == str(theirs.value).replace("Theirs", "Ours")


@pytest.mark.parametrize("made", range(6))
def test_the_first_objects_are_as_the_later_ones(made):
    """`__init__` is written for the fourth, or when arguments do not fit."""

    @dataclass(frozen=True, slots=True)
    class Fresh:
        name: str
        size: int
        words: list[str] = field(default_factory=list)
        kind: str = field(default="odd")

    for _ in range(made):
        one = Fresh("a", size=1)
        one.words.append("x")
        assert (one.name, one.size, one.words, one.kind) == ("a", 1, ["x"], "odd")
    with pytest.raises(TypeError, match="'size'"):
        Fresh("a")
    with pytest.raises(TypeError, match="'sise'"):
        Fresh("a", size=1, sise=2)
    with pytest.raises(TypeError, match="'name'"):
        Fresh("a", 1, name="b")
    with pytest.raises(TypeError, match="6 were given"):
        Fresh("a", 1, [], "odd", "one too many")
    assert Fresh("a", 1, [], "x") == Fresh("a", 1, [], kind="x")


def test_its_fields_are_there_before_an_object_is():
    @dataclass(frozen=True, slots=True)
    class Unmade(Plain):
        words: list[str] = field(default_factory=list)

    assert [(f.name, f.type) for f in dataclasses.fields(Unmade)] == [
        ("name", "str"), ("tags", "tuple[str, ...]"), ("words", "list[str]"),
    ]  # fmt: skip
    assert dataclasses.is_dataclass(Unmade)
    assert dataclasses.fields(Unmade)[2].default_factory is list


def test_no_two_share_what_a_factory_makes():
    first, second = Ours("a"), Ours("b")
    first.words.append("x")
    assert second.words == []


def test_nothing_of_it_can_be_changed():
    held = Ours("a")
    with pytest.raises(dataclasses.FrozenInstanceError, match=r"Ours\.name"):
        held.name = "b"
    with pytest.raises(dataclasses.FrozenInstanceError):
        del held.name
    with pytest.raises(dataclasses.FrozenInstanceError):
        held.other = 1
    assert held == Ours("a")
    assert not hasattr(held, "__dict__")


def test_equal_ones_count_as_one_and_another_class_is_another():
    assert len({Plain("a"), Plain("a"), Plain("b")}) == 2
    assert Plain("a") != Plain("a", ("t",))
    assert Plain("a") != More("a")
    assert Plain("a") != ("a", ())
    assert Nothing() == Nothing()


def test_it_can_be_built_upon_and_keeps_its_own_methods():
    made = More("a", size=3)
    assert (made.name, made.tags, made.size) == ("a", (), 3)
    assert repr(made) == "<a>"
    assert Ours("a").loud == "A"


def test_it_can_be_taken_apart():
    match More("a", ("t",), 3):
        case More(name, (tag,), size):
            assert (name, tag, size) == ("a", "t", 3)
    assert [f.name for f in dataclasses.fields(More)] == ["name", "tags", "size"]


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))]
)
def test_a_copy_is_equal(again):
    for held in (Ours("a", 2, ["x"]), More("a", ("t",), 3), Nothing()):
        assert again(held) == held


def test_names_that_its_own_code_uses_are_free():
    @dataclass(frozen=True, slots=True)
    class Names:
        set: int = 1
        none: tuple[str, ...] = ()
        made: list[int] = field(default_factory=list)

    assert Names() == Names(1, (), [])
    assert Names(set=2).set == 2


@pytest.mark.parametrize("how", [{"compare": False}, {"init": False}, {"kw_only": True}])
def test_what_it_does_not_know_is_refused_rather_than_passed_over(how):
    @dataclass(frozen=True, slots=True)
    class Odd:
        name: str = field(default="", **how)

    @dataclass(frozen=True, slots=True)
    class After:
        name: str = ""

        def __post_init__(self) -> None: ...

    for kind in (Odd, After):
        with pytest.raises(TypeError, match=r"see fleet\.domain\.data"):
            kind()


def test_another_kind_is_the_standard_librarys():
    @dataclass(slots=True)
    class Changes:
        count: int = 0

    held = Changes()
    held.count = 2
    assert held == Changes(2)


DECLARED = """
import dataclasses
import typing
real, made = dataclasses._process_class, []
def counted(cls, init, *rest, **more):
    made.append(cls.__qualname__) if init else None
    return real(cls, init, *rest, **more)
dataclasses._process_class = counted
named = typing.NamedTupleMeta.__new__
typing.NamedTupleMeta.__new__ = lambda meta, name, *rest: (made.append(name), named(meta, name, *rest))[1]
import fleet.client, fleet.operations.tasks.change, fleet.supervisor.supervisor, fleet.adapters.git.checkout
print(*made)
"""


def test_what_a_command_loads_is_declared_this_way():
    """Else the start of every command would be milliseconds longer for each of them."""
    argv = [sys.executable, "-c", DECLARED]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert len(done.stdout.split()) <= 2, done.stdout
