"""The server, put together over one home."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from fleet.bootstrap.serving import server_key
from fleet.client import Client
from fleet.server.app import BURST, RATE, Server
from fleet.server.guard import LOOPBACK, Rates
from fleet.server.metrics import Meters, Watch
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
    meters = Meters()
    hosts = LOOPBACK if host in LOOPBACK else frozenset({*LOOPBACK, host, *names})
    return Server(
        context=app.context,
        store=store,
        writer=Writer(app.another_store, streams.tell),
        tokens=tokens_of(app),
        streams=streams,
        rates=Rates(RATE, BURST),
        hosts=hosts,
        hosts_do=Hosts(app),
        meters=meters,
        watch=Watch(app.another_store, meters, streams.tell),
        place=str(app.loaded.project or app.cwd),
    )


class Hosts:
    """In threads beside the loop and the writer, each with a store of its own."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._over = threading.Event()
        self._waiters = ThreadPoolExecutor(WAITERS, "hosts")

    def __call__(self, task: str) -> Future[None]:
        """Done once the hosts of this task's runs have ended them."""
        return self._waiters.submit(self._wait, task)

    def end(self) -> None:
        """Nobody waits any longer for what other hosts do."""
        self._over.set()

    def _wait(self, task: str) -> None:
        own = replace(self._app)
        try:
            Client(own).see_to(task, over=self._over.is_set)
        finally:
            own.store.close()


def tokens_of(app: App) -> Tokens:
    return Tokens(server_key(app.home.path, os.environ.get("JWT_SECRET", "")))


def _teams(store: Store) -> Callable[[str], str]:
    known: dict[str, str] = {}  # a task's team never changes

    def team_of(task: str) -> str:
        if task not in known:
            known[task] = store.task(task).team
        return known[task]

    return team_of
