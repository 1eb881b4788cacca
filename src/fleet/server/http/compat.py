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
    """A path in words and types. `body` and `query` are what it takes, None for nothing.

    `open`: it wants no token.
    """

    method: str
    path: str
    about: str
    reply: Any
    body: Any = None
    query: Any = None
    open: bool = False


class Compat(NamedTuple):
    """`routes` makes them of who asks, what performs an operation, and where agents work.

    `frame` is how a frame of the WebSocket begins that tells of an event; `topic` is that program's
    name for the field `topic` of a frame.
    """

    name: str
    described: tuple[Described, ...]
    routes: Callable[
        [Callable[[Request], Awaitable[Actor]], Callable[..., Awaitable[Any]], str], list[Route]
    ]
    frame: Callable[[Event, Store], dict[str, Any]]
    topic: str
