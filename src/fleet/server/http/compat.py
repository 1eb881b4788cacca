"""What a server may have beside its own paths: those of another program, for that one's clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request
    from starlette.routing import Route

    from fleet.domain.access import Actor
    from fleet.domain.event import Event
    from fleet.ports import Store


class Described(NamedTuple):
    """A path for the OpenAPI description. `body` and `query`: types that it takes, or None.

    `open`: it needs no token.
    """

    method: str
    path: str
    about: str
    reply: Any
    body: Any = None
    query: Any = None
    open: bool = False


class Compat(NamedTuple):
    """The paths of another program, which the server also answers.

    `routes` makes them from a function that identifies the caller, one that performs an operation,
    and the directory in which agents work by default.

    `frame` returns the first fields of an event's WebSocket frame; `topic` is that program's name
    for a frame's field `topic`.
    """

    name: str
    described: tuple[Described, ...]
    routes: Callable[
        [Callable[[Request], Awaitable[Actor]], Callable[..., Awaitable[Any]], str], list[Route]
    ]
    frame: Callable[[Event, Store], dict[str, Any]]
    topic: str
