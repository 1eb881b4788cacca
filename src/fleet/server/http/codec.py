"""Requests and replies of operations as JSON, and how they are described."""

from __future__ import annotations

import math
import re
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, get_args, get_origin, get_type_hints

import msgspec

from fleet.base.outside import Json, Time, is_marked, microseconds, moment
from fleet.domain.errors import BadInput, NotFound
from fleet.domain.record_json import plain
from fleet.operations.catalogue import operations
from fleet.operations.shared.untrusted import check_plain

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from starlette.datastructures import QueryParams

    from fleet.operations.catalogue import Operation, Request

ROOT = "/v1"
EXACT = 1 << 53  # beyond it, a float stands for several whole numbers
TRUTHS = {"true": True, "false": False}
_WHOLE = re.compile(r"-?[0-9]{1,19}")


@cache
def spoken() -> dict[str, Operation]:
    """Return all operations by name."""
    return {operation.name: operation for operation in operations()}


def path_of(operation: Operation) -> str:
    """Return the path of an operation: `/v1/task/add` for `task.add`."""
    return f"{ROOT}/{operation.name.replace('.', '/')}"


def status_of_done(operation: Operation) -> int:
    """Return 201 for an operation that creates something with each call, else 200."""
    return 200 if operation.idempotent else 201


@cache
def location_of(operation: Operation) -> str:
    """Return the URL that shows what the operation creates, without the id at its end."""
    show = named(operation.shown_by)
    return f"{path_of(show)}?{next(iter(hints(show.request)))}="


@cache
def methods_of(operation: Operation) -> list[str]:
    """Return POST and, for a read whose fields all fit into a query string, GET."""
    kinds = [part for kind in hints(operation.request).values() for part in (kind, *get_args(kind))]
    flat = not any(map(is_dataclass, kinds))
    return ["GET", "POST"] if operation.is_read and flat else ["POST"]


def named(name: str) -> Operation:
    try:
        return spoken()[name]
    except KeyError:
        raise NotFound(f"There is no operation '{name}'.", fix="GET /openapi.json") from None


def _number(text: str) -> float:
    """Return a whole number as an int: JSON makes no difference between 2.0 and 2."""
    number = float(text)
    if math.isinf(number):
        raise msgspec.DecodeError("a number is out of range")
    return int(number) if number.is_integer() and abs(number) < EXACT else number


DECODER = msgspec.json.Decoder(float_hook=_number)
FEW_BYTES = 1 << 16  # a body up to this size is decoded in a few milliseconds, whatever is in it
MOST_VALUES = 20_000


def json_of(body: bytes) -> Any:
    """Decode JSON; raise `BadInput` first when it has too many values to decode quickly."""
    if len(body) > FEW_BYTES and _commas_in(body) > MOST_VALUES:
        raise BadInput(
            f"The body has more than {MOST_VALUES} values.",
            fix="Send them in several requests.",
            code="too_many_values",
        )
    return DECODER.decode(body)


def _commas_in(body: bytes) -> int:
    """Count the commas in JSON that are not inside strings."""
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(plain.split(b'"')[::2]).count(b",")


def object_of(body: bytes) -> dict[str, Any]:
    """Return a body's fields, none for an empty body; raise `BadInput` unless it is an object."""
    if not body:
        return {}
    try:
        fields = json_of(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = "too deep" if isinstance(error, RecursionError) else str(error)
        raise BadInput(
            f"The body is not JSON: {why}.", fix="Send one JSON object, as UTF-8.", code="not_json"
        ) from None
    if not isinstance(fields, dict):
        raise BadInput("The body is not a JSON object.", fix='Send {"field": …}.', code="not_json")
    return fields


def request_of(operation: Operation, fields: Mapping[str, Any]) -> Request[Any]:
    """Make a request of JSON fields; raise `BadInput` that names a wrong or unknown field."""
    check_plain(fields)
    _check_known(operation.name, operation.request, fields)
    if special := _special_fields(operation.request):
        decoded = {name: read(name, fields[name]) for name, read in special if name in fields}
        fields = {**fields, **decoded}
    try:
        return msgspec.convert(fields, operation.request, strict=True)
    except msgspec.ValidationError as error:
        fix = f"Fields: {', '.join(hints(operation.request))}."
        raise BadInput(f"{operation.name}: {error}.", fix=fix) from None


@cache
def _special_fields(kind: type) -> tuple[tuple[str, Callable[[str, Any], Any]], ...]:
    """Return the fields whose JSON differs from the record, each with its reader.

    See `fleet.base.outside`.
    """
    types = get_type_hints(kind, include_extras=True)
    readers = [(field.name, _reader(types[field.name])) for field in fields(kind)]
    return tuple((name, read) for name, read in readers if read is not None)


def _reader(hint: Any) -> Callable[[str, Any], Any] | None:
    return _text if is_marked(hint, Json) else _time if is_marked(hint, Time) else None


def _time(name: str, value: Any) -> int:
    try:
        return microseconds(value)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(
            f"'{name}' is not a time.", fix=f'For example: {{"{name}": "2026-01-31T12:00:00Z"}}'
        ) from None


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
        inner = next(iter(get_args(known[name])), known[name])
        if is_dataclass(inner):
            for part in value if isinstance(value, list) else (value,):
                if isinstance(part, dict):
                    _check_known(f"{what}'s {name}", inner, part)


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
        return _parts(name, text)
    return text


def _parts(name: str, text: str) -> list[str]:
    """Split a list in a query; raise `BadInput` for an empty item, which looks like no list."""
    parts = text.split(",")
    if not all(parts):
        raise BadInput(
            f"'{name}' has an empty part.",
            fix=f"For example: ?{name}=a,b; leave out what is empty.",
        )
    return parts


@cache
def hints(kind: type) -> dict[str, Any]:
    """The fields of a dataclass, with their types."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in fields(kind)}


@cache
def query_types(kind: type) -> dict[str, Any]:
    """The fields of a dataclass, with the types that they have in a query."""
    marked = get_type_hints(kind, include_extras=True)
    return {
        name: str if is_marked(marked[name], Time) else plain_type
        for name, plain_type in hints(kind).items()
    }


ENCODER = msgspec.json.Encoder(enc_hook=plain)


def encode(data: Any) -> bytes:
    return ENCODER.encode(data)


def outside(reply: Any, kind: Any) -> Any:
    """Return a value of this type as replies show it: see `fleet.base.outside`."""
    show = _outside(kind)
    return reply if show is None or reply is None else show(reply)


@cache
def _outside(hint: Any) -> Callable[[Any], Any] | None:
    """Return what converts a value of this type; None when the encoder can write it as it is."""
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
    """Compile a converter from a record to a struct, which takes two thirds of a dict's time."""
    types = get_type_hints(kind, include_extras=True)
    shows = {field.name: _outside(types[field.name]) for field in fields(kind)}
    if not any(shows.values()):
        return None
    values = [
        f"None if r.{name} is None else show_{name}(r.{name})" if show else f"r.{name}"
        for name, show in shows.items()
    ]
    known: dict[str, Any] = {f"show_{name}": show for name, show in shows.items()}
    known["shown"] = msgspec.defstruct(kind.__name__, [*shows])
    return eval(f"lambda r: shown({', '.join(values)})", known)  # type: ignore[no-any-return]  # noqa: S307  # nosec B307  # only our own field names
