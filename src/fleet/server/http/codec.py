"""Requests and replies of operations as JSON, and how they are described."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import msgspec

from fleet.base.outside import Json, Time, is_marked, moment
from fleet.domain.errors import BadInput, NotFound
from fleet.domain.record_json import plain
from fleet.operations.catalogue import operations
from fleet.operations.shared.untrusted import check_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.datastructures import QueryParams

    from fleet.operations.catalogue import Operation, Request

ROOT = "/v1"
TRUTHS = {"true": True, "false": False}
_WHOLE = re.compile(r"-?[0-9]{1,18}")


@cache
def spoken() -> dict[str, Operation]:
    """By name."""
    return {operation.name: operation for operation in operations()}


def path_of(operation: Operation) -> str:
    """`task.add` is said at `/v1/task/add`."""
    return f"{ROOT}/{operation.name.replace('.', '/')}"


def status_of_done(operation: Operation) -> int:
    """Each call of an operation that is not idempotent makes one thing more."""
    return 200 if operation.idempotent else 201


@cache
def location_of(operation: Operation) -> str:
    """Where what it makes is shown, up to the id."""
    show = named(operation.shown_by)
    return f"{path_of(show)}?{next(iter(hints(show.request)))}="


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
    if texts := _json_fields(operation.request):
        fields = {**fields, **{name: _text(name, fields[name]) for name in texts if name in fields}}
    try:
        return msgspec.convert(fields, operation.request, strict=True)
    except msgspec.ValidationError as error:
        fix = f"Fields: {', '.join(hints(operation.request))}."
        raise BadInput(f"{operation.name}: {error}.", fix=fix) from None


@cache
def _json_fields(kind: type) -> tuple[str, ...]:
    types = get_type_hints(kind, include_extras=True)
    return tuple(field.name for field in fields(kind) if is_marked(types[field.name], Json))


def _text(name: str, value: Any) -> str:
    if not isinstance(value, dict):
        raise BadInput(f"'{name}' is not a JSON object.", fix=f'For example: {{"{name}": {{}}}}')
    return ENCODER.encode(value).decode()


def _check_known(what: str, kind: Any, fields: Mapping[str, Any]) -> None:
    known = hints(kind)
    for name, value in fields.items():
        if name not in known:
            raise BadInput(
                f"{what} has no field '{name[:60]}'.", fix=f"Fields: {', '.join(known)}."
            )
        if isinstance(value, dict) and is_dataclass(known[name]):
            _check_known(f"{what}'s {name}", known[name], value)


def from_query(kinds: Mapping[str, Any], query: QueryParams) -> dict[str, Any]:
    """Query parameters are text; each is read as its field's type. Raise `BadInput`.

    `kinds` are the types of the fields. A list is written with commas.
    """
    values: dict[str, Any] = {}
    for name, text in query.multi_items():
        if name in values:
            raise BadInput(f"'{name[:60]}' is in the query twice.", fix="Send it once.")
        values[name] = _typed(name, kinds.get(name), text)
    return values


def _typed(name: str, kind: Any, text: str) -> Any:
    if kind is bool:
        if text not in TRUTHS:
            raise BadInput(
                f"'{name}' is '{text[:60]}', which is neither true nor false.",
                fix=f"For example: ?{name}=true",
            )
        return TRUTHS[text]
    if kind is int:
        if not _WHOLE.fullmatch(text):
            raise BadInput(
                f"'{name}' is '{text[:60]}', which is not a whole number.",
                fix=f"For example: ?{name}=10",
            )
        return int(text)
    if getattr(kind, "__origin__", None) is tuple:
        return [part for part in text.split(",") if part]
    return text


@cache
def hints(kind: type) -> dict[str, Any]:
    """The fields of a dataclass, with their types."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


ENCODER = msgspec.json.Encoder(enc_hook=plain)


def encode(data: Any) -> bytes:
    return ENCODER.encode(data)


def outside(reply: Any, kind: Any) -> Any:
    """A value of this type as replies have it: see `fleet.base.outside`."""
    show = _outside(kind)
    return reply if show is None or reply is None else show(reply)


@cache
def _outside(hint: Any) -> Callable[[Any], Any] | None:
    """None: as it is, which the encoder writes fastest."""
    if is_marked(hint, Time):
        return moment
    if is_marked(hint, Json):
        return lambda text: msgspec.Raw(text.encode())
    parts = [part for part in get_args(hint) if part is not type(None)]
    if get_origin(hint) is tuple:
        inner = _outside(parts[0])
        return None if inner is None else lambda values: [inner(value) for value in values]
    if parts:
        return _outside(parts[0])
    return _record_outside(hint) if is_dataclass(hint) else None


def _record_outside(kind: Any) -> Callable[[Any], Any] | None:
    types = get_type_hints(kind, include_extras=True)
    names = [field.name for field in fields(kind)]
    special = [(name, show) for name in names if (show := _outside(types[name])) is not None]
    if not special:
        return None

    read = attrgetter(*names, names[0])  # of one name alone it would give no tuple

    def show_record(record: Any) -> dict[str, Any]:
        values = dict(zip(names, read(record), strict=False))
        for name, show in special:
            if (value := values[name]) is not None:
                values[name] = show(value)
        return values

    return show_record
