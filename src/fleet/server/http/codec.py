"""Requests and replies of operations as JSON, and how they are described."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec

from fleet.domain.errors import BadInput, NotFound
from fleet.domain.record_json import plain
from fleet.operations.catalogue import operations
from fleet.operations.shared.untrusted import check_plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.operations.catalogue import Operation, Request

ROOT = "/v1"
_WHOLE = re.compile(r"-?[0-9]{1,18}")


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


def object_of(body: bytes) -> dict[str, Any]:
    """What a body says; nothing at all says nothing. Raise `BadInput` unless it is a JSON object."""
    if not body:
        return {}
    try:
        fields = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = "too deep" if isinstance(error, RecursionError) else str(error)
        raise BadInput(
            f"The body is not JSON: {why}.", fix="Send one JSON object, as UTF-8.", code="not_json"
        ) from None
    if not isinstance(fields, dict):
        raise BadInput("The body is not a JSON object.", fix='Send {"field": …}.', code="not_json")
    return fields


def request_of(operation: Operation, fields: Mapping[str, Any]) -> Request[Any]:
    """Raise `BadInput` with the place of what does not fit. What nobody knows is refused, too."""
    check_plain(fields)
    _check_known(operation.name, operation.request, fields)
    try:
        return msgspec.convert(fields, operation.request, strict=True)
    except msgspec.ValidationError as error:
        fix = f"Fields: {', '.join(_hints(operation.request))}."
        raise BadInput(f"{operation.name}: {error}.", fix=fix) from None


def _check_known(what: str, kind: Any, fields: Mapping[str, Any]) -> None:
    hints = _hints(kind)
    for name, value in fields.items():
        if name not in hints:
            raise BadInput(
                f"{what} has no field '{name[:60]}'.", fix=f"Fields: {', '.join(hints)}."
            )
        if isinstance(value, dict) and is_dataclass(hints[name]):
            _check_known(f"{what}'s {name}", hints[name], value)


def from_query(operation: Operation, said: Mapping[str, str]) -> dict[str, Any]:
    """Query parameters are text: numbers and truths are read as such where the field is one."""
    hints = _hints(operation.request)
    found: dict[str, Any] = {}
    for name, value in said.items():
        kind = hints.get(name)
        if kind is bool:
            found[name] = value.lower() in {"1", "true", "yes", ""}
        elif kind is int:
            found[name] = int(value) if _WHOLE.fullmatch(value) else value
        elif kind is not None and getattr(kind, "__origin__", None) is tuple:
            found[name] = [part for part in value.split(",") if part]
        else:
            found[name] = value
    return found


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The fields of a dataclass, with their types."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


ENCODER = msgspec.json.Encoder(enc_hook=plain)


def encode(data: Any) -> bytes:
    return ENCODER.encode(data)
