"""The only package that chooses adapters."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.home.home import Home
from fleet.app.coders import make_coder, preload, probe_programs
from fleet.app.stores import check_backend, open_store
from fleet.app.worlds import Worlds
from fleet.config.stores import kind_of
from fleet.domain.access import Actor, Role
from fleet.domain.errors import BadInput, Forbidden, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fleet.adapters.git.checkout import GitCheckout
    from fleet.adapters.home.bell import Bell
    from fleet.adapters.home.revoked_file import RevokedFile
    from fleet.adapters.home.task_folder import FolderFiles
    from fleet.adapters.isolation.bubblewrap import Bubblewrap
    from fleet.adapters.machine.installation import Installation
    from fleet.adapters.processes.keepers import Keepers
    from fleet.adapters.processes.supervisor_process import SupervisorProcess
    from fleet.adapters.tmux.terminals import Terminals
    from fleet.app.workspaces.manage import Workspaces
    from fleet.app.workspaces.operations import HostTrees
    from fleet.config import Loaded
    from fleet.domain.fleet import Gateway
    from fleet.domain.run import Workspace
    from fleet.domain.task import Spec
    from fleet.operations.catalogue import Context
    from fleet.ports import AuditTrail, Coder, Launch, Notifier, Store
    from fleet.supervisor.beads.exchange import Beads
    from fleet.supervisor.notices import Notices
    from fleet.supervisor.supervisor import Supervisor

__all__ = ["App", "Worlds", "make_coder", "open_store", "preload", "probe_programs"]


@dataclass
class App:
    """One process's view of one home. Each adapter is made when it is first used."""

    cwd: Path
    env: Mapping[str, str]
    config_file: Path | None = None
    flags: Mapping[str, object] = field(default_factory=dict)
    listening: bool = False  # this process is the supervisor, which the bell wakes

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
        if self.worlds("").settings.isolation == "none":
            return ()
        return self.bubblewrap().before(run_id, launch)

    def bubblewrap(self) -> Bubblewrap:
        from fleet.adapters.isolation.bubblewrap import Bubblewrap

        return Bubblewrap(self.home.path, self.secret_files()[1:], self.env)

    def secret_files(self) -> list[Path]:
        """The key that signs tokens, then the files of the store."""
        url = self.loaded.settings.store.url
        store = Path(url.removeprefix("sqlite://")) if url.startswith("sqlite://") else None
        files = [store, *(Path(f"{store}{end}") for end in ("-wal", "-shm"))] if store else []
        return [self.home.path / "server.key", *files]

    @cached_property
    def terminals(self) -> Terminals:
        from fleet.adapters.tmux.terminals import Terminals
        from fleet.adapters.tmux.tmux import Tmux

        tmux = Tmux(self.home.path, prefix=self.loaded.settings.tmux.prefix)
        return Terminals(self.home.runs, tmux)

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
            self.home.path, self.store, SystemClock(), coder=make_coder, qa=qa_file, env=self.env
        )

    @property
    def shared(self) -> bool:
        """Whether other hosts may use this store; then keepers have leases."""
        kind = kind_of(self.loaded.settings.store.url)
        return kind is not None and kind.shared

    def arrive(self) -> None:
        """Call it before a supervisor starts here, for one command or for long."""
        if self.shared:
            from fleet.adapters.processes.clock import SystemClock
            from fleet.supervisor.leases import shorten

            shorten(self.store, self.keepers, SystemClock(), self.home.host_id())
        if not self.listening:
            self.bell.listen()

    def leave(self) -> None:
        """Call it after the supervisor has ended; agents go on."""
        if not self.listening:
            self.bell.close()
        if self.shared:
            from fleet.adapters.processes.clock import SystemClock
            from fleet.supervisor.leases import extend

            extend(self.store, self.keepers, SystemClock(), self.home.host_id())

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

        return newest(self.env)

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
            lambda: self.keepers,
            self.worlds,
            project=project,
            edited=lambda task: self.files.edited(task),  # noqa: PLW0108  # made when it is called
            sign=self._sign,
            token_seconds=self.loaded.settings.server.token_days * 86400,
            revoked=lambda revocations: self.revoked_file().add(revocations),
            trees=self._trees,
            audit=self.audit_trail,
        )

    def back_up(self, target: Path) -> int:
        """Copy the store into a new file; the bytes of the copy. Raise `Refused` for a server's."""
        from fleet.domain.errors import Refused

        url = self.loaded.settings.store.url
        if not url.startswith("sqlite:"):
            raise Refused(
                "The store is PostgreSQL, which has its own program for backups.",
                fix="pg_dump --format=custom --file=fleet.dump DATABASE",
            )
        from fleet.adapters.stores.backup import copy_database
        from fleet.adapters.stores.sqlite import path_of

        return copy_database(path_of(url), target)

    def audit_trail(self) -> AuditTrail:
        from fleet.adapters.home.audit_trail import FOLDER, AuditFiles

        size = self.loaded.settings.server.audit_mb * 1_000_000
        return AuditFiles(self.home.path / FOLDER, most=size)

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
        isolated = self.worlds("").settings.isolation != "none"
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

    def check_start(self, cwd: str, project: str, branch: str, base: str) -> None:
        """Check that the workspace can be made, before the task is queued; raise what is wrong."""
        from fleet.adapters.git.repo import Repo

        repo = Repo.of(Path(cwd))
        self.checkout(project).check_branch(repo, branch)
        if base and not repo.has_commit(base):
            raise BadInput(
                f"There is no commit '{base}' in {repo.top} to start from.",
                fix="Name a branch, a tag or a commit: `git branch --all` lists branches.",
            )
        repo.commit(base or "HEAD")

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

    def supervisor(self, *, coder: str = "", max_concurrent: int = 0) -> Supervisor:
        import random

        from fleet.adapters.coders import built_in
        from fleet.adapters.home.home import boot
        from fleet.adapters.nodes.pulse import NodePulses
        from fleet.adapters.processes.clock import SystemClock
        from fleet.adapters.processes.threads import ThreadJobs
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
            nodes=NodePulses(self.bell.ring_self),
            terminal=self.terminals,
        )
        here = Here(
            host=host,
            name=host.rpartition("-")[0],
            boot=boot(),
            holder=os.urandom(8).hex(),
            coder=coder,
            max_concurrent=max_concurrent,
            shared=self.shared,
        )
        return Supervisor(parts, here)
