"""A client that does the work on this machine."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from fleet.client.client import Client, with_sights
from fleet.domain.access import Permission
from fleet.domain.errors import FleetError, Forbidden, Refused, Unavailable
from fleet.domain.event import Kind
from fleet.domain.task import Mode, TaskState, need_of
from fleet.operations.catalogue import Request, find, perform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from fleet.app import App
    from fleet.app.retention import Forgotten, RemovedHistory
    from fleet.app.server_address import Remote
    from fleet.app.store.archive import Archived
    from fleet.app.store.copy import Copied
    from fleet.app.store.schema import Schema
    from fleet.app.workspaces.manage import Workspaces
    from fleet.domain.access import Actor
    from fleet.domain.event import Event
    from fleet.domain.run import Run
    from fleet.domain.task import Spec, Task
    from fleet.operations.catalogue import Context, Operation
    from fleet.operations.tasks.at_work import AgentRow
    from fleet.operations.tasks.rows import TaskRow
    from fleet.operations.tasks.stop import Stopping
    from fleet.ports import Screen

Reply = TypeVar("Reply")

RECONCILE_STEPS = 20  # steps after which a supervisor has settled every run that has ended
SPEAKING = frozenset({"mail.send", "mail.broadcast", "board.post", "chat.say", "checkpoint.save"})
SIGNING = frozenset({"token.create"})  # done by the running server if only that has the key
TYPING_SECONDS = 3.0  # to wait for a message that is being pasted into a terminal
RECONCILE_SECONDS = 0.2  # the least time for reconciling
HEARD_SECONDS = 2.0  # for agents to hear a message to all of them
FIRST_START_SECONDS = 0.4  # between two looks for a program's first-start question
FIRST_START_LOOKS = 2  # looks in a row that must show it, as a screen may pass by itself
STUCK = frozenset({"no_program", "untrusted"})  # why a task waits, until a person acts
RUN_END_SECONDS = 60.0  # for a supervisor to end a run; it may give the coder its grace first


class FirstStarts:
    """Looks for first-start questions, such as a login, on the screens of runs."""

    def __init__(self, screens: Callable[[Sequence[str]], Mapping[str, Screen]]) -> None:
        self._screens = screens
        self._at, self._looks = time.monotonic(), 0

    def all_of(self, runs: Sequence[str], *, of: int) -> bool:
        """Whether there are `of` runs, and the screens of all show such a question."""
        if not of or len(runs) < of:
            return not of
        if self._looks < FIRST_START_LOOKS and time.monotonic() - self._at > FIRST_START_SECONDS:
            self._looks = self._looks + 1 if self._show_it(runs) else 0
            self._at = time.monotonic()
        return self._looks >= FIRST_START_LOOKS

    def _show_it(self, runs: Sequence[str]) -> bool:
        from fleet.ports import ScreenState

        screens = self._screens(runs)
        return all(run in screens and screens[run].state is ScreenState.FIRST_START for run in runs)


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
        """The context of operations, for commands that only look up a name."""
        return self.app.context

    @property
    def host(self) -> str:
        """The id of this machine, as a run's host."""
        return self.app.home.host_id()

    @property
    def workspaces(self) -> Workspaces:
        return self.app.workspaces

    def check_start(self, spec: Spec, project: str, after: Sequence[str] = ()) -> None:
        """Check that a task can have its workspace, before it is queued; raise what is wrong.

        `after`: the tasks that it waits for.
        """
        from fleet.app.start_checks import check_start
        from fleet.domain.limits.check import check
        from fleet.operations.tasks.dependencies import needed

        check(spec)
        ids = dict.fromkeys(needed(self.app.context, name).id for name in after)
        check_start(self.app, spec, project, list(ids))

    def unseen_changes(self, spec: Spec) -> tuple[str, ...]:
        """Return a note if the checkout has uncommitted changes that the agent will not see."""
        from fleet.app.start_checks import uncommitted

        count = 0 if spec.base else uncommitted(spec.cwd)
        if not count:
            return ()
        changes = "1 uncommitted change" if count == 1 else f"{count} uncommitted changes"
        rest = "agents start from the last commit and do not see"
        return (f"{changes} in this checkout: {rest} {'it' if count == 1 else 'them'}.",)

    def check_dependency(self, task: str, needs: str) -> None:
        """Raise when what `needs` left conflicts with what the task starts from already."""
        from fleet.operations.shared.names import the_task

        try:
            waiting = the_task(self.app.context, task, Permission.ASSIGN)
            if not waiting.spec.in_place and not waiting.tally.runs and waiting.project:
                after = [*waiting.after, need_of(needs)[0]]
                self.check_start(waiting.spec, waiting.project, after)
        except (FleetError, OSError) as error:  # the operation reports what else is wrong
            if getattr(error, "code", "") == "base_conflict":
                raise

    def check_base(self, cwd: str, base: str) -> None:
        """Raise `BadInput` when the repository there has no such commit."""
        from fleet.app.start_checks import check_base

        check_base(cwd, base)

    def check_agent(self, spec: Spec, project: str) -> None:
        """Check that an agent can start here at once; raise what is wrong."""
        from fleet.app.start_checks import check_agent

        check_agent(self.app, spec, project)

    def attach_argv(self, run_id: str) -> list[str]:
        """The command that attaches to the run's terminal; raise `Unavailable` when it has none."""
        from fleet.operations.shared.elsewhere import must_be_here

        run = self.app.store.run(run_id)
        must_be_here(self.app.context, run, "its terminal is", f"fleet attach {run.task}")
        return self.app.attach_argv(run_id)

    def server_of(self, run_id: str) -> Remote | None:
        from fleet.operations.shared.elsewhere import must_be_here

        run = self.app.store.run(run_id)
        try:
            must_be_here(self.app.context, run, "its terminal is", f"fleet attach {run.task}")
        except Unavailable:
            from fleet.app.server_address import linked_server

            remote = linked_server(self.app)
            if remote is None:
                raise
            return remote
        return None

    def back_up(self, target: Path) -> int:
        """Copy the store into a new file; the bytes of the copy."""
        from fleet.app.store.backup import back_up

        return back_up(self.app, target)

    def copy_store(
        self, source: str, target: str, *, force: bool, progress: Callable[[str, int], None]
    ) -> Copied:
        """Copy one store to another, empty one; both by their addresses."""
        from fleet.app.store.copy import copy_between

        return copy_between(self.app, source, target, force=force, progress=progress)

    def remove_old_transcripts(self, *, dry_run: bool) -> RemovedHistory:
        """Remove the transcripts that the setting `retention.transcripts` calls old."""
        from fleet.app.retention import old_transcripts

        return old_transcripts(self.app).remove_all(dry_run=dry_run)

    def forget_old(self, *, dry_run: bool) -> tuple[Forgotten, tuple[str, ...]]:
        """Forget what the settings `retention.tasks`, `.events` and `.kept` call old; the last are kept work."""
        from fleet.app.retention import old_history, old_kept

        kept = old_kept(self.app).drop_all(dry_run=dry_run)
        return old_history(self.app).forget_all(dry_run=dry_run), kept

    def archive(self, file: Path, *, days: float | None, prune: bool) -> Archived:
        """Write what is older than that, or than `retention.tasks`; with `prune`, then remove it."""
        from fleet.app.store.archive import archive

        return archive(self.app, file, days=days, prune=prune)

    def store_schema(self, *, migrate: bool) -> tuple[Schema, str, str]:
        """The store's schema, what that means and the next step; with `migrate`, after bringing it up."""
        from fleet.app.store.schema import schema_of

        return schema_of(self.app, migrate=migrate)

    def restore(self, copy: Path) -> Path | None:
        """Put a copy in the place of the store; where the store before it is now, if there was one."""
        from fleet.app.store.backup import restore

        return restore(self.app, copy)

    def close_terminals(self, task_id: str) -> None:
        """Close the tmux sessions of its ended runs; the text of their screens is kept."""
        self.app.close_terminals(task_id)

    def call(self, request: Request[Reply]) -> Reply:
        operation = find(type(request))
        if operation.name in SIGNING and (signer := self._signer()):
            return _ask_signer(signer, operation, request)
        try:
            reply = self._perform(request)
        except Unavailable as error:
            if error.code != "elsewhere" or not operation.is_read:
                raise
            return self._ask_server(operation, request, error)
        if operation.at_host:
            self.see_to(str(getattr(reply, "id", "")))
        if operation.name in SPEAKING and not self.app.home.supervisor_pid():
            self._speak_to_agents()
        return reply

    def _ask_server(
        self, operation: Operation, request: Request[Reply], error: Unavailable
    ) -> Reply:
        """Let a server perform a read of what only another host has; raise `error` without one."""
        from fleet.app.server_address import linked_server

        remote = linked_server(self.app)
        if remote is None:
            raise error
        reply: Reply = remote.call(operation.name, request, operation.reply)
        return reply

    @property
    def server_url(self) -> str:
        from fleet.app.server_address import DEFAULT_URL
        from fleet.app.server_process import serving_at

        url = self.loaded.settings.server.url or serving_at(self.home)
        return url or DEFAULT_URL

    def rotate_key(self, overlap: float) -> str:
        """The id of the key that signs tokens from now on; older ones verify for `overlap` seconds."""
        from fleet.app.token_keys import rotate_key

        return rotate_key(self.app.home.path, self.app.env, overlap).id

    def _signer(self) -> Remote | None:
        from fleet.app.server_address import signer_of

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
        """See `Client.call_all`; runs that have to end for it end at the same time."""
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
        """Deliver waiting messages to running agents; a later supervisor delivers the rest."""
        if self._has_unheard():
            self._supervise(lambda: not self._has_unheard(), time.monotonic() + HEARD_SECONDS)

    def _has_unheard(self) -> bool:
        from fleet.domain.addressing import is_aside

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
        from fleet.operations.tasks.stop import StopRuns

        stopping: tuple[Stopping, ...] = self.call(StopRuns(self.app.home.host_id()))
        until = time.monotonic() + RUN_END_SECONDS
        while live := [r for s in stopping if (r := self.app.store.run(s.run)).live]:
            if time.monotonic() > until:
                raise _not_ended_yet(live[0])
            if not self._end_locally(live, until):
                self.app.store.wait(0.1)
        return stopping

    def start(self, tasks: Sequence[str], *, patience: float) -> list[str]:
        """Wait until each has begun its first turn, has ended, or shows a first-start question.

        Return those that have not begun.
        """
        until = time.monotonic() + patience
        rows = self.app.store.tasks_by_id(tasks).values()
        before = {task.id: task.tally.runs for task in rows if task.state is TaskState.OPEN}
        left = list(tasks)
        asking = FirstStarts(self.app.terminals.screens)

        def begun() -> bool:
            left[:] = [task for task in left if not self._has_begun(task, before.get(task, 0))]
            return asking.all_of(list(self._live(left)), of=len(left))

        while not begun() and time.monotonic() < until and not self._is_stuck(left):
            if not self._supervise(begun, until, only=left):
                self.app.store.wait(0.05)
        return left

    def _live(self, tasks: Sequence[str]) -> Iterator[str]:
        """Return the runs of those tasks whose program has started."""
        for task in self.app.store.tasks_by_id(tasks).values():
            if task.state is TaskState.RUNNING and task.spec.mode == Mode.TERMINAL:
                yield task.run_id

    def _is_stuck(self, tasks: Sequence[str]) -> bool:
        """Whether all of these tasks wait for something that only a person can change."""
        from fleet.operations.tasks.show import ShowTask

        waits = [self.call(ShowTask(task)).waits for task in tasks]
        return all(any(wait.code in STUCK for wait in one) for one in waits)

    def _has_begun(self, task_id: str, before: int) -> bool:
        """Whether the task's run has begun its first turn or has ended.

        `before`: the number of earlier runs, which do not count.
        """
        store = self.app.store
        task = store.task(task_id)
        if task.state is not TaskState.RUNNING:
            return task.tally.runs > before
        return self._has_begun_turn(task, store.run(task.run_id))

    def has_been_prompted(self, task_id: str) -> bool:
        """Whether the task's newest run began its first turn, even if it has ended since."""
        runs = self.app.store.runs(task_id)
        return bool(runs) and self._has_begun_turn(self.app.store.task(task_id), runs[-1])

    def _has_begun_turn(self, task: Task, run: Run) -> bool:
        if not task.prompt:
            return run.started_at > 0
        facts = self.app.store.events(task=task.id, limit=50, newest=True)
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

    def note_merged(self) -> None:
        if not (self.actor.run or self.app.home.supervisor_pid()):
            from fleet.app.supervisor_parts import note_merged

            note_merged(self.app)

    def land(self, settled: Callable[[], bool], *, patience: float) -> None:
        until = time.monotonic() + patience
        while not settled() and time.monotonic() < until:
            if self._supervise(settled, until, landing=True):
                return  # the rest needs an agent or a person
            self.app.store.wait(0.1)

    def _supervise(
        self,
        enough: Callable[[], bool],
        until: float,
        *,
        only: Sequence[str] = (),
        landing: bool = False,
    ) -> bool:
        """Supervise until `enough` or `until`; return False if another process has the lock."""
        from fleet.app.supervisor_parts import make_lander

        with self.app.home.alone() as locked:
            if not locked:
                return False
            self.app.arrive()
            try:
                supervisor = self.app.supervisor()
                supervisor.claiming, supervisor.only = bool(only), frozenset(only)
                supervisor.start()
                lander = make_lander(self.app, supervisor) if landing else None
                while time.monotonic() < until:
                    moved = supervisor.step()
                    if lander is not None:
                        lander.step()
                    if enough() and (lander is None or lander.has_cleared):
                        break
                    if lander is not None and lander.idle:
                        break
                    if only and supervisor.stuck.keys() >= set(only):
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
        from fleet.app.observe import observe
        from fleet.ports import Subject

        host = self.app.home.host_id()
        subjects = [
            Subject(r.run, r.coder, r.project, r.terminal, r.host == host, r.ended_at is None)
            for r in rows
            if r.run and r.ended_at is None
        ]
        lines = self.app.live_lines([s.run for s in subjects if s.here])
        seen = with_sights(rows, observe(self.app, subjects))
        sizes = lines()
        for row in seen:
            row["added"], row["removed"] = sizes.get(row["run"], (row["added"], row["removed"]))
        return seen

    def measured(self, rows: Sequence[TaskRow]) -> list[TaskRow]:
        live = [row.run.id for row in rows if row.run and row.run.ended_at is None]
        sizes = self.app.live_lines(live)()
        return [
            replace(row, run=replace(row.run, added=size[0], removed=size[1]))
            if row.run and (size := sizes.get(row.run.id))
            else row
            for row in rows
        ]

    def reconcile(self) -> None:
        """Settle runs that have ended or vanished, if no supervisor runs that would do it."""
        steps, until = iter(range(RECONCILE_STEPS)), time.monotonic() + RECONCILE_SECONDS

        def enough() -> bool:
            return next(steps, None) is None and time.monotonic() > until

        self._supervise(enough, time.monotonic() + RUN_END_SECONDS)

    def see_to(
        self, task_id: str, over: Callable[[], bool] = lambda: False, *, until: float = 0.0
    ) -> None:
        """Wait until the task's runs have ended; end this host's here if no supervisor runs.

        `over`: whether the caller has stopped waiting.
        """
        until = until or time.monotonic() + RUN_END_SECONDS
        while runs := self._to_end(task_id):
            if time.monotonic() > until or over():
                raise _not_ended_yet(runs[0])
            if not self._end_locally(runs, until):
                self.app.store.wait(0.1)

    def _to_end(self, task_id: str) -> list[Run]:
        """Return the runs of this task and of its children that were asked to end."""
        wanted = [run for run in self.app.store.live_runs() if run.wanted]
        return [run for run in wanted if task_id in self._lineage(run.task)]

    def _lineage(self, task_id: str) -> list[str]:
        lineage = []
        while task_id:
            lineage.append(task_id)
            task_id = self.app.store.task(task_id).parent
        return lineage

    def _end_locally(self, runs: list[Run], until: float) -> bool:
        """End this host's runs as a supervisor would; return False if one runs, which has to."""
        host = self.app.home.host_id()
        ours = [run.id for run in runs if run.host == host]
        if not ours:
            return False
        return self._supervise(lambda: not any(self.app.store.run(i).live for i in ours), until)


def _ask_signer(signer: Remote, operation: Operation, request: Request[Reply]) -> Reply:
    from fleet.client.remote import ask_by_pages

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
