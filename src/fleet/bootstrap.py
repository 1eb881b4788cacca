"""The only module that chooses adapters."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.host.home import Home
from fleet.domain.access import Actor, Role
from fleet.domain.errors import BadConfig, BadInput, Forbidden, Refused, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.adapters.host.bell import Bell
    from fleet.adapters.host.keepers import Keepers
    from fleet.config import Loaded
    from fleet.operations.catalogue import Context
    from fleet.ports import Checkout, Coder, Store
    from fleet.supervisor.loop import Supervisor

CODERS = {
    "claude": "fleet.adapters.coders.claude:ClaudeCoder",
    "codex": "fleet.adapters.coders.codex:CodexCoder",
    "opencode": "fleet.adapters.coders.opencode:OpenCodeCoder",
    "acp": "fleet.adapters.coders.acp:AcpCoder",
    "command": "fleet.adapters.coders.command:CommandCoder",
    "scripted": "fleet.adapters.coders.scripted:ScriptedCoder",
}
# Of an outer agent, or of a git hook that called us; a coder drops its own marks itself.
NOT_INHERITED = ("FLEET_RUN_", "FLEET_TASK_", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")


@dataclass
class App:
    """One process's view of one home. Everything is made when it is first used."""

    cwd: Path
    env: Mapping[str, str]
    config_file: Path | None = None
    flags: Mapping[str, object] = field(default_factory=dict)
    listening: bool = False  # it is the one that the bell wakes

    @cached_property
    def home(self) -> Home:
        from fleet.config import home

        return Home(home(self.env))

    @cached_property
    def loaded(self) -> Loaded:
        """The settings as they are for whoever typed the command, in its directory."""
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
        from fleet.adapters.host.bell import Bell

        bell = Bell(self.home.bell)
        if self.listening:
            self.home.ensure()
            bell.listen()
        return bell

    @cached_property
    def store(self) -> Store:
        return open_store(self.loaded.settings.store.url, self.bell)

    @cached_property
    def keepers(self) -> Keepers:
        from fleet.adapters.host.keepers import Keepers

        return Keepers(self.home.runs, bell=self.home.bell)

    @cached_property
    def actor(self) -> Actor:
        """Inside a run the run, else the person."""
        run = self.env.get("FLEET_RUN_ID", "")
        team = self.loaded.settings.team
        if not run:
            return Actor(_user(self.env), Role.COORDINATOR, team)
        if not self.home.is_token(run, self.env.get("FLEET_RUN_TOKEN", "")):
            raise Forbidden(
                f"FLEET_RUN_ID is {run}, but its token is not.",
                fix="Unset FLEET_RUN_ID, or run this inside the agent's own shell.",
                code="bad_token",
            )
        return Actor(run, Role.WORKER, self.store.task(run.rpartition(".")[0]).team, run)

    @cached_property
    def context(self) -> Context:
        from fleet.operations.catalogue import Context

        return Context(self.actor, self.store, lambda: self.keepers, self.worlds)

    def coder_env(self, task_id: str, run_id: str) -> dict[str, str]:
        """All that a coder starts with: ours, less what an outer agent left in it."""
        folder = self.home.task_dir(task_id)
        env = {k: v for k, v in self.env.items() if not k.startswith(NOT_INHERITED)}
        path = os.pathsep.join([str(Path(sys.executable).parent), env.get("PATH", os.defpath)])
        return env | {
            "PATH": path,
            "FLEET_HOME": str(self.home.path),
            "FLEET_TASK_ID": task_id,
            "FLEET_TASK_DIR": str(folder),
            "FLEET_ARTIFACT_DIR": str(folder / "artifacts"),
            "FLEET_RUN_ID": run_id,
            "FLEET_RUN_TOKEN": self.home.run_token(run_id),
        }

    def checkout(self, project: str) -> Checkout:
        from fleet.adapters.host.git import GitCheckout, WorkspaceRules

        said = self.worlds(project).settings.workspace
        rules = WorkspaceRules(
            root=str(said.root),
            branch_prefix=said.branch_prefix,
            credential_files=said.credential_files,
            setup=() if said.quick else said.setup,
            setup_timeout=said.setup_timeout,
        )
        return GitCheckout(self.home.worktrees, rules)

    def supervisor(self, *, coder: str = "", max_concurrent: int = 0) -> Supervisor:
        import random

        from fleet.adapters.host.clock import SystemClock
        from fleet.adapters.host.home import boot
        from fleet.adapters.host.jobs import ThreadJobs
        from fleet.supervisor.loop import Supervisor
        from fleet.supervisor.parts import Here, Parts

        host = self.home.host_id()
        parts = Parts(
            store=self.store,
            launcher=self.keepers,
            transcripts=self.keepers,
            clock=SystemClock(),
            jobs=ThreadJobs(self.bell),
            coder=make_coder,
            world=self.worlds,
            checkout=self.checkout,
            task_dir=self.home.task_dir,
            env=self.coder_env,
            jitter=random.random,
        )
        here = Here(
            host=host,
            name=host.rpartition("-")[0],
            boot=boot(),
            holder=os.urandom(8).hex(),
            coder=coder,
            max_concurrent=max_concurrent,
            shared=self.loaded.settings.store.url.startswith("postgres"),
        )
        return Supervisor(parts, here)


class Worlds:
    """What each project declares, read again when its files change.

    A file that has become wrong leaves the last good one in force; `complaints` says so.
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._held: dict[str, tuple[tuple[int, ...], Loaded]] = {}
        self.complaints: dict[str, str] = {}

    def __call__(self, project: str) -> Loaded:
        from fleet.config import load

        app = self._app
        stamp = self._stamp(project)
        held = self._held.get(project)
        if held is not None and held[0] == stamp:
            return held[1]
        try:
            cwd = Path(project) if project else app.home.path
            loaded = load(cwd, home=app.home.path, env=app.env, flags=app.flags)
            self.complaints.pop(project, None)
        except BadConfig as error:
            if held is None:
                raise
            self.complaints[project] = error.message
            loaded = held[1]
        self._held[project] = (stamp, loaded)
        return loaded

    def _stamp(self, project: str) -> tuple[int, ...]:
        home = self._app.home.path
        files = [home / "config.yaml", home / "trusted.json"]
        if project:
            files.append(Path(project) / "fleet.yaml")
        return tuple(_changed_at(f) for f in files)


def _changed_at(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


def open_store(url: str, bell: Bell | None = None) -> Store:
    """`sqlite:///PATH` or `postgresql://…`."""
    from fleet.adapters.stores.sql import SqlStore

    scheme, _, rest = url.partition("://")
    if scheme == "sqlite":
        from fleet.adapters.stores.sqlite import Sqlite

        path = Path("/" + rest.lstrip("/")) if rest.startswith("/") else Path(rest)
        return SqlStore(Sqlite(path, bell=bell))
    if scheme in {"postgresql", "postgres"}:
        try:
            from fleet.adapters.stores.postgres import Postgres
        except ImportError as error:
            raise BadInput(
                "The store is PostgreSQL, and its driver is not installed.",
                fix="pip install 'agent-fleet[postgres]'",
            ) from error
        return SqlStore(Postgres(url, bell=bell))
    raise BadInput(f"'{scheme}' is not a kind of store.", fix="Use sqlite:///… or postgresql://…")


def make_coder(name: str) -> Coder:
    from importlib import import_module

    where = CODERS.get(name)
    if where is None:
        raise Refused(
            f"'{name}' is not a coder that can be run.",
            fix=nearest(name, CODERS) or f"There are: {', '.join(CODERS)}.",
        )
    module, _, attribute = where.partition(":")
    made: Coder = getattr(import_module(module), attribute)()
    return made


def _user(env: Mapping[str, str]) -> str:
    if named := env.get("LOGNAME") or env.get("USER"):
        return named
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
