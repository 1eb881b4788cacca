"""The operations. Each is declared once; the command line, HTTP and MCP all call it by its request."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args

from fleet.domain.access import Actor, Permission, allow
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Conflict, Forbidden, NotFound, Unavailable
from fleet.domain.event import Event, Kind
from fleet.domain.limits.check import check
from fleet.domain.run import Run
from fleet.ports import Same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fleet.domain.access import Revocation
    from fleet.domain.task import Spec, Task
    from fleet.ports import (
        Agents,
        AuditTrail,
        Change,
        Chosen,
        Machines,
        Record,
        Store,
        StoreLogins,
        Transcripts,
        Worktrees,
        World,
    )

MODULES = (
    "tasks.change",
    "tasks.add_all",
    "tasks.graph",
    "tasks.stats",
    "search",
    "settings",
    "tasks.list",
    "tasks.show",
    "tasks.dependencies",
    "messages.ask_answer_send",
    "tasks.transcript",
    "tasks.assign",
    "tasks.edit",
    "tasks.send_back",
    "compat.issues",
    "tasks.at_work",
    "tasks.observe",
    "tasks.fork",
    "tasks.stop",
    "compat.mark",
    "compat.team_tasks",
    "tasks.spawn",
    "team.tokens",
    "team.members",
    "team.swarms",
    "messages.boards",
    "messages.mail",
    "team.checkpoints",
    "team.memory",
    "team.file_claims",
    "views",
    "worktrees",
    "landing.review",
    "landing.landing",
    "landing.trains",
    "landing.output",
    "landing.forecast",
    "forges.pulls",
    "landing.race",
    "forges.tickets",
    "team.enrolments",
    "team.sessions",
    "messages.chats",
    "team.audit",
    "messages.alerts",
    "inbox",
    "insight.history",
    "insight.preview",
    "insight.conversation",
    "insight.usage",
    "compute.nodes",
    "compute.traces",
    "compute.gateway",
    "compute.hosts",
    "compute.joining",
    "compute.evals",
)
MAX_TRIES = 50  # decisions are pure: on a conflict we read and decide again

Reply = TypeVar("Reply")


class Request(Generic[Reply]):
    """The input of an operation: a frozen dataclass that names the type of its reply."""

    __slots__ = ()


def _no_key(_claims: dict[str, Any]) -> str:
    raise Unavailable(
        "There is no signing key on this machine.", fix="Run this on the server's machine."
    )


def _no_git() -> Worktrees:
    raise Unavailable(
        "The task's git repository is not on this machine.",
        fix="Run this on the machine where the task runs.",
    )


def _no_agents() -> Agents:
    raise Unavailable(
        "The agents are not on this machine.", fix="Run this on the machine where they run."
    )


def _no_machines() -> Machines:
    raise Unavailable(
        "The nodes are declared on another machine.", fix="Run this on the server's machine."
    )


def _no_trail() -> AuditTrail:
    raise Unavailable("There is no audit trail here.", fix="Run this on the server's machine.")


def _no_logins() -> StoreLogins:
    raise Unavailable("There is no store here to share.", fix="Run this on the server's machine.")


def _everywhere(_context: Context, _directory: str) -> bool:
    return True


def _own_spec(task: Task) -> Spec:
    return task.spec


def _no_reader(_events: Sequence[Event]) -> None:
    pass


def _kept_nowhere(_revocations: Sequence[Revocation]) -> None:
    pass


class Context(NamedTuple):
    """The actor of a request, and everything a handler may use. `run`: the actor's own run, if any.

    `project`: the caller's project; a branch name that several projects have means the one in it.
    """

    actor: Actor
    store: Store
    transcripts: Callable[[], Transcripts]
    world: Callable[[str], World[Chosen]]
    run: Run | None = None
    project: str = ""
    edited: Callable[[Task], Spec] = (
        _own_spec  # the task's spec with a person's edits of `task.json`
    )
    sign: Callable[[dict[str, Any]], str] = _no_key  # returns a token with these claims
    revoked: Callable[[Sequence[Revocation]], None] = (
        _kept_nowhere  # records them outside the store
    )
    token_seconds: float = 90 * 86400  # the longest life of a token
    trees: Callable[[], Worktrees] = _no_git
    wrote: Callable[[Sequence[Event]], None] = (
        _no_reader  # gets the events of each commit; see `Client`
    )
    audit: Callable[[], AuditTrail] = _no_trail
    agents: Callable[[], Agents] = _no_agents
    machines: Callable[[], Machines] = _no_machines
    logins: Callable[[], StoreLogins] = _no_logins
    offers: Callable[[Context, str], bool] = (
        _everywhere  # whether the actor's team may name a directory
    )

    def commit(self, changes: Sequence[Change], *events: Event) -> list[Record]:
        """Write the changes and events; for a run, raise `Conflict` if the run has changed since."""
        own = self.run
        if own is None or any(isinstance(c.record, Run) and c.record.id == own.id for c in changes):
            written = self.store.commit(changes, events)
        else:
            written = self.store.commit([*changes, Same(own)], events)
        self.wrote(events)
        return written

    def event(self, kind: Kind, task: str, *, run: str = "", **data: str) -> Event:
        """An event by this actor, now."""
        run_id = run or self.actor.run
        return Event(kind, task, self.actor.name, self.store.now(), run_id, dict(data))


class Operation(NamedTuple):
    """An operation. `idempotent`: repeating it changes nothing more, though it may be refused.

    `at_host`: it acts on a run, so the run's host carries it out; see `Client.call`.
    `reads`: it changes nothing; None: derived from its permission.
    `outside`: it runs programs or calls other servers, so other operations do not wait for it.
    `shown_by`: the operation that shows, by its id, what this one made.
    `is_open`: over HTTP it needs no token; the request itself proves who sent it.
    """

    name: str
    request: type
    permission: Permission
    handler: Callable[[Context, Any], Any]
    summary: str
    idempotent: bool = True
    at_host: bool = False
    reads: bool | None = None
    outside: bool = False
    shown_by: str = ""
    is_open: bool = False

    @property
    def is_read(self) -> bool:
        if self.reads is not None:
            return self.reads
        return self.permission is Permission.READ and not self.at_host

    @property
    def reply(self) -> Any:
        """The type that the request names."""
        return _reply_of(self.request)


@cache
def _reply_of(request: Any) -> Any:
    (base,) = request.__orig_bases__  # Request[…]
    return get_args(base)[0]


def operations() -> Iterator[Operation]:
    for name in MODULES:
        yield from import_module(f"fleet.operations.{name}").OPERATIONS


def find(request: type) -> Operation:
    """The operation of this request; only the module that declares it is loaded."""
    kind: Any = request
    operation: Operation = _find(kind)
    return operation


@cache
def _find(request: Any) -> Operation:
    for operation in getattr(import_module(request.__module__), "OPERATIONS", ()):
        if operation.request is request:
            declared: Operation = operation
            return declared
    raise NotFound(f"{request.__name__} is not an operation.")


def perform(context: Context, request: Request[Reply]) -> Reply:
    """Check the permission and the limits, then call the handler; on a conflict, call it again."""
    operation = find(type(request))
    allow(context.actor, operation.permission)
    check(request)
    for _ in range(MAX_TRIES - 1):
        with suppress(Conflict):
            return _once(operation, context, request)
    return _once(operation, context, request)


def _once(operation: Operation, context: Context, request: Request[Reply]) -> Reply:
    if context.actor.run:
        context = context._replace(run=_current(context))
    reply: Reply = operation.handler(context, request)
    return reply


def _current(context: Context) -> Run:
    """The actor's run; raise `Forbidden` unless it is its task's newest and has not ended."""
    run_id = context.actor.run
    run = context.store.run(run_id)
    if not is_current(context.store, run_id):
        raise Forbidden(
            f"{run_id} has ended, so its token is no longer valid.",
            fix="To act as yourself, unset FLEET_RUN_ID and FLEET_RUN_TOKEN.",
            code="stale_run",
        )
    return run


def is_current(store: Store, run_id: str) -> bool:
    """Whether the run is its task's newest, and has not ended."""
    try:
        task = store.task(run_id.rpartition(".")[0])
        return task.run_id == run_id and store.run(run_id).live
    except NotFound:
        return False
