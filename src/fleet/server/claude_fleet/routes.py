"""How the paths of claude-fleet's clients are heard and answered; `paths` is the table."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import msgspec
from starlette.datastructures import QueryParams
from starlette.responses import Response
from starlette.routing import Route

from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.errors import BadInput, FleetError, Forbidden
from fleet.domain.limits import limit_of
from fleet.domain.limits.check import test_of
from fleet.operations.catalogue import find
from fleet.operations.shared.untrusted import check_plain
from fleet.operations.team.members import uid_of
from fleet.server.http.codec import encode, from_query, object_of
from fleet.server.http.idempotency import key_of
from fleet.server.http.pages import cut, is_list, link_to, one_more
from fleet.server.http.problem import problem_of, refusal
from fleet.server.http.routes import Answered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from starlette.requests import Request

    from fleet.domain.access import Actor
    from fleet.operations.catalogue import Request as OurRequest

B = TypeVar("B")
NO_QUERY = QueryParams()


class Body(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """Base of all request bodies. The JSON has `swarmId` for the field `swarm_id`."""


@dataclass(frozen=True, slots=True)
class SeedCall:
    """A request to one of these paths. `directory`: where an agent works by default.

    `beside` is the reply to what `OtherPath.beside` asks for.
    """

    actor: Actor
    path: Mapping[str, str]
    query: QueryParams
    body: Mapping[str, Any]
    directory: str = ""
    beside: Any = None

    def as_(self, kind: type[B]) -> B:
        """Return the body as this type; a known field that is null counts as missing."""
        known = _types(kind)  # type: ignore[arg-type]  # a class is hashable
        body = self.body.items()
        return _converted({n: v for n, v in body if v is not None or n not in known}, kind)

    def query_as(self, kind: type[B]) -> B:
        return _converted(from_query(_types(kind), self.query), kind)  # type: ignore[arg-type]  # a class is hashable


def _converted(given: Mapping[str, Any], kind: type[B]) -> B:
    try:
        body = msgspec.convert(given, kind, strict=True)
    except msgspec.ValidationError as error:
        known = ", ".join(field.encode_name for field in msgspec.structs.fields(kind))  # type: ignore[arg-type]  # it is one
        raise BadInput(f"{error}.", fix=f"Fields: {known}.") from None
    for field, name, test in _tests(kind):  # type: ignore[arg-type]  # a class is hashable
        if (value := getattr(body, field)) is not None:
            test(name, value)
    return body


@cache
def _tests(kind: Any) -> tuple[tuple[str, str, Callable[[str, Any], None]], ...]:
    """Return (Python name, JSON name, check) of each field that has a limit."""
    types = get_type_hints(kind, include_extras=True)
    tests = [(f.name, f.encode_name, test_of(types[f.name])) for f in msgspec.structs.fields(kind)]
    return tuple((field, name, test) for field, name, test in tests if test is not None)


@cache
def _types(kind: Any) -> dict[str, Any]:
    return {field.encode_name: limit_of(field.type)[0] for field in msgspec.structs.fields(kind)}


class OtherPath(NamedTuple):
    """`show` makes the reply of what the operation replied, or of what `then` asks for after it.

    `beside`: what else is needed to show it, if anything.
    """

    method: str
    path: str
    ask: Callable[[SeedCall], OurRequest[Any]]
    show: Callable[[Any, SeedCall], Any]
    then: Callable[[Any], OurRequest[Any]] | None = None
    beside: Callable[[SeedCall], OurRequest[Any] | None] | None = None


def must_be_uid(call: SeedCall, uid: str) -> None:
    if uid and uid != uid_of(call.actor.team, call.actor.name):
        raise Forbidden(
            f"{uid[:60]} is not {call.actor.name}.",
            fix="Leave out the sender: the token says who it is.",
            code="forged",
        )


def message_id(call: SeedCall) -> str:
    """Return Fleet's id of a mail or checkpoint: claude-fleet's clients call m-12 just 12."""
    given = call.path["id"]
    return f"m-{given}" if given.isdecimal() else given


def with_error_field(
    handle: Callable[[Request], Awaitable[Response]],
) -> Callable[..., Awaitable[Response]]:
    """Add the field `error` to error responses: claude-fleet's clients read no other."""

    async def answer(request: Request) -> Response:
        try:
            return await handle(request)
        except FleetError as error:
            refused = refusal(error)
            body = problem_of(error)
            body["error"] = body["detail"]
            headers = {k: v for k, v in refused.headers.items() if not k.startswith("content-")}
            return Response(encode(body), refused.status_code, headers, "application/json")

    return answer


def other_routes(
    paths: tuple[OtherPath, ...],
    who: Callable[[Request], Awaitable[Actor]],
    perform: Callable[..., Awaitable[Any]],
    directory: str,
) -> list[Route]:
    def route(path: OtherPath) -> Route:
        async def handle(request: Request) -> Response:
            call = await heard(request, await who(request), directory)
            key = "" if path.method == "GET" else key_of(request)
            body, headers = path.ask(call), {}
            operation = find(type(body))
            if is_list(operation):
                rows = await perform(operation, call.actor, one_more(body))
                reply, cursor = cut(rows, body.limit)  # type: ignore[attr-defined]  # a list has one
                headers = {"link": link_to(request, cursor)} if cursor else {}
            else:
                reply = await perform(operation, call.actor, body, key)
            if path.then and reply:
                more = path.then(reply)
                reply = await perform(find(type(more)), call.actor, more)
            if path.beside and (other := path.beside(call)):
                call = replace(call, beside=await perform(find(type(other)), call.actor, other))
            encoded = encode(path.show(reply, call))
            return Response(encoded, headers=headers, media_type="application/json")

        return Route(path.path, Answered(with_error_field(handle)), methods=[path.method])

    return [route(path) for path in paths]


async def heard(request: Request, actor: Actor, directory: str = "") -> SeedCall:
    body = {} if request.method == "GET" else object_of(await request.body())
    query = request.query_params if request.scope["query_string"] else NO_QUERY
    check_plain((body, dict(query), dict(request.path_params)))
    return SeedCall(actor, request.path_params, query, body, directory)
