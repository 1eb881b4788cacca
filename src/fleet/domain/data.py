"""`dataclass(frozen=True, slots=True)` and `NamedTuple`, declared in a fraction of the time.

Every command declares dozens of each as it starts, and makes objects of few. The standard library
writes and compiles several methods for each class. Here the method that makes an object is written
when the first object is made, and all classes share the other methods. `fields`, `replace`, `asdict`,
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
            made.__new__ = staticmethod(_written_later(made, "__new__", _written_new))
            return made

    NamedTuple = type.__new__(_Naming, "NamedTuple", (), {})


def _declared(cls: type) -> Any:
    doc, cls.__doc__ = cls.__doc__ or "", cls.__doc__ or cls.__name__  # else `dataclass` writes one
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    made.__doc__ = doc
    for name, method in _SHARED.items():
        if name not in cls.__dict__:
            setattr(made, name, method)
    made.__init__ = _written_later(made, "__init__", _written_init)
    return made


def _written_later(cls: Any, name: str, write: Callable[[Any], Any]) -> Callable[..., Any]:
    def write_and_call(*args: object, **named: object) -> Any:
        written = write(cls)
        setattr(cls, name, staticmethod(written) if name == "__new__" else written)
        return written(*args, **named)

    return write_and_call


def _written_init(cls: Any) -> Any:
    given, body = ["self"], []
    known: dict[str, Any] = {"_set": object.__setattr__, "_none": _none}
    if hasattr(cls, "__post_init__"):
        raise TypeError(
            f"{cls.__qualname__}.__post_init__ would not be called; see fleet.domain.data"
        )
    for field in dataclasses.fields(cls):
        if field.kw_only or not (field.init and field.repr and field.compare):
            raise TypeError(f"{cls.__qualname__}.{field.name} is not plain; see fleet.domain.data")
        name, value = field.name, field.name
        if field.default is not dataclasses.MISSING:
            known[f"_of_{name}"] = field.default
            given.append(f"{name}=_of_{name}")
        elif field.default_factory is not dataclasses.MISSING:
            known[f"_of_{name}"] = field.default_factory
            given.append(f"{name}=_none")
            value = f"_of_{name}() if {name} is _none else {name}"
        else:
            given.append(name)
        body.append(f" _set(self, {name!r}, {value})")
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


FLAT = {"flat": True}  # metadata of a field: in JSON its own fields stand among the record's
_none = object()  # the argument was not given


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
    return cls(*values)


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
