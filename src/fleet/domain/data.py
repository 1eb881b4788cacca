"""`dataclass(frozen=True, slots=True)`, declared in a sixth of the time.

Every command declares dozens of these classes as it starts, and makes objects of few. The standard
library writes and compiles six methods for each class. Here `__init__` is written when the first
object is made, and the other methods are the same for all. The rest is the standard library's:
`fields`, `replace`, `asdict` and matching work as ever.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass as dataclass  # noqa: PLC0414  # for whoever imports it here
else:

    def dataclass(cls: type | None = None, /, **how: bool) -> Any:
        if how == {"frozen": True, "slots": True}:
            return _declared
        return dataclasses.dataclass(cls, **how)


def _declared(cls: type) -> Any:
    words, cls.__doc__ = cls.__doc__ or "", cls.__doc__ or cls.__name__  # else one is made up
    made: Any = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    made.__doc__ = words
    for name, method in _SHARED.items():
        if name not in cls.__dict__:
            setattr(made, name, method)
    made.__init__ = _written_later(made)
    return made


def _written_later(cls: Any) -> Callable[..., None]:
    def write_and_call(self: object, *args: object, **named: object) -> None:
        cls.__init__ = written = _written(cls)
        written(self, *args, **named)

    return write_and_call


def _written(cls: Any) -> Callable[..., None]:
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
    text = "\n".join([f"def __init__({', '.join(given)}):", *body, " return"])
    exec(text, known)  # noqa: S102  # of names that a class declares
    written: Callable[..., None] = known["__init__"]
    written.__qualname__ = f"{cls.__qualname__}.__init__"
    return written


_none = object()  # nothing was given


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self.__match_args__])


def _is_equal(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash(_values(self))


def _shown(self: Any) -> str:
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
    "__repr__": _shown,
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__getstate__": _values,
    "__setstate__": _restore,
}
