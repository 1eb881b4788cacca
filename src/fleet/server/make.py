"""The server, put together over one home."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from jwt.algorithms import has_crypto

from fleet.app.compute.nodes import Compute
from fleet.app.token_keys import KeyRing, issuer_keys
from fleet.client import LocalClient
from fleet.domain.errors import BadConfig
from fleet.operations.catalogue import perform
from fleet.server.audit import Audit
from fleet.server.claude_fleet.mount import CLAUDE_FLEET
from fleet.server.http.app import BURST, RATE, Server
from fleet.server.http.guard import LOOPBACK, Rates
from fleet.server.http.hooks import HookRules
from fleet.server.http.idempotency import once
from fleet.server.http.offered_places import OfferedPlaces
from fleet.server.live.presence import Revoked
from fleet.server.live.stream import Streams
from fleet.server.metrics import EventWatch, Meters
from fleet.server.oidc_people import People
from fleet.server.read_queue import Reads
from fleet.server.ready import Readiness
from fleet.server.task_folders import Folders
from fleet.server.tokens import TokenCheck
from fleet.server.turns import FairThreads
from fleet.server.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from concurrent.futures import Future

    from fleet.app import App
    from fleet.domain.access import Actor
    from fleet.domain.event import Event
    from fleet.operations.catalogue import Request
    from fleet.ports import Chosen, Store, TaskFiles, World

WORLD_TRUST_SECONDS = 0.2  # seconds for which a project is believed to be as it was
WAITERS, WAITERS_EACH = 16, 8  # callers that wait for runs to end: in all, of one member
OUTSIDE, OUTSIDE_EACH = 8, 3  # callers that wait for programs such as git: in all, of one member
MOST_WAITING = 100  # requests of one member that wait for those


def make_server(app: App, *, host: str, names: tuple[str, ...] = ()) -> Server:
    """`names`: other host names that clients use for this server, such as that of a proxy."""
    directory = str(app.loaded.project or app.cwd)
    reads = Reads(app.another_store, app.another_store(), is_near=not app.shared)
    streams = Streams(reads, _teams(reads.store), CLAUDE_FLEET.frame)
    meters, folders = Meters(), Folders(lambda: _files(app), app.daemon.supervises)
    hosts = frozenset({*LOOPBACK, host, *names})
    revoked = Revoked(app.another_store, app.revoked_file())
    return Server(
        context=app.context._replace(
            world=Glances(app.context.world), project=directory, revoked=revoked.note
        ),
        reads=reads,
        writer=Writer(app.another_store, streams.tell),
        tokens=TokenCheck(KeyRing(app.home.path, os.environ), revoked, _people(app)),
        revoked=revoked,
        streams=streams,
        rates=Rates(RATE, BURST),
        hosts=hosts,
        hosts_do=HostThreads(app, OfferedPlaces((directory, *app.loaded.settings.server.places))),
        meters=meters,
        watch=EventWatch(
            app.another_store, meters, streams.tell, _each_of(folders.add, revoked.saw)
        ),
        audit=Audit(app.audit_trail(), reads=app.loaded.settings.server.audit == "all"),
        readiness=Readiness(app.another_store, app.home.path, app.home.host_id()),
        persistence=app.store_kind.name,
        compat=CLAUDE_FLEET,
        folders=folders,
        hook_rules=_hook_rules(app, directory),
        seat=app.seat,
        relay=lambda: _relay(app),
        directory=directory,
        places=app.loaded.settings.server.places,
    )


def _hook_rules(app: App, directory: str) -> HookRules:
    settings = app.loaded.settings
    hooks = settings.hooks
    return HookRules(
        secret=app.hook_secret,
        people=hooks.people,
        label=hooks.label,
        team=settings.team,
        project=hooks.project or directory,
        kind_of=app.forges.kind_of,
    )


@contextmanager
def _files(app: App) -> Iterator[TaskFiles]:
    """For one thread: its store is its own."""
    own = app.another()
    try:
        yield own.files
    finally:
        own.store.close()


class Glances:
    """What projects declare, read again at most every `WORLD_TRUST_SECONDS`."""

    def __init__(self, world: Callable[[str], World[Chosen]]) -> None:
        self._world = world
        self._worlds: dict[str, tuple[float, World[Chosen]]] = {}

    def __call__(self, project: str) -> World[Chosen]:
        now = time.monotonic()
        at, world = self._worlds.get(project, (0.0, None))
        if world is None or now - at > WORLD_TRUST_SECONDS:
            world = self._world(project)
            self._worlds[project] = (now, world)
        return world


class HostThreads:
    """Does slow work in threads beside the loop and the writer, each with a store of its own."""

    def __init__(self, app: App, offers: OfferedPlaces) -> None:
        self._app, self._offers = app, offers
        self._over = threading.Event()
        self._waiters = FairThreads("hosts", WAITERS, WAITERS_EACH)
        self._outside = FairThreads("outside", OUTSIDE, OUTSIDE_EACH, MOST_WAITING)

    def __call__(self, actor: Actor, task: str) -> Future[None]:
        """Return a future that is done once the hosts of this task's runs have ended them."""
        return self._waiters.submit(_who(actor), lambda: self._wait(task))

    def do(self, actor: Actor, request: Request[Any], key: str) -> Future[Any]:
        """Carry out an operation that waits for programs of this host."""
        return self._outside.submit(_who(actor), lambda: self._do(actor, request, key))

    def _do(self, actor: Actor, request: Request[Any], key: str) -> Any:
        own = self._app.another()
        try:
            context = own.context._replace(actor=actor, offers=self._offers)
            return once(context, request, key) if key else perform(context, request)
        finally:
            own.store.close()

    def end(self) -> None:
        """End all waits for other hosts: the server is stopping."""
        self._over.set()

    def _wait(self, task: str) -> None:
        own = self._app.another()
        try:
            LocalClient(own).see_to(task, over=self._over.is_set)
        finally:
            own.store.close()


def _who(actor: Actor) -> str:
    return f"{actor.team}/{actor.name}"


def _people(app: App) -> People | None:
    settings = app.loaded.settings.server.oidc
    if not settings.issuer:
        return None
    if not settings.audience:
        raise BadConfig(
            "server.oidc.issuer is set, and server.oidc.audience is not.",
            fix="Set it to this server's client id at the issuer: tokens for other programs are then refused.",
        )
    if not has_crypto:
        raise BadConfig(
            "server.oidc.issuer is set, and the package that checks its tokens is not installed.",
            fix="Install it: pip install 'agent-fleet[oidc]'",
        )
    return People(settings, issuer_keys(settings.issuer))


def _each_of(
    *listeners: Callable[[Sequence[Event]], None],
) -> Callable[[Sequence[Event]], None]:
    def saw(events: Sequence[Event]) -> None:
        for listener in listeners:
            listener(events)

    return saw


def _relay(app: App) -> dict[str, Any]:
    """What the relay says of each node; nothing when none runs."""
    relay = Compute(app).relay()
    nodes: dict[str, Any] = relay[0].get("nodes", {}) if relay else {}
    return nodes


def _teams(store: Store) -> Callable[[str], str]:
    teams: dict[str, str] = {}  # a task's team never changes

    def team_of(task: str) -> str:
        if task not in teams:
            teams[task] = store.task(task).team
        return teams[task]

    return team_of
