"""The server, put together over one home."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.bootstrap.serving import server_key
from fleet.client import Client
from fleet.server.app import BURST, RATE, Server
from fleet.server.guard import LOOPBACK, Rates
from fleet.server.stream import Streams
from fleet.server.tokens import Tokens
from fleet.server.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from fleet.bootstrap import App
    from fleet.ports import Store

WAITERS = 16  # runs that are being ended for somebody who waits


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
        hosts_do=_hosts_do(app),
    )


def _hosts_do(app: App) -> Callable[[str], Future[None]]:
    """In threads beside the loop and the writer, each with a store of its own."""
    waiters = ThreadPoolExecutor(WAITERS, "hosts")

    def wait(task: str) -> None:
        own = replace(app)
        try:
            Client(own).see_to(task)
        finally:
            own.store.close()

    return lambda task: waiters.submit(wait, task)


def tokens_of(app: App) -> Tokens:
    return Tokens(server_key(app.home.path, os.environ.get("JWT_SECRET", "")))


def _teams(store: Store) -> Callable[[str], str]:
    known: dict[str, str] = {}  # a task's team never changes

    def team_of(task: str) -> str:
        if task not in known:
            known[task] = store.task(task).team
        return known[task]

    return team_of
