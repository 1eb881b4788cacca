"""All of claude-fleet's: its paths, `/auth` and its names on the WebSocket. `server.make` mounts it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.routing import Route

from fleet.server.claude_fleet.auth import Enrolling
from fleet.server.claude_fleet.described import described
from fleet.server.claude_fleet.frames import TOPIC, frame_of
from fleet.server.claude_fleet.paths import PATHS
from fleet.server.claude_fleet.routes import other_routes, with_error_field
from fleet.server.http.compat import Compat
from fleet.server.http.routes import Answered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from fleet.domain.access import Actor


def _routes(
    who: Callable[[Request], Awaitable[Actor]],
    perform: Callable[..., Awaitable[Any]],
    directory: str,
) -> list[Route]:
    auth = Route("/auth", Answered(with_error_field(Enrolling(perform))), methods=["POST"])
    return [auth, *other_routes(PATHS, who, perform, directory)]


CLAUDE_FLEET = Compat("claude-fleet", described(), _routes, frame_of, TOPIC)
