"""Assemble the supervisor of this machine, and what runs in its rounds, from the adapters."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet.app.app import App
    from fleet.domain.fleet import Gateway
    from fleet.domain.task import Task
    from fleet.ports import Branches, Notifier
    from fleet.supervisor.beads.exchange import Beads
    from fleet.supervisor.landing.lander import Lander
    from fleet.supervisor.notices import Notices
    from fleet.supervisor.parts import ThisSupervisor
    from fleet.supervisor.supervisor import Supervisor
    from fleet.supervisor.tickets import TicketReports


def make_supervisor(app: App, *, coder: str = "", max_concurrent: int = 0) -> Supervisor:
    import random

    from fleet.adapters.coders import built_in
    from fleet.adapters.nodes.pulse import NodePulses
    from fleet.adapters.processes.clock import SystemClock
    from fleet.adapters.processes.threads import ThreadJobs
    from fleet.app.agent_environment import coder_env, gate_environment
    from fleet.app.start_checks import missing_program
    from fleet.supervisor.parts import Parts
    from fleet.supervisor.supervisor import Supervisor

    parts = Parts(
        store=app.store,
        launcher=app.keepers,
        transcripts=app.keepers,
        clock=SystemClock(),
        jobs=ThreadJobs(app.bell),
        quick=ThreadJobs(app.bell),
        coder=app.coder,
        world=app.worlds,
        checkout=app.checkout,
        task_dir=app.home.task_dir,
        env=partial(coder_env, app),
        workspace_env=app.workspace_env,
        gateway_key=app.gateway_key,
        provider_keys=lambda coder: built_in(coder).keys,
        jitter=random.random,
        files=app.files,
        nodes=NodePulses(app.bell.ring_self, app.home.path, partial(_key_seen, app)),
        terminal=app.terminals,
        missing_program=partial(missing_program, app),
        gate_environment=partial(gate_environment, app),
        is_here=os.path.isdir,
        ahead=app.home.ahead,
    )
    return Supervisor(parts, _this_supervisor(app, coder, max_concurrent))


def _key_seen(app: App, gateway: Gateway) -> str:
    from fleet.adapters.gateway.key import fingerprint

    return fingerprint(app.gateway_key(gateway))


def _this_supervisor(app: App, coder: str, max_concurrent: int) -> ThisSupervisor:
    from fleet import __version__
    from fleet.adapters.home.home import boot
    from fleet.base.machine import SYSTEM
    from fleet.domain.hosts.lease import ALONE
    from fleet.supervisor.parts import ThisSupervisor

    host = app.home.host_id()
    holder = os.urandom(8).hex()
    if app.shared:
        from fleet.adapters.home.host_identity import HostIdentity

        HostIdentity(app.home).note(holder)
    return ThisSupervisor(
        host=host,
        name=host.rpartition("-")[0],
        boot=boot(),
        holder=holder,
        coder=coder,
        max_concurrent=max_concurrent,
        shared=app.shared,
        lease=app.loaded.settings.store.lease if app.shared else ALONE,
        labels=(SYSTEM, *app.loaded.settings.host.labels),
        release=__version__,
    )


def make_lander(app: App, supervisor: Supervisor) -> Lander:
    from fleet.app.agent_environment import gate_env
    from fleet.supervisor.landing.lander import Lander
    from fleet.supervisor.landing.parts import LandingParts

    def is_here(repository: str) -> bool:
        return os.path.isdir(repository)  # noqa: PTH112  # asked in every step

    def clearing(task: Task) -> Callable[[], None]:
        clear = app.workspaces.clearing([task])

        def act() -> None:
            clear()

        return act

    more = LandingParts(
        branches=_branches,
        gate_worktrees=app.gate_worktrees,
        gate_env=partial(gate_env, app),
        forge=app.forges.of,
        is_here=is_here,
        clearing=clearing,
        is_uncleared=app.workspaces.has_worktree,
        step_again=app.bell.ring_self,
    )
    return Lander(supervisor.parts, supervisor.here, more)


def make_notices(app: App, warn: Callable[[str], None]) -> Notices:
    from fleet.adapters.machine.notify import NumberFile
    from fleet.domain.redaction import Redactor, secret_values
    from fleet.supervisor.notices import Notices

    return Notices(
        app.store,
        host=app.home.host_id(),
        settings=lambda: app.worlds("").settings,
        notifiers=partial(notifiers, app),
        mark=NumberFile(app.home.path / "notified"),
        warn=warn,
        clean=Redactor(secret_values(app.env)).text,
    )


def notifiers(app: App) -> list[Notifier]:
    """The notification channels that the settings turn on now."""
    from fleet.adapters.machine.notify import CHANNELS

    notify = app.worlds("").settings.notify
    values = ((make, getattr(notify, name)) for name, make in CHANNELS.items())
    return [make(value, app.env) for make, value in values if value]


def make_ticket_reports(app: App, warn: Callable[[str], None]) -> TicketReports:
    from fleet.adapters.machine.notify import NumberFile
    from fleet.adapters.processes.threads import ThreadJobs
    from fleet.supervisor.tickets import TicketReports

    return TicketReports(
        app.store,
        host=app.home.host_id(),
        comment=app.forges.tickets.comment,
        jobs=ThreadJobs(app.bell),
        mark=NumberFile(app.home.path / "tickets-told"),
        warn=warn,
    )


def make_beads(app: App, warn: Callable[[str], None]) -> Beads:
    """Return what serves `queue: beads`; the supervisor only steps it while that is set."""
    from fleet.adapters.beads import BdProgram
    from fleet.adapters.machine.notify import NumberFile
    from fleet.adapters.processes.threads import ThreadJobs
    from fleet.config import checkout_top, find_project
    from fleet.domain.access import Actor, Role
    from fleet.operations.catalogue import perform
    from fleet.supervisor.beads.exchange import Beads

    name = f"fleet-{app.home.host_id()}"
    actor = Actor(name, Role.COORDINATOR, app.loaded.settings.team)
    context = app.context._replace(actor=actor)

    def places(cwd: Path) -> dict[str, str]:
        top = str(checkout_top(cwd) or "")
        return {"project": str(find_project(cwd) or cwd), "checkout": top}

    return Beads(
        app.store,
        BdProgram(app.home.path, app.env, actor=name, places=places),
        name=name,
        call=lambda request: perform(context, request),
        jobs=ThreadJobs(app.bell),
        mark=NumberFile(app.home.path / "beads-told"),
        room=lambda: app.worlds("").settings.max_concurrent,
        warn=warn,
    )


def note_merged(app: App) -> None:
    """Note work that a person merged with git: a supervisor that runs here does it itself."""
    from fleet.domain.task import TaskState
    from fleet.ports import TaskQuery

    if not app.store.tasks(TaskQuery((TaskState.DONE,), limit=1)):
        return  # common in a new project, so avoid loading the modules below
    from fleet.supervisor.landing.landed_elsewhere import note_merged

    note_merged(app.store, app.home.host_id(), _branches)


def _branches(repository: str, remote: str) -> Branches:
    from fleet.adapters.git.landing.branches import GitBranches, RemoteBranches
    from fleet.adapters.git.repo import Repo

    repo = Repo.at(Path(repository))
    return RemoteBranches(repo, remote) if remote else GitBranches(repo)
