"""`dataclass(frozen=True, slots=True)` and `NamedTuple`, declared in a fraction of the time.

Every command declares dozens of each as it starts, and makes objects of few. The standard library
writes and compiles several methods for each class. Here the method that makes an object is written
for the fourth object of the class, and all classes share the other methods. `fields`, `replace`, `asdict`,
`_replace`, `_asdict`, `_make` and matching work as in the standard library. The figures, and why not
msgspec: docs/decisions/0010-records-of-our-own.md.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from dataclasses import dataclass as dataclass  # noqa: PLC0414  # other modules import it here
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414, TID251  # likewise
else:
    from _collections import _tuplegetter  # three times as fast as a property

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        if options == {"frozen": True, "slots": True}:
            return _declared
        return dataclasses.dataclass(cls, **options)

    class _Naming(type):
        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if len(bases) > 1 or "__new__" in body:
                raise TypeError(f"{name} has a base or a __new__ of its own; see fleet.domain.data")
            names = tuple(body.get("__annotations__", ()))
            body["_field_defaults"] = {name: body.pop(name) for name in names if name in body}
            body |= {"__slots__": (), "_fields": names, "__match_args__": names}
            body |= {name: _tuplegetter(index, "") for index, name in enumerate(names)}
            made = type(name, (tuple,), _NAMED | body)
            made.__new__ = staticmethod(_first_new(made))
            return made

    NamedTuple = type.__new__(_Naming, "NamedTuple", (), {})


class _Fields:
    """Makes `__dataclass_fields__` of a record when it is first read, by the standard library."""

    def __init__(self, made: Any, annotations: dict[str, Any], defaults: dict[str, Any]) -> None:
        self._made, self._annotations, self._defaults = made, annotations, defaults

    def __get__(self, _record: object, _kind: object) -> dict[str, Any]:
        made = self._made
        body = {"__annotations__": self._annotations, "__module__": made.__module__}
        body |= {"__doc__": made.__name__}  # else `dataclass` writes one, which takes as long again
        twin: Any = _plain_dataclass(type(made.__name__, made.__bases__, body | self._defaults))
        fields: dict[str, Any] = twin.__dataclass_fields__
        made.__dataclass_fields__ = fields  # in the place of this object
        return fields


_plain_dataclass: Any = dataclasses.dataclass(init=False, repr=False, eq=False)
_PARAMS = _plain_dataclass(type("_", (), {"__doc__": "-"})).__dataclass_params__


def _declared(cls: Any) -> Any:
    """The class with slots, as the standard library makes it; its fields and `__init__` come later."""
    annotations = cls.__annotations__
    body = dict(cls.__dict__)
    defaults = {name: body.pop(name) for name in annotations if name in body}
    names: dict[str, Any] = {}
    every: dict[str, Any] = {}  # the defaults, with those that are inherited
    for base in cls.__mro__[:0:-1]:
        if "_defaults" in base.__dict__:
            names |= dict.fromkeys(base.__match_args__)
            every |= base._defaults  # noqa: SLF001  # a record as this one
    body |= {
        "__slots__": tuple([name for name in annotations if name not in names]),
        "__match_args__": tuple(names | annotations),
        "__doc__": cls.__doc__ or "",  # without one, the standard library writes one
        "__dataclass_params__": _PARAMS,
        "_defaults": every | defaults,
    }
    for name in ("__dict__", "__weakref__"):
        body.pop(name, None)
    made = type(cls)(cls.__name__, cls.__bases__, _SHARED | body)
    made.__qualname__ = cls.__qualname__
    made.__dataclass_fields__ = _Fields(made, annotations, defaults)
    made.__init__ = _first_init(made)
    return made


def _first_init(cls: Any) -> Callable[..., None]:
    """The `__init__` of a record's first objects, for which no code is written."""
    count = 0

    def init(self: Any, /, *args: object, **named: object) -> None:
        nonlocal count
        count += 1
        names = cls.__match_args__
        values = _matched(names, cls._defaults, args, named) if 1 < count <= FEW else None
        if count == 1:
            _refuse_what_is_not_plain(cls)
            values = _matched(names, cls._defaults, args, named)
        if values is None:
            cls.__init__ = _written_init(cls)
            cls.__init__(self, *args, **named)
            return
        for name, value in zip(names, values, strict=True):
            object.__setattr__(self, name, value)

    return init


def _first_new(cls: Any) -> Callable[..., Any]:
    """The `__new__` of a named tuple's first objects."""
    count = 0

    def new(kind: Any, /, *args: object, **named: object) -> Any:
        nonlocal count
        count += 1
        values = _matched(cls._fields, cls._field_defaults, args, named) if count <= FEW else None
        if values is not None:
            return tuple.__new__(kind, values)
        written = _written_new(cls)
        cls.__new__ = staticmethod(written)
        return written(kind, *args, **named)

    return new


def _matched(
    names: tuple[str, ...],
    defaults: dict[str, Any],
    args: tuple[object, ...],
    named: dict[str, object],
) -> list[Any] | None:
    """The value of each field; None when the arguments do not fit."""
    values, used = [*args], 0
    for name in names[len(args) :]:
        if name in named:
            values.append(named[name])
            used += 1
        elif name in defaults:
            values.append(_default(defaults[name]))
        else:
            return None
    return values if len(values) == len(names) and used == len(named) else None


def _default(value: Any) -> Any:
    if not isinstance(value, dataclasses.Field):
        return value
    make = value.default_factory
    return value.default if make is dataclasses.MISSING else make()


def _refuse_what_is_not_plain(cls: Any) -> None:
    if hasattr(cls, "__post_init__"):
        raise TypeError(
            f"{cls.__qualname__}.__post_init__ would not be called; see fleet.domain.data"
        )
    for name, value in cls._defaults.items():
        if isinstance(value, dataclasses.Field) and (
            value.kw_only is True or not (value.init and value.repr and value.compare)
        ):
            raise TypeError(f"{cls.__qualname__}.{name} is not plain; see fleet.domain.data")


def _written_init(cls: Any) -> Any:
    given, body = ["self"], []
    known: dict[str, Any] = {"_none": _none}
    for field in dataclasses.fields(cls):
        name, value = field.name, field.name
        known[f"_set_{name}"] = getattr(cls, name).__set__  # twice as fast as object.__setattr__
        if field.default is not dataclasses.MISSING:
            known[f"_of_{name}"] = field.default
            given.append(f"{name}=_of_{name}")
        elif field.default_factory is not dataclasses.MISSING:
            known[f"_of_{name}"] = field.default_factory
            given.append(f"{name}=_none")
            value = f"_of_{name}() if {name} is _none else {name}"
        else:
            given.append(name)
        body.append(f" _set_{name}(self, {value})")
    return _compiled(cls, "__init__", given, [*body, " return"], known)


def _written_new(cls: Any) -> Any:
    defaults = cls._field_defaults
    known = {"_tuple": tuple.__new__} | {f"_of_{name}": value for name, value in defaults.items()}
    given = [f"{name}=_of_{name}" if name in defaults else name for name in cls._fields]
    values = "".join(f"{name}, " for name in cls._fields)
    return _compiled(cls, "__new__", ["_cls", *given], [f" return _tuple(_cls, ({values}))"], known)


def _compiled(
    cls: type, name: str, given: list[str], body: list[str], known: dict[str, Any]
) -> Any:
    text = "\n".join([f"def {name}({', '.join(given)}):", *body])
    exec(text, known)  # noqa: S102  # nosec B102  # only field names that a class declares
    written = known[name]
    written.__qualname__ = f"{cls.__qualname__}.{name}"
    return written


FEW = 3  # objects of a class: to write a method takes as long as to make twenty without it
FLAT = {"flat": True}  # metadata of a field: in JSON, its fields are merged into the record's
_none = object()  # stands for an argument that was not given


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self.__match_args__])


def _is_equal(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash(_values(self))


def _repr(self: Any) -> str:
    pairs = zip(self.__match_args__, _values(self), strict=True)
    return f"{type(self).__qualname__}({', '.join(f'{name}={value!r}' for name, value in pairs)})"


def _refuse(self: object, name: str, *_value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"{type(self).__qualname__}.{name} cannot be changed")


def _restore(self: Any, values: tuple[Any, ...]) -> None:
    for name, value in zip(self.__match_args__, values, strict=True):
        object.__setattr__(self, name, value)


_SHARED: dict[str, Callable[..., Any]] = {
    "__eq__": _is_equal,
    "__hash__": _hash,
    "__repr__": _repr,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__getstate__": _values,
    "__setstate__": _restore,
}


def _make(cls: Any, values: Iterable[Any]) -> Any:
    made = tuple.__new__(cls, values)  # half of the time of a call with so many arguments
    if len(made) != len(cls._fields):
        raise TypeError(f"{cls.__name__} has {len(cls._fields)} fields, not {len(made)}")
    return made


def _replace(self: Any, /, **changes: Any) -> Any:
    made = self._make(map(changes.pop, self._fields, self))
    if changes:
        raise TypeError(f"{type(self).__name__} has no {', '.join(changes)}")
    return made


def _asdict(self: Any) -> dict[str, Any]:
    return dict(zip(self._fields, self, strict=True))


def _named(self: Any) -> str:
    pairs = zip(self._fields, self, strict=True)
    return f"{type(self).__name__}({', '.join([f'{name}={value!r}' for name, value in pairs])})"


def _plain(self: Any) -> tuple[Any, ...]:
    return tuple(self)


_NAMED: dict[str, Any] = {
    "__repr__": _named,
    "__getnewargs__": _plain,
    "_make": classmethod(_make),
    "_replace": _replace,
    "_asdict": _asdict,
}
