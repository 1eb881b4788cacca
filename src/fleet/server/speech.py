"""Requests and replies of operations as JSON, and how they are described."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from fleet.domain.errors import BadInput, NotFound
from fleet.operations.catalogue import operations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.operations.catalogue import Operation, Request

ROOT = "/v1"


@cache
def spoken() -> dict[str, Operation]:
    """By name."""
    return {operation.name: operation for operation in operations()}


def path_of(operation: Operation) -> str:
    """`task.add` is said at `/v1/task/add`."""
    return f"{ROOT}/{operation.name.replace('.', '/')}"


def is_read(operation: Operation) -> bool:
    return operation.is_read


def named(name: str) -> Operation:
    try:
        return spoken()[name]
    except KeyError:
        raise NotFound(f"There is no operation '{name}'.", fix="GET /openapi.json") from None


def request_of(operation: Operation, said: Mapping[str, Any]) -> Request[Any]:
    """Raise `BadInput` with the place of what does not fit. What nobody knows is refused, too."""
    known = operation.request.__dataclass_fields__  # type: ignore[attr-defined]
    for name in said:
        if name not in known:
            raise BadInput(
                f"{operation.name} has no field '{name}'.", fix=f"Fields: {', '.join(known)}."
            )
    try:
        return msgspec.convert(said, operation.request, strict=True)
    except msgspec.ValidationError as error:
        raise BadInput(f"{operation.name}: {error}.") from None


def from_query(operation: Operation, said: Mapping[str, str]) -> dict[str, Any]:
    """Query parameters are text: numbers and truths are read as such where the field is one."""
    hints = _hints(operation)
    found: dict[str, Any] = {}
    for name, value in said.items():
        kind = hints.get(name)
        if kind is bool:
            found[name] = value.lower() in {"1", "true", "yes", ""}
        elif kind is int:
            found[name] = int(value) if value.lstrip("-").isdigit() else value
        elif kind is not None and getattr(kind, "__origin__", None) is tuple:
            found[name] = [part for part in value.split(",") if part]
        else:
            found[name] = value
    return found


@cache
def _hints(operation: Operation) -> dict[str, Any]:
    from typing import get_type_hints  # noqa: PLC0415  # once for each operation

    return get_type_hints(operation.request)


def _plain(value: Any) -> Any:
    if hasattr(value, "items"):
        return dict(value.items())
    if hasattr(value, "__iter__"):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be said in JSON")


ENCODER = msgspec.json.Encoder(enc_hook=_plain)


def encode(data: Any) -> bytes:
    return ENCODER.encode(data)
