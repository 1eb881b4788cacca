"""The server, put together over one home."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fleet.bootstrap.serving import server_key
from fleet.server.app import BURST, RATE, Server
from fleet.server.guard import LOOPBACK, Rates
from fleet.server.stream import Streams
from fleet.server.tokens import Tokens
from fleet.server.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.bootstrap import App
    from fleet.ports import Store


def make_server(app: App, *, host: str, names: tuple[str, ...] = ()) -> Server:
    """`names`: by which other machines call it, besides its address."""
    store = app.another_store()
    streams = Streams(store, _teams(store))
    hosts = LOOPBACK if host in LOOPBACK else frozenset({*LOOPBACK, host, *names})
    return Server(
        context=app.context,
        store=store,
        writer=Writer(app.another_store, streams.tell),
        tokens=tokens_of(app),
        streams=streams,
        rates=Rates(RATE, BURST),
        hosts=hosts,
    )


def tokens_of(app: App) -> Tokens:
    return Tokens(server_key(app.home.path, os.environ.get("JWT_SECRET", "")))


def _teams(store: Store) -> Callable[[str], str]:
    known: dict[str, str] = {}  # a task's team never changes

    def team_of(task: str) -> str:
        if task not in known:
            known[task] = store.task(task).team
        return known[task]

    return team_of
