"""Which handler a path leads to: plain paths by name, the others by their first part."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from starlette.routing import Match, Route, Router

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute
    from starlette.types import Lifespan, Receive, Scope, Send


class Routes(Router):
    """Starlette tries its routes one by one, which takes longer than answering."""

    def __init__(self, routes: Sequence[BaseRoute], lifespan: Lifespan[Any]) -> None:
        super().__init__(routes, redirect_slashes=False, lifespan=lifespan)
        plain: dict[str, list[BaseRoute]] = defaultdict(list)
        others: dict[str, list[BaseRoute]] = defaultdict(list)
        for route in routes:
            path = getattr(route, "path", "")
            held = others[_first(path)] if "{" in path else plain[path]
            held.append(route)
        self._plain, self._others = dict(plain), dict(others)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.lifespan(scope, receive, send)
            return
        scope.setdefault("router", self)
        path = scope["path"]
        near: tuple[Route, Scope] | None = None
        for route in (*self._plain.get(path, ()), *self._others.get(_first(path), ())):
            match, child = route.matches(scope)
            if match is Match.FULL:
                scope.update(child)
                await route.handle(scope, receive, send)
                return
            if match is Match.PARTIAL and near is None and isinstance(route, Route):
                near = route, child
        if near is not None:  # there, but not for this method: it says so
            scope.update(near[1])
            await near[0].handle(scope, receive, send)
            return
        await self.default(scope, receive, send)


def _first(path: str) -> str:
    return path[1:].partition("/")[0]
