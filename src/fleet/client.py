"""Call an operation with one signature, on this machine or on a server elsewhere."""

from __future__ import annotations

import dataclasses
import os
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from fleet.app import App
from fleet.domain.access import Actor, Role, allow
from fleet.domain.errors import BadInput, FleetError, Forbidden, Refused, Unavailable
from fleet.domain.event import Kind
from fleet.domain.run import RunState
from fleet.domain.task import TaskState
from fleet.operations.catalogue import Request, find, perform
from fleet.operations.shared.names import MAX_ROWS, PAGE, cursor_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from fleet.app.compute.nodes import Compute
    from fleet.app.observe import Sight
    from fleet.app.server_address import Remote
    from fleet.app.workspaces.manage import Workspaces
    from fleet.config import Loaded
    from fleet.domain.event import Event
    from fleet.domain.run import Run
    from fleet.domain.task import Spec
    from fleet.operations.catalogue import Context, Operation
    from fleet.operations.tasks.at_work import AgentRow
    from fleet.operations.tasks.stop import Stopping
    from fleet.ports import Chosen, Coder, World

Reply = TypeVar("Reply")

RECONCILE_STEPS = 20  # steps after which a supervisor has settled every run that has ended
SPEAKING = frozenset({"mail.send", "mail.broadcast", "board.post", "chat.say", "checkpoint.save"})
SIGNING = frozenset({"token.create"})  # the running server does it, if only it has the key
TYPING_SECONDS = 3.0  # for a message that is being pasted to be sent
RECONCILE_SECONDS = 0.2  # that reconciling takes at least
HEARD_SECONDS = 2.0  # for agents to hear a message to all of them
RUN_END_SECONDS = 60.0  # for a supervisor to end a run; it may give the coder its grace first


class Client(ABC):
    """What commands call. This machine does the work, or a server elsewhere.

    Settings and directories are this machine's either way.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    @property
    def loaded(self) -> Loaded:
        """The settings for the person who typed the command, in the current directory."""
        return self._app.loaded

    @property
    def cwd(self) -> Path:
        return self._app.cwd

    @property
    def home(self) -> Path:
        """The home directory of fleet on this machine; it may not exist yet."""
        return self._app.home.path

    @property
    def project(self) -> str:
        """The project that the command was typed in; empty outside of any."""
        return str(self.loaded.project or "")

    @property
    def project_or_cwd(self) -> str:
        return self.project or str(self.cwd.resolve())

    def world(self, project: str) -> World[Chosen]:
        """What this machine's settings declare for a project."""
        return self._app.worlds(project)

    def coder(self, name: str, project: str) -> Coder:
        return self._app.coder(name, project)

    def compute(self) -> Compute:
        """The nodes and models that this machine's settings declare."""
        from fleet.app.compute.nodes import Compute  # noqa: PLC0415  # start-up time

        return Compute(self._app)

    def task_dir(self, task_id: str) -> Path:
        return self._app.home.task_dir(task_id)

    is_remote: bool

    @property
    @abstractmethod
    def server_url(self) -> str:
        """Where other machines reach the server, as far as is known here."""

    @property
    @abstractmethod
    def actor(self) -> Actor:
        """Inside a run: the run; else the person."""

    @abstractmethod
    def call(self, request: Request[Reply]) -> Reply: ...

    @abstractmethod
    def now(self) -> int:
        """Microseconds, by the clock that stamps tasks."""

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Wait until something was written, or so many seconds."""

    @abstractmethod
    def state(self, task_id: str) -> str: ...

    @abstractmethod
    def supervised(self) -> bool:
        """Whether a supervisor runs, on this host or on another one."""

    @abstractmethod
    def deliver(self, message: str, *, patience: float) -> None:
        """Wait until the agent has heard it, its task no longer runs, or `patience` is over."""

    @abstractmethod
    def observed(self, rows: tuple[AgentRow, ...] | list[AgentRow]) -> list[dict[str, Any]]:
        """Each row with what we see here: what the agent does, why we think so, what it uses."""

    @abstractmethod
    def opening(self, run_id: str) -> str:
        """The first input of the run's coder; empty when this machine does not have it."""

    @abstractmethod
    def last_screen(self, run_id: str) -> Path | None:
        """The file with the last screen of the run's terminal, if this machine has it."""

    @abstractmethod
    def refresh(self, task_id: str) -> None:
        """Bring the folder of a task up to date, if this machine has it."""

    @abstractmethod
    def this_machine(self, action: str) -> LocalClient:
        """For an action on this machine alone; raise `Refused` when commands go to a server."""


class RemoteClient(Client):
    """A server elsewhere does all the work."""

    is_remote = True

    def __init__(self, app: App) -> None:
        from fleet.app.server_address import remote_of  # noqa: PLC0415  # start-up time

        super().__init__(app)
        self._remote = remote_of(app)

    @cached_property
    def actor(self) -> Actor:
        from fleet.app.identity import person  # noqa: PLC0415  # start-up time

        team, run = self.loaded.settings.team, self._app.env.get("FLEET_RUN_ID", "")
        return Actor(run, Role.WORKER, team, run) if run else person(self._app.env, team)

    def call(self, request: Request[Reply]) -> Reply:
        operation = find(type(request))
        if not self.actor.run:  # a person who claims a lower role than the token's is held to it
            allow(self.actor, operation.permission)
        return ask_by_pages(self._remote, operation, request)

    def now(self) -> int:
        return time.time_ns() // 1000

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def state(self, task_id: str) -> str:
        from fleet.operations.tasks.show import ShowTask  # noqa: PLC0415  # start-up time

        return self.call(ShowTask(task_id)).task.state

    @property
    def url(self) -> str:
        return self._remote.url

    @property
    def server_url(self) -> str:
        return self._remote.url

    def health(self) -> dict[str, Any]:
        """The server's health page; raise `Unavailable` when it does not answer."""
        health: dict[str, Any] = self._remote.say("GET", "/health")
        return health

    def supervised(self) -> bool:
        return True  # we cannot know, and do not warn

    def deliver(self, message: str, *, patience: float) -> None:
        from fleet.operations.messages.ask_answer_send import ReadMessage  # noqa: PLC0415  # start-up time

        until = time.monotonic() + patience
        while (words := self.call(ReadMessage(message))).status == "queued":
            if self.state(words.task) != "running" or time.monotonic() > until:
                return
            self.wait(0.2)

    def observed(self, rows: tuple[AgentRow, ...] | list[AgentRow]) -> list[dict[str, Any]]:
        return _with_sights(rows, {})

    def opening(self, run_id: str) -> str:
        del run_id
        return ""

    def last_screen(self, run_id: str) -> None:
        del run_id

    def refresh(self, task_id: str) -> None:
        pass

    def this_machine(self, action: str) -> NoReturn:
        raise local_only(action)


class LocalClient(Client):
    """This machine does the work, and has the supervisor, the terminals and the worktrees."""

    is_remote = False

    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.app = app
        self._events: list[Event] = []  # events whose tasks' folders must be written
        self._grouped = False

    @property
    def actor(self) -> Actor:
        return self.app.actor

    @property
    def context(self) -> Context:
        """For commands that only look up a name."""
        return self.app.context

    @property
    def workspaces(self) -> Workspaces:
        return self.app.workspaces

    def check_start(self, cwd: str, project: str, branch: str, base: str) -> None:
        """Check that the workspace can be made, before the task is queued; raise what is wrong."""
        self.app.check_start(cwd, project, branch, base)

    def check_gateway(self, spec: Spec, project: str) -> None:
        """Raise `Unavailable` when its model is one of ours and the gateway does not answer."""
        self.app.check_gateway(spec, project)

    def attach_argv(self, run_id: str) -> list[str]:
        """The command that attaches to the run's terminal; raise `Unavailable` when it has none."""
        return self.app.attach_argv(run_id)

    def back_up(self, target: Path) -> int:
        """Copy the store into a new file; the bytes of the copy."""
        return self.app.back_up(target)

    def close_terminals(self, task_id: str) -> None:
        """Close the tmux sessions of its ended runs; the text of their screens is kept."""
        self.app.close_terminals(task_id)

    def call(self, request: Request[Reply]) -> Reply:
        operation = find(type(request))
        if operation.name in SIGNING and (signer := self._signer()):
            return _ask_signer(signer, operation, request)
        reply = self._perform(request)
        if operation.at_host:
            self.see_to(str(getattr(reply, "id", "")))
        if operation.name in SPEAKING and not self.app.home.supervisor_pid():
            self._speak_to_agents()
        return reply

    @property
    def server_url(self) -> str:
        from fleet.app.server_process import serving_at  # noqa: PLC0415  # start-up time

        url = self.loaded.settings.server.url or serving_at(self.home)
        return url or "http://127.0.0.1:3847"

    def rotate_key(self, overlap: float) -> str:
        """The id of the key that signs tokens from now on; older ones verify for `overlap` seconds."""
        from fleet.app.server_process import rotate_key  # noqa: PLC0415  # start-up time

        return rotate_key(self.app.home.path, self.app.env, overlap).id

    def _signer(self) -> Remote | None:
        from fleet.app.server_address import signer_of  # noqa: PLC0415  # start-up time

        return signer_of(self.app)

    def now(self) -> int:
        return self.app.store.now()

    def wait(self, seconds: float) -> None:
        self.app.store.wait(seconds)

    def state(self, task_id: str) -> str:
        return self.app.store.task(task_id).state

    def opening(self, run_id: str) -> str:
        return self.app.keepers.opening(run_id)

    def last_screen(self, run_id: str) -> Path | None:
        screen = self.app.keepers.folder(run_id) / "screen.txt"
        return screen if screen.exists() else None

    def refresh(self, task_id: str) -> None:
        self.app.files.refresh(task_id)

    def this_machine(self, action: str) -> LocalClient:
        del action
        return self

    def _perform(self, request: Request[Reply]) -> Reply:
        try:
            return perform(self.app.context._replace(wrote=self._events.extend), request)
        finally:
            if not self._grouped:
                self._write_folders()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write all changes made in this block, or none of them."""
        self._grouped = True
        try:
            with self.app.store.together():
                yield
        except BaseException:
            self._events.clear()
            raise
        finally:
            self._grouped = False
            self._write_folders()

    def _write_folders(self) -> None:
        """Write the tasks' folders; an error there does not undo what is in the store."""
        tasks = dict.fromkeys(event.task for event in self._events if event.changes_folder)
        self._events.clear()
        for task in tasks:
            self.app.files.refresh(task)

    def call_all(self, requests: Sequence[Request[Any]]) -> list[FleetError | None]:
        """Do this to several runs at once; return the error of each, or None."""
        replies = [self._try_perform(request) for request in requests]
        until = time.monotonic() + RUN_END_SECONDS
        return [error or self._try_see_to(task, until) for task, error in replies]

    def _try_perform(self, request: Request[Any]) -> tuple[str, FleetError | None]:
        try:
            return str(self._perform(request).id), None
        except FleetError as error:
            return "", error

    def _try_see_to(self, task_id: str, until: float) -> FleetError | None:
        try:
            self.see_to(task_id, until=until)
        except FleetError as error:
            return error
        return None

    def _speak_to_agents(self) -> None:
        """Deliver messages to agents at work; those that miss one hear it later."""
        if self._has_unheard():
            self._supervise(lambda: not self._has_unheard(), time.monotonic() + HEARD_SECONDS)

    def _has_unheard(self) -> bool:
        from fleet.domain.addressing import is_aside  # noqa: PLC0415  # start-up time

        host = self.app.home.host_id()
        live = {run.task for run in self.app.store.live_runs(host=host)}
        waiting = self.app.store.open_messages("words", limit=1000) if live else ()
        return any(m.task in live and is_aside(m) for m in waiting)

    def supervised(self) -> bool:
        if self.app.home.supervisor_pid():
            return True
        store, host = self.app.store, self.app.home.host_id()
        others = [h for h in store.hosts().values() if h.id != host and h.holder]
        return any(h.lease_until > store.now() for h in others)

    def stop_runs(self) -> tuple[Stopping, ...]:
        """End every run of this host; their tasks open again, and it costs them no attempt."""
        from fleet.operations.tasks.stop import StopRuns  # noqa: PLC0415  # start-up time

        stopping: tuple[Stopping, ...] = self.call(StopRuns(self.app.home.host_id()))
        until = time.monotonic() + RUN_END_SECONDS
        while live := [r for s in stopping if (r := self.app.store.run(s.run)).live]:
            if time.monotonic() > until:
                raise _not_ended_yet(live[0])
            if not self._end_locally(live, until):
                self.app.store.wait(0.1)
        return stopping

    def start(self, tasks: Sequence[str], *, patience: float) -> list[str]:
        """Wait until each has begun its first turn or ended; return those that have not yet."""
        until = time.monotonic() + patience
        rows = self.app.store.tasks_by_id(tasks).values()
        before = {task.id: task.tally.runs for task in rows if task.state is TaskState.OPEN}
        left = list(tasks)

        def begun() -> bool:
            left[:] = [task for task in left if not self._has_begun(task, before.get(task, 0))]
            return not left

        while not begun() and time.monotonic() < until:
            if not self._supervise(begun, until, only=left):
                self.app.store.wait(0.05)
        return left

    def _has_begun(self, task_id: str, before: int) -> bool:
        """Whether its run works on the prompt, waits for one, or has ended.

        `before`: the number of earlier runs, which do not count.
        """
        store = self.app.store
        task = store.task(task_id)
        if task.state is not TaskState.RUNNING:
            return task.tally.runs > before
        run = store.run(task.run_id)
        if not task.prompt:
            return run.state is not RunState.CLAIMED
        facts = store.events(task=task_id, limit=50, newest=True)
        return any(e.type == Kind.RUN_PROMPTED and e.run == run.id for e in facts)

    def deliver(self, message: str, *, patience: float) -> None:
        until = time.monotonic() + patience
        store = self.app.store

        def settled() -> bool:
            words = store.message(message)
            return words.state != "open" or store.task(words.task).state is not TaskState.RUNNING

        while not settled() and time.monotonic() < until:
            if not self._supervise(settled, until):
                store.wait(0.1)

    def _supervise(
        self, enough: Callable[[], bool], until: float, *, only: Sequence[str] = ()
    ) -> bool:
        """Be the supervisor, under the host's lock. False: another process is it."""
        with self.app.home.alone() as locked:
            if not locked:
                return False
            self.app.arrive()
            try:
                supervisor = self.app.supervisor()
                supervisor.claiming, supervisor.only = bool(only), frozenset(only)
                supervisor.start()
                while time.monotonic() < until:
                    moved = supervisor.step()
                    if enough():
                        break
                    if not moved:
                        self.app.bell.wait(0.01)
                until = time.monotonic() + TYPING_SECONDS
                while supervisor.typing and time.monotonic() < until:
                    self.app.bell.wait(0.01)
            finally:
                self.app.leave()
            return True

    def observed(self, rows: tuple[AgentRow, ...] | list[AgentRow]) -> list[dict[str, Any]]:
        from fleet.app.observe import Subject, observe  # noqa: PLC0415  # start-up

        host = self.app.home.host_id()
        subjects = [
            Subject(r.run, r.coder, r.project, r.terminal, r.host == host, r.ended_at is None)
            for r in rows
            if r.run and r.ended_at is None
        ]
        return _with_sights(rows, observe(self.app, subjects))

    def reconcile(self) -> None:
        """Without a supervisor, settle the runs that have ended or vanished, as one would."""
        steps, until = iter(range(RECONCILE_STEPS)), time.monotonic() + RECONCILE_SECONDS

        def enough() -> bool:
            return next(steps, None) is None and time.monotonic() > until

        self._supervise(enough, time.monotonic() + RUN_END_SECONDS)

    def see_to(
        self, task_id: str, over: Callable[[], bool] = lambda: False, *, until: float = 0.0
    ) -> None:
        """Wait until each run's host has ended it; with no supervisor here, end it ourselves.

        `over`: whether the caller has stopped waiting.
        """
        until = until or time.monotonic() + RUN_END_SECONDS
        while runs := self._to_end(task_id):
            if time.monotonic() > until or over():
                raise _not_ended_yet(runs[0])
            if not self._end_locally(runs, until):
                self.app.store.wait(0.1)

    def _to_end(self, task_id: str) -> list[Run]:
        """The runs of this task and of its children that were asked to end."""
        wanted = [run for run in self.app.store.live_runs() if run.wanted]
        return [run for run in wanted if task_id in self._lineage(run.task)]

    def _lineage(self, task_id: str) -> list[str]:
        lineage = []
        while task_id:
            lineage.append(task_id)
            task_id = self.app.store.task(task_id).parent
        return lineage

    def _end_locally(self, runs: list[Run], until: float) -> bool:
        """End those of this host as its supervisor would. False: the supervisor has to do it."""
        host = self.app.home.host_id()
        ours = [run.id for run in runs if run.host == host]
        if not ours:
            return False
        return self._supervise(lambda: not any(self.app.store.run(i).live for i in ours), until)


def _with_sights(rows: Sequence[AgentRow], sights: Mapping[str, Sight]) -> list[dict[str, Any]]:
    from fleet.app.observe import Sight  # noqa: PLC0415  # start-up

    nothing = Sight("", "")
    fields = [f.name for f in dataclasses.fields(rows[0])] if rows else []
    return [
        {name: getattr(row, name) for name in fields} | sights.get(row.run, nothing)._asdict()
        for row in rows
    ]


def ask_by_pages(remote: Remote, operation: Operation, request: Request[Reply]) -> Reply:
    """Ask for a long list page by page."""
    limit = getattr(request, "limit", PAGE)
    if not hasattr(request, "before") or 1 <= limit <= PAGE or limit < 0:
        reply: Reply = remote.call(operation.name, request, operation.reply)
        return reply
    left, rows = limit or MAX_ROWS, []
    while left > 0:
        page_request: Any = dataclasses.replace(request, limit=min(left, PAGE))  # type: ignore[type-var]  # it is one
        page = remote.call(operation.name, page_request, operation.reply)
        rows += page
        left -= len(page)
        if len(page) != page_request.limit:
            break
        request = dataclasses.replace(page_request, before=cursor_of(page[-1]))
    return tuple(rows)  # type: ignore[return-value]  # the reply of a list operation is a tuple


def _ask_signer(signer: Remote, operation: Operation, request: Request[Reply]) -> Reply:
    try:
        return ask_by_pages(signer, operation, request)
    except Forbidden as error:
        if error.code not in {"bad_token", "unknown_key"}:
            raise
        raise Refused(
            f"The server at {signer.url} has a key that is not this shell's, and does not accept ours.",
            fix="Restart the server, or set JWT_SECRET here as in the server's environment.",
            code="other_key",
        ) from None


def _not_ended_yet(run: Run) -> Unavailable:
    return Unavailable(
        f"{run.id} was asked to stop, but has not ended yet.",
        fix=f"`fleet show {run.task}` says where it is.",
    )


def is_away() -> bool:
    """Whether commands speak to a server elsewhere."""
    return bool(os.environ.get("FLEET_URL") or os.environ.get("CLAUDE_FLEET_URL"))


def connect(
    *,
    config: Path | None = None,
    flags: Mapping[str, object] | None = None,
    cwd: Path | None = None,
) -> Client:
    """Connect to the server that FLEET_URL names, else to this machine's home."""
    if is_away():
        return RemoteClient(_app(config, flags, cwd))
    return LocalClient(_app(config, flags, cwd))


def connect_here(*, config: Path | None = None, cwd: Path | None = None) -> LocalClient:
    """Connect to this machine's home, for a command about this very machine."""
    return LocalClient(_app(config, None, cwd))


def _app(config: Path | None, flags: Mapping[str, object] | None, cwd: Path | None) -> App:
    return App(cwd or here(), os.environ, config_file=config, flags=flags or {})


def local_only(action: str) -> Refused:
    return Refused(
        f"{action} acts on this machine, and FLEET_URL names another server.",
        fix="Unset FLEET_URL, or run the command on the server's machine.",
        code="local_only",
    )


def here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise BadInput(
            "The current directory no longer exists.", fix="cd to a directory that exists."
        ) from error
