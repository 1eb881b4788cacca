"""What the outside may ask for. Each operation is declared once; CLI, HTTP and MCP only say it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from fleet.domain.access import Actor, Permission, allow
from fleet.domain.errors import Conflict, Forbidden, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fleet.config import Settings
    from fleet.domain.fleet import Fleet
    from fleet.ports import Store, Transcripts

MODULES = ("tasks", "messages", "runs")
TRIES = 50  # decisions are pure: on a conflict we read and decide again

Reply = TypeVar("Reply")


class Request(Generic[Reply]):
    """What is asked for: a frozen dataclass that names its reply."""

    __slots__ = ()


class World(Protocol):
    @property
    def settings(self) -> Settings: ...

    @property
    def fleet(self) -> Fleet: ...


@dataclass(frozen=True, slots=True)
class Context:
    """Whom a handler acts for, and what it may use."""

    actor: Actor
    store: Store
    transcripts: Transcripts
    world: Callable[[str], World]


@dataclass(frozen=True, slots=True)
class Operation:
    """`at_host`: it is done to a run, by the supervisor of the run's host; see `Client.call`."""

    name: str
    request: type
    reply: type
    permission: Permission
    handler: Callable[[Context, Any], Any]
    summary: str
    idempotent: bool = True
    at_host: bool = False


def operations() -> Iterator[Operation]:
    for name in MODULES:
        yield from import_module(f"fleet.operations.{name}").OPERATIONS


def find(request: type) -> Operation:
    """Only the module that declares it is loaded."""
    for operation in import_module(request.__module__).OPERATIONS:
        if operation.request is request:
            found: Operation = operation
            return found
    raise NotFound(f"{request.__name__} is not an operation.")


def perform(context: Context, request: Request[Reply]) -> Reply:
    """Check who asks, then do it; a conflict means that it is decided again."""
    operation = find(type(request))
    allow(context.actor, operation.permission)
    for attempt in range(TRIES):
        _still_current(context)
        try:
            reply: Reply = operation.handler(context, request)
        except Conflict:
            if attempt == TRIES - 1:
                raise
            continue
        return reply
    raise AssertionError("unreachable")


def _still_current(context: Context) -> None:
    """A run acts only while it is its task's newest and has not ended."""
    run_id = context.actor.run
    if not run_id:
        return
    task = context.store.task(context.actor.task)
    if task.run_id != run_id or not context.store.run(run_id).live:
        raise Forbidden(f"{run_id} is over, so it may not act any more.", code="stale_run")
