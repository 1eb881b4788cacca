"""A home whose work is on a server elsewhere: what acts on this machine alone is refused."""

from __future__ import annotations

import time
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from fleet.app import App
from fleet.app.identity import person
from fleet.app.server_address import Remote, remote_of
from fleet.domain.access import Actor, Role
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Refused
from fleet.domain.task import Spec

if TYPE_CHECKING:
    from pathlib import Path


class Away(App):
    """Settings and directories are this machine's; tasks and runs are the server's."""

    @cached_property
    def remote(self) -> Remote:
        return remote_of(self)

    @cached_property
    def store(self) -> Any:
        return _Store(self.remote)

    @property
    def files(self) -> Any:
        return _NoFiles()

    @cached_property
    def actor(self) -> Actor:
        team, run = self.loaded.settings.team, self.env.get("FLEET_RUN_ID", "")
        return Actor(run, Role.WORKER, team, run) if run else person(self.env, team)

    def another_store(self) -> NoReturn:
        raise local_only("That")

    @property
    def keepers(self) -> Any:
        return _NoKeepers(self.home.path / "elsewhere")

    @property
    def terminals(self) -> NoReturn:
        raise local_only("That")

    @property
    def workspaces(self) -> NoReturn:
        raise local_only("That")


class _Store:
    """The little that commands look at besides operations."""

    def __init__(self, remote: Remote) -> None:
        self._remote = remote

    def now(self) -> int:
        return time.time_ns() // 1000

    def wait(self, timeout: float) -> None:
        time.sleep(timeout)

    def task(self, task_id: str) -> Any:
        from fleet.operations.tasks.show import ShowTask, TaskDetail

        row = self._remote.call("task.show", ShowTask(task_id), TaskDetail).task
        return _Task(row.state, row.project)

    def __getattr__(self, name: str) -> NoReturn:
        raise local_only("That")


class _Task(NamedTuple):
    state: str
    project: str
    spec: Spec = Spec()


class _NoKeepers:
    """What they wrote is on the server's machine; what it says of that is all there is."""

    def __init__(self, nowhere: Path) -> None:
        self._nowhere = nowhere

    def folder(self, run_id: str) -> Path:
        return self._nowhere / run_id

    def opening(self, _run_id: str) -> str:
        return ""

    def __getattr__(self, name: str) -> NoReturn:
        raise local_only("That")


class _NoFiles:
    """A task's folder is on the server's machine."""

    def refresh(self, task_id: str) -> None:
        pass


def local_only(what: str) -> Refused:
    return Refused(
        f"{what} acts on this machine, and FLEET_URL names another server.",
        fix="Unset FLEET_URL, or type it where the server runs.",
        code="local_only",
    )
