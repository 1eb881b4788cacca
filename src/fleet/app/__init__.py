"""The only package that chooses adapters."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.home.home import Home
from fleet.app.coders import make_coder, preload, probe_programs
from fleet.app.stores import check_backend, open_store, the_kind
from fleet.app.worlds import Worlds
from fleet.config.stores import files_of
from fleet.domain.access import Actor, Role
from fleet.domain.errors import BadInput, Forbidden, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fleet.adapters.forges.forges import HostForges
    from fleet.adapters.git.checkout import GitCheckout
    from fleet.adapters.home.bell import Bell
    from fleet.adapters.home.revoked_file import RevokedFile
    from fleet.adapters.home.task_folder import FolderFiles
    from fleet.adapters.home.transcript_index import TranscriptIndex
    from fleet.adapters.isolation.isolation import Isolation
    from fleet.adapters.machine.installation import Installation
    from fleet.adapters.processes.keepers import Keepers
    from fleet.adapters.processes.supervisor_process import SupervisorProcess
    from fleet.adapters.tmux.terminals import Terminals
    from fleet.app.archive import Archived
    from fleet.app.compute.machines import Glance, HostMachines
    from fleet.app.hosts.logins import HostLogins
    from fleet.app.observe import HostAgents
    from fleet.app.retention import OldHistory, OldKept, OldTranscripts
    from fleet.app.store_copy import Copied
    from fleet.app.store_schema import Schema
    from fleet.app.workspaces.manage import Workspaces
    from fleet.app.workspaces.operations import HostTrees
    from fleet.config import Loaded
    from fleet.config.settings import WorkspaceSettings
    from fleet.config.stores import StoreKind
    from fleet.domain.fleet import Gateway
    from fleet.domain.run import Choice, Workspace
    from fleet.domain.task import Spec, Task
    from fleet.operations.catalogue import Context
    from fleet.ports import (
        AuditTrail,
        Branches,
        Coder,
        GateWorktrees,
        Launch,
        Notifier,
        SeatedAt,
        Store,
    )
    from fleet.supervisor.beads.exchange import Beads
    from fleet.supervisor.landing.lander import Lander
    from fleet.supervisor.notices import Notices
    from fleet.supervisor.supervisor import Supervisor
    from fleet.supervisor.tickets import TicketReports

__all__ = ["ISOLATED", "App", "Worlds", "make_coder", "open_store", "preload", "probe_programs"]

ISOLATED = "FLEET_ISOLATED"  # in an agent that cannot open the store, and has no server to ask


@dataclass
class App:
    """One process's view of one home. Each adapter is made when it is first used."""

    cwd: Path
    env: Mapping[str, str]
    config_file: Path | None = None
    flags: Mapping[str, object] = field(default_factory=dict)
    listening: bool = False  # this process is the supervisor, which the bell wakes
    shared_glance: list[Glance] = field(default_factory=list)  # of this app and its copies

    @cached_property
    def home(self) -> Home:
        from fleet.config import home

        return Home(home(self.env))

    @cached_property
    def loaded(self) -> Loaded:
        """The settings for the person who typed the command, in the current directory."""
        from fleet.config import load

        return load(
            self.cwd, home=self.home.path, env=self.env, flags=self.flags,
            config_file=self.config_file,
        )  # fmt: skip

    @cached_property
    def worlds(self) -> Worlds:
        return Worlds(self)

    @cached_property
    def bell(self) -> Bell:
        from fleet.adapters.home.bell import Bell

        bell = Bell(self.home.bell)
        if self.listening:
            self.home.ensure()
            bell.listen()
        return bell

    @cached_property
    def store(self) -> Store:
        return self.another_store()

    def another_store(self) -> Store:
        """A connection of its own, for the calling thread.

        After a store was deleted, a new task must not get the id of a run that is still here.
        """
        runs = str(self.home.runs)
        settings = self.loaded.settings.store
        check_backend(self.env, settings.url)
        return open_store(
            settings.url,
            self.bell,
            taken=lambda name: os.path.exists(f"{runs}/{name}.1"),  # noqa: PTH110  # asked for every id
            schema=settings.schema,
            most=settings.pool_size,
            copies=self.home.path / "copies",
        )

    @cached_property
    def keepers(self) -> Keepers:
        from fleet.adapters.processes.keepers import Keepers

        root = self.daemon.keep_code() if self.listening else None
        return Keepers(
            self.home.runs,
            bell=self.home.bell,
            root=root,
            terminals=self.terminals,
            before=self._before,
        )

    def _before(self, run_id: str, launch: Launch) -> tuple[str, ...]:
        """The words in front of a run's command that isolate it, by the settings as they are now."""
        isolation = self.isolation(self.worlds("").settings.workspace)
        return isolation.before(run_id, launch) if isolation else ()

    def isolation(self, settings: WorkspaceSettings) -> Isolation | None:
        """What the setting stands for; None: agents run as any program of the user."""
        name, secrets = settings.isolation, self.secret_files()[1:]
        if name == "none":
            return None
        if name == "container":
            return self._container(settings, secrets)
        from fleet.adapters.isolation.bubblewrap import Bubblewrap
        from fleet.adapters.isolation.landlock import Landlock

        made = {"bubblewrap": Bubblewrap, "landlock": Landlock}[name]
        return made(self.home.path, secrets, self.env)

    def _container(self, settings: WorkspaceSettings, secrets: Sequence[Path]) -> Isolation:
        from fleet.adapters.isolation.caps import Limits
        from fleet.adapters.isolation.container import Contained, Container
        from fleet.config.keys.kinds import size_bytes

        written, wanted = settings.limits, settings.container
        limits = Limits(size_bytes(written.memory) or 0, written.cpus, written.pids)
        container = Container(*wanted, limits)
        return Contained.of(container, self.home.path, secrets, self.env)

    def secret_files(self) -> list[Path]:
        """The key that signs tokens, then the files of the store."""
        store = files_of(self.loaded.settings.store.url)
        return [self.home.path / "server.key", *map(Path, store)]

    @cached_property
    def terminals(self) -> Terminals:
        from fleet.adapters.tmux.terminals import Terminals
        from fleet.adapters.tmux.tmux import Tmux

        tmux = Tmux(self.home.path, prefix=self.loaded.settings.tmux.prefix)
        return Terminals(self.home.runs, tmux)

    def seat(self, argv: Sequence[str], size: tuple[int, int]) -> SeatedAt:
        """At the terminal to which this command attaches, for somebody who is not at this machine."""
        from fleet.adapters.processes.pty import Pty

        return Pty(argv, size)

    def attach_argv(self, run_id: str) -> list[str]:
        """The command that attaches to the run's terminal; raise `Unavailable` when it has none."""
        return self.terminals.attach_argv(run_id, self.env)

    def close_terminals(self, task_id: str) -> None:
        """Close the tmux sessions of its ended runs; the text of their screens is kept."""
        for run in self.store.runs(task_id):
            self.terminals.kill(run.id)

    @cached_property
    def daemon(self) -> SupervisorProcess:
        from fleet.adapters.processes.supervisor_process import SupervisorProcess

        return SupervisorProcess(self.home)

    @cached_property
    def files(self) -> FolderFiles:
        from fleet.adapters.home.task_folder import FolderFiles
        from fleet.adapters.processes.clock import SystemClock
        from fleet.operations.messages import qa_file

        return FolderFiles(
            self.home.path,
            self.store,
            SystemClock(),
            coder=make_coder,
            qa=qa_file,
            env=self.env,
            index=lambda: self.transcript_index,
        )

    @property
    def shared(self) -> bool:
        """Whether other hosts may use this store; then keepers have leases."""
        return self.store_kind.shared

    @property
    def store_kind(self) -> StoreKind:
        """Raise `BadInput` when there is no such kind."""
        return the_kind(self.loaded.settings.store.url)

    def arrive(self) -> str:
        """Call it before a supervisor starts here, for one command or for long.

        Return what a person should know of it.
        """
        news = ""
        if self.shared:
            from fleet.adapters.processes.clock import SystemClock
            from fleet.app.own_host import settle_host
            from fleet.supervisor.leases import shorten

            news = settle_host(self.home, self.store)
            host, lease = self.home.host_id(), self.loaded.settings.store.lease
            shorten(self.store, self.keepers, SystemClock(), host, lease)
        if not self.listening:
            self.bell.listen()
        return news

    def leave(self, *, by_person: bool = True) -> None:
        """Call it after the supervisor has ended; agents go on."""
        if not self.listening:
            self.bell.close()
        if self.shared:
            from fleet.adapters.processes.clock import SystemClock
            from fleet.domain.hosts.lease import AWAY
            from fleet.supervisor.leases import extend

            lease = AWAY if by_person else self.loaded.settings.store.lease
            extend(self.store, self.keepers, SystemClock(), self.home.host_id(), lease)

    def let_agents_go_on(self) -> None:
        """Call it when a person has stopped the supervisor, which ended as if its machine did."""
        if not self.shared:
            return
        with self.home.alone() as locked:
            if locked:
                self.leave()

    def notifiers(self) -> list[Notifier]:
        """By the settings as they are now."""
        from fleet.adapters.machine.notify import CHANNELS

        notify = self.worlds("").settings.notify
        values = ((make, getattr(notify, name)) for name, make in CHANNELS.items())
        return [make(value, self.env) for make, value in values if value]

    def notices(self, warn: Callable[[str], None]) -> Notices:
        from fleet.adapters.machine.notify import NumberFile
        from fleet.domain.redaction import Redactor, secret_values
        from fleet.supervisor.notices import Notices

        return Notices(
            self.store,
            host=self.home.host_id(),
            settings=lambda: self.worlds("").settings,
            notifiers=self.notifiers,
            mark=NumberFile(self.home.path / "notified"),
            warn=warn,
            clean=Redactor(secret_values(self.env)).text,
        )

    def ticket_reports(self, warn: Callable[[str], None]) -> TicketReports:
        from fleet.adapters.machine.notify import NumberFile
        from fleet.adapters.processes.threads import ThreadJobs
        from fleet.supervisor.tickets import TicketReports

        return TicketReports(
            self.store,
            host=self.home.host_id(),
            comment=self.forges.tickets.comment,
            jobs=ThreadJobs(self.bell),
            mark=NumberFile(self.home.path / "tickets-told"),
            warn=warn,
        )

    def beads(self, warn: Callable[[str], None]) -> Beads:
        """For `queue: beads`; the supervisor does not step it while that is not set."""
        from fleet.adapters.beads import BdProgram
        from fleet.adapters.machine.notify import NumberFile
        from fleet.adapters.processes.threads import ThreadJobs
        from fleet.config import checkout_top, find_project
        from fleet.operations.catalogue import perform
        from fleet.supervisor.beads.exchange import Beads

        name = f"fleet-{self.home.host_id()}"
        actor = Actor(name, Role.COORDINATOR, self.loaded.settings.team)
        context = self.context._replace(actor=actor)

        def places(cwd: Path) -> dict[str, str]:
            top = str(checkout_top(cwd) or "")
            return {"project": str(find_project(cwd) or cwd), "checkout": top}

        return Beads(
            self.store,
            BdProgram(self.home.path, self.env, actor=name, places=places),
            name=name,
            call=lambda request: perform(context, request),
            jobs=ThreadJobs(self.bell),
            mark=NumberFile(self.home.path / "beads-told"),
            room=lambda: self.worlds("").settings.max_concurrent,
            warn=warn,
        )

    def installation(self) -> Installation:
        from fleet.adapters.machine.installation import installation

        return installation()

    def newest_release(self) -> str:
        """Raise `Unavailable` when the package index does not answer."""
        from fleet.adapters.machine.installation import newest

        return newest(self.installation(), self.env)

    def is_newer(self, one: str, other: str) -> bool:
        from fleet.adapters.machine.installation import order

        return order(one) > order(other)

    @cached_property
    def actor(self) -> Actor:
        """Inside a run: the run; else the person."""
        run = self.env.get("FLEET_RUN_ID", "")
        team = self.loaded.settings.team
        if not run:
            from fleet.app.identity import person

            return person(self.env, team)
        if not self.home.is_token(run, self.env.get("FLEET_RUN_TOKEN", "")):
            raise Forbidden(
                f"FLEET_RUN_TOKEN is not the token of {run}, the run in FLEET_RUN_ID.",
                fix="Unset FLEET_RUN_ID, or run this inside the agent's own shell.",
                code="bad_token",
            )
        from fleet.app.run_identity import actor_of

        return actor_of(self, run)

    @cached_property
    def context(self) -> Context:
        from fleet.operations.catalogue import Context

        project = str(self.loaded.project or "")
        return Context(
            self.actor,
            self.store,
            self._transcripts,
            self.worlds,
            project=project,
            edited=lambda task: self.files.edited(task),  # noqa: PLW0108  # made when it is called
            sign=self._sign,
            token_seconds=self.loaded.settings.server.token_days * 86400,
            revoked=lambda revocations: self.revoked_file().add(revocations),
            trees=self._trees,
            audit=self.audit_trail,
            agents=self._agents,
            machines=self._machines,
            logins=self._logins,
        )

    def _transcripts(self) -> Keepers:
        self.keepers.passages = self.transcript_index
        return self.keepers

    @cached_property
    def transcript_index(self) -> TranscriptIndex:
        """What agents said on this host, by its words."""
        from fleet.adapters.home.transcript_index import TranscriptIndex

        return TranscriptIndex(
            self.home.path / "search", lambda task: self.home.path / "tasks" / task
        )

    def copy_store(
        self, source: str, target: str, *, force: bool, progress: Callable[[str, int], None]
    ) -> Copied:
        from fleet.app.store_copy import copy_between

        return copy_between(self, source, target, force=force, progress=progress)

    def store_schema(self, *, migrate: bool = False) -> tuple[Schema, str, str]:
        """The store's schema, what that means, and the next step."""
        from fleet.app.store_schema import look_at, sentence

        if migrate and look_at(self).is_behind:
            self.another_store().close()
        schema = look_at(self)
        return (schema, *sentence(schema))

    def back_up(self, target: Path) -> int:
        """Copy the store into a new file; the bytes of the copy. Raise `Refused` for a server's."""
        from fleet.domain.errors import Refused

        kind = self.store_kind
        if not kind.copies:
            raise Refused(
                f"The store is {kind.name}, which has its own program for backups.", fix=kind.dumps
            )
        module, _, name = kind.copies.partition(":")
        copied: int = getattr(import_module(module), name)(self.loaded.settings.store.url, target)
        return copied

    def restore(self, copy: Path) -> Path | None:
        """Put a copy in the place of the store; where that is now, if there was one.

        Raise `Refused` while a supervisor or a server of this home runs: they remember what it was.
        """
        from fleet.app.server_process import serving_pid
        from fleet.domain.errors import Refused

        kind = self.store_kind
        if not kind.restores:
            raise Refused(
                f"The store is {kind.name}, which has its own program to restore a backup.",
                fix=kind.loads or kind.dumps,
            )
        if serving_pid(self.home.path):
            raise Refused("This home's server is running.", fix="Stop it first: fleet serve --stop")
        module, _, name = kind.restores.partition(":")
        put_back = getattr(import_module(module), name)
        stamp = f"{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() // 1000 % 1_000_000:06}"
        aside = self.home.path / f"fleet-{stamp}.before-restore.db"
        with self.home.alone() as is_alone:
            if not is_alone:
                raise Refused(
                    "This home's supervisor is running.", fix="Stop it first: fleet run stop"
                )
            was_there = put_back(copy, self.loaded.settings.store.url, aside)
        return aside if was_there else None

    def old_transcripts(self) -> OldTranscripts:
        from fleet.app.retention import OldTranscripts

        days = self.loaded.settings.retention.transcripts
        return OldTranscripts(self.keepers, self.home.runs, self.store, days)

    def old_history(self) -> OldHistory:
        from fleet.app.retention import OldHistory

        days = self.loaded.settings.retention
        return OldHistory(self.store, events=days.events or None, tasks=days.tasks or None)

    def archive(self, file: Path, *, days: float | None, prune: bool) -> Archived:
        from fleet.app.archive import write_archive

        days = self.loaded.settings.retention.tasks or None if days is None else days
        if days is None:
            raise BadInput("`retention.tasks` is 0: nothing is ever old.", fix="Give --days N.")
        return write_archive(self.store, file, days=days, prune=prune)

    def old_kept(self) -> OldKept:
        from fleet.app.retention import OldKept

        return OldKept(self.store, self.loaded.settings.retention.kept, self.home.worktrees)

    def audit_trail(self) -> AuditTrail:
        from fleet.adapters.home.audit_trail import FOLDER, AuditFiles

        size = self.loaded.settings.server.audit_mb * 1_000_000
        return AuditFiles(self.home.path / FOLDER, most=size)

    @property
    def glance(self) -> Glance:
        if not self.shared_glance:
            from fleet.app.compute.machines import Glance

            self.shared_glance.append(Glance())
        return self.shared_glance[0]

    def _machines(self) -> HostMachines:
        from fleet.app.compute.machines import HostMachines

        return HostMachines(self)

    def _logins(self) -> HostLogins:
        from fleet.app.hosts.logins import HostLogins

        return HostLogins(self)

    def _agents(self) -> HostAgents:
        from fleet.app.observe import HostAgents

        return HostAgents(self)

    def _trees(self) -> HostTrees:
        from fleet.app.workspaces.operations import HostTrees

        return HostTrees(self)

    def revoked_file(self) -> RevokedFile:
        """What is revoked, apart from the store."""
        from fleet.adapters.home.revoked_file import RevokedFile

        return RevokedFile(self.home.path)

    def _sign(self, claims: dict[str, Any]) -> str:
        from fleet.app.server_process import KeyRing, signed

        return signed(claims, KeyRing(self.home.path, self.env).signing())

    def coder_env(self, task_id: str, run_id: str) -> dict[str, str]:
        """The environment of a coder: ours, without our secrets and what an outer agent left."""
        from fleet.adapters.home.bd_program import bd_folder
        from fleet.app.run_identity import server_env
        from fleet.supervisor.attempt.environment import inherited

        folder, server = self.home.task_dir(task_id), server_env(self, run_id)
        passed = self.worlds("").settings.run.env
        store_url = self.loaded.settings.store.url
        needs_store = self.shared and not server
        env = inherited(self.env, store_url="" if needs_store else store_url, passed=passed)
        folders = (bd_folder(self.home.path), Path(sys.executable).parent)
        path = os.pathsep.join([*map(str, folders), env.get("PATH", os.defpath)])
        return env | {
            "PATH": path,
            "FLEET_HOME": str(self.home.path),
            "FLEET_TASK_ID": task_id,
            "FLEET_TASK_DIR": str(folder),
            "FLEET_ARTIFACT_DIR": str(folder / "artifacts"),
            "FLEET_RUN_ID": run_id,
            "FLEET_RUN_TOKEN": self.home.run_token(run_id),
            **server,
            **self._commands_env(server),
        }

    def _commands_env(self, server: Mapping[str, str]) -> dict[str, str]:
        """How an agent's own `fleet` commands reach the server when they cannot open the store."""
        isolated = self.worlds("").settings.workspace.isolation != "none"
        if isolated and not server:
            return {ISOLATED: "1"}
        if not server or not (isolated or self.shared):
            return {}
        url = server["FLEET_RUN_SERVER"].removesuffix("/mcp")
        return {"FLEET_URL": url, "FLEET_TOKEN": server["FLEET_RUN_BEARER"]}

    def coder(self, name: str, project: str = "") -> Coder:
        """A built-in coder, else as this project declares it."""
        from fleet.domain.fleet import CODERS

        return make_coder(name, None if name in CODERS else self.worlds(project).fleet)

    def checkout(self, project: str) -> GitCheckout:
        from fleet.adapters.git.checkout import GitCheckout, WorkspaceRules

        settings = self.worlds(project).settings.workspace
        rules = WorkspaceRules(
            root=str(settings.root),
            branch_prefix=settings.branch_prefix,
            credential_files=settings.credential_files,
            setup=() if settings.quick else settings.setup,
            setup_timeout=settings.setup_timeout,
            setup_cache=settings.setup_cache,
            branch_pattern=settings.branch_pattern,
            teardown=settings.teardown,
            ports=settings.ports,
            pool=settings.pool,
            pool_ignored=settings.pool_ignored,
        )
        home = self.home
        return GitCheckout(
            home.worktrees,
            rules,
            ports=home.path / "ports.json",
            log=lambda task: home.path / "tasks" / task / "setup.log",
        )

    def check_start(self, spec: Spec, project: str, after: Sequence[str] = ()) -> None:
        """Check that a task can have its workspace, before it is queued; raise what is wrong.

        `after`: the ids of the tasks it waits for. What they leave is known once all are done.
        """
        from fleet.adapters.git.repo import Repo
        from fleet.domain.task import TaskState
        from fleet.supervisor.attempt.site import merges_of

        cwd = spec.cwd or project
        checkout, repo = self.checkout(project), Repo.of(Path(cwd))
        if spec.branch:
            exists = checkout.check_branch(repo, spec.branch)
            self._check_free(spec.branch, project, exists=exists)
        self.check_base(cwd, spec.base)
        needs = self.store.tasks_by_id(after).values() if after else ()
        done = all(need.state is TaskState.DONE for need in needs)
        merges = merges_of(self.store, after, project) if done else ()
        checkout.check_merges(repo, spec.base, merges)

    def _check_free(self, branch: str, project: str, *, exists: bool) -> None:
        """Raise `Refused` when the branch exists, or a task that has not ended asked for it."""
        from fleet.domain.task import ENDED
        from fleet.ports import TaskQuery

        tasks = self.store.tasks(TaskQuery(project=project, branches=(branch,)))
        task = next((task for task in tasks if task.state not in ENDED), None)
        if task is not None:
            raise Refused(
                f"{task.id} already works on the branch {branch}.",
                fix=f"Use it with fleet attach {branch} or fleet prompt {branch}, or end it with fleet kill "
                f"{branch}. For another agent, choose another name.",
                code="branch_taken",
            )
        if exists:
            raise Refused(
                f"There is already a branch {branch}.",
                fix=f"Choose another name; --base {branch} starts from it. Or delete it, if it is "
                f"merged: git branch -d {branch}",
                code="branch_taken",
            )

    def check_base(self, cwd: str, base: str) -> None:
        """Raise `BadInput` when the repository there has no such commit; empty: none is named."""
        from fleet.adapters.git.repo import Repo

        repo = Repo.of(Path(cwd))
        if base and not repo.has_commit(base):
            raise BadInput(
                f"There is no commit '{base}' in {repo.top} to start from.",
                fix="Name a branch, a tag or a commit: `git branch --all` lists branches.",
                code="no_commit",
            )

    def live_lines(self, run_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
        """How many lines the worktrees of these runs of this host have added and removed."""
        if not run_ids:
            return {}
        from fleet.adapters.git.diff.size import Work, live_lines
        from fleet.supervisor.attempt.site import merges_of

        works = {}
        for run in self.store.runs_by_id(run_ids).values():
            if run.workspace is not None:
                task = self.store.task(run.task)
                brought = merges_of(self.store, task.after, task.project)
                works[run.id] = Work(task.id, run.workspace, brought)
        return live_lines(works)

    def uncommitted(self, cwd: str) -> int:
        """How many tracked files differ there from HEAD."""
        from fleet.adapters.git.repo import uncommitted

        return uncommitted(Path(cwd))

    def check_gateway(self, spec: Spec, project: str) -> None:
        """Raise `Unavailable` when its model is one of ours and the gateway does not answer."""
        from urllib.parse import urlsplit

        from fleet.adapters.machine.doctor_checks import is_taken
        from fleet.domain.fleet import url_of
        from fleet.operations.shared.choice import choose_in
        from fleet.supervisor.attempt.launch import gateway_of

        world = self.worlds(project)
        _, choice = choose_in(world, spec)
        gateway = gateway_of(world.fleet, choice)
        if gateway is None:
            return
        address = urlsplit(url_of(gateway))
        if not is_taken(gateway.port, address.hostname or ""):
            raise Unavailable(
                f"The gateway at {address.geturl()} does not answer, so {choice.agent} could not"
                f" reach its model {choice.model}.",
                fix="Start it: fleet up",
                code="no_gateway",
            )

    def check_program(self, spec: Spec, project: str) -> None:
        """Raise `Refused` when the program of its coder is not on PATH."""
        from fleet.domain.errors import Refused
        from fleet.operations.shared.choice import choose_in

        _, choice = choose_in(self.worlds(project), spec)
        if program := self.missing_program(choice, project):
            raise Refused(
                f"{program} is not on PATH.",
                fix=f"Install {program}, or choose another agent: `fleet coders` lists the coders.",
                code="no_program",
            )

    def missing_program(self, choice: Choice, project: str) -> str:
        """The program that its coder runs, if that is not on PATH; one in the worktree may come."""
        import shutil

        from fleet.adapters.coders.shared.programs import executable

        command = self.worlds(project).fleet.agent(choice.agent).command
        program = command[0] if command else executable(self.coder(choice.coder, project))
        if not program or ("/" in program and not program.startswith("/")):
            return ""
        path = os.pathsep.join([str(Path(sys.executable).parent), self.env.get("PATH", os.defpath)])
        return "" if shutil.which(program, path=path) else program

    def workspace_env(self, project: str, workspace: Workspace) -> dict[str, str]:
        """What a workspace adds to the environment of its coder and of its gate."""
        return self.checkout(project).env(workspace)

    def gateway_key(self, gateway: Gateway) -> str:
        """The key from the environment, else the one we made; empty when there is none yet."""
        from fleet.adapters.gateway.key import key_of

        return key_of(gateway, self.home.path, self.env)

    @property
    def workspaces(self) -> Workspaces:
        """Listing, merging, removing and repairing workspaces."""
        from fleet.app.workspaces.manage import Workspaces

        return Workspaces(self)

    def lander(self, supervisor: Supervisor) -> Lander:
        from fleet.supervisor.landing.lander import Lander
        from fleet.supervisor.landing.parts import LandingParts

        def is_here(repository: str) -> bool:
            return os.path.isdir(repository)  # noqa: PTH112  # asked in every step

        def clearing(task: Task) -> Callable[[], None]:
            clear = self.workspaces.clearing(task)

            def act() -> None:
                clear()

            return act

        more = LandingParts(
            branches=_branches,
            gate_worktrees=self.gate_worktrees,
            gate_env=self.gate_env,
            forge=self.forges.of,
            is_here=is_here,
            clearing=clearing,
            is_uncleared=self.workspaces.has_worktree,
        )
        return Lander(supervisor.parts, supervisor.here, more)

    def note_merged(self) -> None:
        """Note work that a person merged with git: a supervisor that runs here does it itself."""
        from fleet.supervisor.landing.landed_elsewhere import note_merged

        note_merged(self.store, self.home.host_id(), _branches)

    @cached_property
    def forges(self) -> HostForges:
        from fleet.adapters.forges.forges import HostForges

        return HostForges(self.env, lambda: self.worlds("").settings.forge.hosts)

    def hook_secret(self, forge: str) -> str:
        """What this forge signs its events with; empty: its events are not taken."""
        from fleet.adapters.nodes.key import key_of

        pairs = (pair.partition("=") for pair in self.loaded.settings.hooks.secrets)
        secrets = {name.strip(): reference.strip() for name, _, reference in pairs}
        return key_of(secrets.get(forge, ""), self.env, self.home.path)

    def gate_worktrees(self, project: str) -> GateWorktrees:
        from fleet.adapters.git.landing.gate_worktrees import GitGateWorktrees
        from fleet.adapters.git.repo import Repo, digest

        repo = Repo.of(Path(project))
        folder = self.home.path / "gates" / digest(str(repo.common))
        top, path = repo.top.resolve(), Path(project).resolve()
        within = str(path.relative_to(top)) if path.is_relative_to(top) else ""
        log = folder / "setup.log"
        return GitGateWorktrees(repo, folder, self.checkout(project).rules, within=within, log=log)

    def gate_env(self, project: str) -> dict[str, str]:
        """The environment of a gate that tests what is about to land: no keys, no run."""
        from fleet.supervisor.attempt.environment import NO_KEYS, for_coder, inherited

        passed = self.worlds(project).settings.run.env
        store_url = self.loaded.settings.store.url
        return for_coder(
            inherited(self.env, store_url=store_url, passed=passed), NO_KEYS, passed=passed
        )

    def gate_environment(self, project: str) -> tuple[str, ...]:
        """What a gate's result depends on besides the tree, the command and the set-up."""
        settings = self.worlds(project).settings
        names = sorted({*settings.run.env, *settings.land.environment})
        system = os.uname()
        values = (f"{name}={self.env.get(name, '')}" for name in names)
        return (system.sysname, system.machine, *values)

    def supervisor(self, *, coder: str = "", max_concurrent: int = 0) -> Supervisor:
        import random

        from fleet import __version__
        from fleet.adapters.coders import built_in
        from fleet.adapters.home.home import boot
        from fleet.adapters.nodes.pulse import NodePulses
        from fleet.adapters.processes.clock import SystemClock
        from fleet.adapters.processes.threads import ThreadJobs
        from fleet.base.machine import SYSTEM
        from fleet.domain.hosts.lease import ALONE
        from fleet.supervisor.parts import Here, Parts
        from fleet.supervisor.supervisor import Supervisor

        host = self.home.host_id()
        parts = Parts(
            store=self.store,
            launcher=self.keepers,
            transcripts=self.keepers,
            clock=SystemClock(),
            jobs=ThreadJobs(self.bell),
            quick=ThreadJobs(self.bell),
            coder=self.coder,
            world=self.worlds,
            checkout=self.checkout,
            task_dir=self.home.task_dir,
            env=self.coder_env,
            workspace_env=self.workspace_env,
            gateway_key=self.gateway_key,
            provider_keys=lambda coder: built_in(coder).keys,
            jitter=random.random,
            files=self.files,
            nodes=NodePulses(self.bell.ring_self, self.home.path),
            terminal=self.terminals,
            missing_program=self.missing_program,
            gate_environment=self.gate_environment,
            is_here=os.path.isdir,
            ahead=self.home.ahead,
        )
        holder = os.urandom(8).hex()
        if self.shared:
            from fleet.adapters.home.host_identity import HostIdentity

            HostIdentity(self.home).note(holder)
        here = Here(
            host=host,
            name=host.rpartition("-")[0],
            boot=boot(),
            holder=holder,
            coder=coder,
            max_concurrent=max_concurrent,
            shared=self.shared,
            lease=self.loaded.settings.store.lease if self.shared else ALONE,
            labels=(SYSTEM, *self.loaded.settings.host.labels),
            release=__version__,
        )
        return Supervisor(parts, here)


def _branches(repository: str, remote: str) -> Branches:
    from fleet.adapters.git.landing.branches import GitBranches, RemoteBranches
    from fleet.adapters.git.repo import Repo

    repo = Repo.at(Path(repository))
    return RemoteBranches(repo, remote) if remote else GitBranches(repo)
