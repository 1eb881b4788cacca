"""The application: one home as one process sees it, with the adapters that it needs."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.home.home import Home
from fleet.app.coders import make_coder
from fleet.app.store.open import check_backend, open_store, the_kind
from fleet.app.worlds import Worlds
from fleet.config.stores import files_of
from fleet.domain.errors import Forbidden

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
    from fleet.app.compute.machines import Glance, HostMachines
    from fleet.app.hosts.logins import HostLogins
    from fleet.app.observe import HostAgents
    from fleet.app.workspaces.manage import Workspaces
    from fleet.app.workspaces.operations import HostTrees
    from fleet.config import Loaded
    from fleet.config.settings import WorkspaceSettings
    from fleet.config.stores import StoreKind
    from fleet.domain.access import Actor
    from fleet.domain.fleet import Gateway
    from fleet.domain.run import Workspace
    from fleet.domain.task import Task
    from fleet.operations.catalogue import Context
    from fleet.ports import (
        AuditTrail,
        Coder,
        GateWorktrees,
        Launch,
        Merge,
        SeatedAt,
        Store,
    )
    from fleet.supervisor.supervisor import Supervisor

ISOLATED = "FLEET_ISOLATED"  # set for an agent that can reach neither the store nor a server


class App:
    """One process's view of one home. Each adapter is made when it is first used."""

    def __init__(
        self,
        cwd: Path,
        env: Mapping[str, str],
        config_file: Path | None = None,
        flags: Mapping[str, object] | None = None,
        *,
        listening: bool = False,
    ) -> None:
        """`listening`: this process is the supervisor, so it waits on the bell."""
        self.cwd, self.env = cwd, env
        self.config_file, self.flags = config_file, flags or {}
        self.listening = listening
        self._shared_glance: list[Glance] = []  # of this app and its copies

    def another(self, *, listening: bool | None = None) -> App:
        """Return an app of the same home with its own connections, for another thread."""
        listening = self.listening if listening is None else listening
        app = type(self)(self.cwd, self.env, self.config_file, self.flags, listening=listening)
        app._shared_glance = self._shared_glance  # noqa: SLF001  # of this class
        return app

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
        """Open another connection to the store, for the calling thread.

        After a store was deleted, a new task must not get the id of a run that is still here.
        """
        runs = str(self.home.runs)
        settings = self.loaded.settings.store
        check_backend(self.env, settings.url)
        store = open_store(
            settings.url,
            self.bell,
            taken=lambda name: os.path.exists(f"{runs}/{name}.1"),  # noqa: PTH110  # asked for every id
            schema=settings.schema,
            most=settings.pool_size,
            copies=self.home.path / "copies",
        )
        return self._placed(store) if self.shared else store

    def _placed(self, store: Store) -> Store:
        """Wrap a store so that each project's directory is the one on this machine."""
        from fleet.app.hosts.places import placed_store

        return placed_store(store, self.home, self.loaded)

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
        """Return the prefix of a run's command that isolates it, by the current settings."""
        isolation = self.isolation(self.worlds("").settings.workspace)
        return isolation.before(run_id, launch) if isolation else ()

    @property
    def isolates(self) -> bool:
        """Whether agents run isolated; then nothing of theirs may run outside of the isolation."""
        return self.worlds("").settings.workspace.isolation != "none"

    def isolation(self, settings: WorkspaceSettings) -> Isolation | None:
        """Return the isolation that the settings choose; None: agents run without one."""
        name, secrets = settings.isolation, self.secret_files()[1:]
        if name == "none":
            return None
        if name == "container":
            return self._container(settings, secrets)
        from fleet.adapters.isolation.bubblewrap import Bubblewrap
        from fleet.adapters.isolation.landlock import Landlock

        kind = {"bubblewrap": Bubblewrap, "landlock": Landlock}[name]
        return kind(self.home.path, secrets, self.env)

    def _container(self, settings: WorkspaceSettings, secrets: Sequence[Path]) -> Isolation:
        from fleet.adapters.isolation.caps import ContainerLimits
        from fleet.adapters.isolation.container import Contained, Container
        from fleet.config.keys.kinds import size_bytes

        written, wish = settings.limits, settings.container
        limits = ContainerLimits(size_bytes(written.memory) or 0, written.cpus, written.pids)
        container = Container(*wish, limits)
        return Contained.of(container, self.home.path, secrets, self.env)

    @property
    def settings_folder(self) -> Path:
        """The folder to which the path of a key's file in the settings is relative."""
        return self.folder_of(self.loaded)

    def folder_of(self, loaded: Loaded) -> Path:
        """Return that folder for the settings of a project."""
        return loaded.project_file.parent if loaded.project_file else self.home.path

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
        """Open the terminal to which this command attaches, for a client of the server."""
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
        """Return the full-text index of what agents said on this host."""
        from fleet.adapters.home.transcript_index import TranscriptIndex

        return TranscriptIndex(
            self.home.path / "search", lambda task: self.home.path / "tasks" / task
        )

    def audit_trail(self) -> AuditTrail:
        from fleet.adapters.home.audit_trail import FOLDER, AuditFiles

        size = self.loaded.settings.server.audit_mb * 1_000_000
        return AuditFiles(self.home.path / FOLDER, most=size)

    @property
    def glance(self) -> Glance:
        if not self._shared_glance:
            from fleet.app.compute.machines import Glance

            self._shared_glance.append(Glance())
        return self._shared_glance[0]

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
        """Return the file that keeps revocations apart from the store."""
        from fleet.adapters.home.revoked_file import RevokedFile

        return RevokedFile(self.home.path)

    def _sign(self, claims: dict[str, Any]) -> str:
        from fleet.app.token_keys import KeyRing, signed

        return signed(claims, KeyRing(self.home.path, self.env).signing())

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
            hooks=not self.isolates,
        )
        home = self.home
        return GitCheckout(
            home.worktrees,
            rules,
            ports=home.path / "ports.json",
            log=lambda task: home.path / "tasks" / task / "setup.log",
        )

    def live_lines(self, run_ids: Sequence[str]) -> Callable[[], dict[str, tuple[int, int]]]:
        """Begin to count the lines that these runs' worktrees added and removed.

        Return a function that waits for the counts. Git runs in threads, for this host's runs only.
        """
        if not run_ids:
            return dict
        from fleet.adapters.git.diff.size import LiveLines, WorkSpan

        host = self.home.host_id()
        runs = [run for run in self.store.runs_by_id(run_ids).values() if run.host == host]
        tasks = self.store.tasks_by_id([run.task for run in runs])
        return LiveLines(
            {
                run.id: WorkSpan(run.task, run.workspace, self._brought(tasks[run.task]))
                for run in runs
                if run.workspace is not None
            }
        ).result

    def _brought(self, task: Task) -> tuple[Merge, ...]:
        """Return the work of other tasks that was merged into the task's worktree at its start."""
        if not task.after:
            return ()
        from fleet.supervisor.attempt.site import merges_of

        return merges_of(self.store, task.after, task.project)

    def workspace_env(self, project: str, workspace: Workspace) -> dict[str, str]:
        """What a workspace adds to the environment of its coder and of its gate."""
        return self.checkout(project).env(workspace)

    def gateway_key(self, gateway: Gateway) -> str:
        """Return the key from the environment, else from the home; empty when there is none yet."""
        from fleet.adapters.gateway.key import key_of

        return key_of(gateway, self.home.path, self.env)

    def supervisor(self, *, coder: str = "", max_concurrent: int = 0) -> Supervisor:
        from fleet.app.supervisor_parts import make_supervisor

        return make_supervisor(self, coder=coder, max_concurrent=max_concurrent)

    @property
    def workspaces(self) -> Workspaces:
        """Listing, merging, removing and repairing workspaces."""
        from fleet.app.workspaces.manage import Workspaces

        return Workspaces(self)

    @cached_property
    def forges(self) -> HostForges:
        from fleet.adapters.forges.forges import HostForges

        return HostForges(self.env, lambda: self.worlds("").settings.forge.hosts)

    def hook_secret(self, forge: str) -> str:
        """Return the secret that signs this forge's events; empty: its events are refused."""
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
