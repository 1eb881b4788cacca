"""What commands call, whichever machine does the work."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from fleet.app import App
    from fleet.app.compute.nodes import Compute
    from fleet.app.server_address import Remote
    from fleet.client.local import LocalClient
    from fleet.config import Loaded
    from fleet.domain.access import Actor
    from fleet.domain.errors import FleetError
    from fleet.operations.catalogue import Request
    from fleet.operations.tasks.at_work import AgentRow
    from fleet.operations.tasks.rows import TaskRow
    from fleet.ports import Chosen, Coder, Sight, World

Reply = TypeVar("Reply")


class Client(ABC):
    """What commands call; a subclass does the work on this machine or on a server elsewhere.

    Settings and directories are always those of this machine.
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

    def scope(self, *, everywhere: bool) -> str:
        """Return the project to list; empty: all, as on a server, whose directories differ."""
        return "" if everywhere or self.is_remote else self.project_or_cwd

    def world(self, project: str) -> World[Chosen]:
        """What this machine's settings declare for a project."""
        return self._app.worlds(project)

    def coder(self, name: str, project: str) -> Coder:
        return self._app.coder(name, project)

    def compute(self) -> Compute:
        """The nodes and models that this machine's settings declare."""
        from fleet.app.compute.nodes import Compute

        return Compute(self._app)

    def task_dir(self, task_id: str) -> Path:
        return self._app.home.task_dir(task_id)

    is_remote: bool

    @property
    @abstractmethod
    def server_url(self) -> str:
        """Return the address at which other machines reach the server, as far as is known here."""

    @abstractmethod
    def server_of(self, run_id: str) -> Remote | None:
        """Return the server through which the run's terminal is reached; None: it is here."""

    @property
    @abstractmethod
    def actor(self) -> Actor:
        """Inside a run: the run; else the person."""

    @abstractmethod
    def call(self, request: Request[Reply]) -> Reply: ...

    @abstractmethod
    def call_all(self, requests: Sequence[Request[Any]]) -> list[FleetError | None]:
        """Make each of these requests about tasks; return the error of each, or None."""

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
    def note_merged(self) -> None:
        """Note work that a person merged with git, where no supervisor looks for it."""

    @abstractmethod
    def land(self, settled: Callable[[], bool], *, patience: float) -> None:
        """Wait until the landings are settled, for at most `patience` seconds."""

    @abstractmethod
    def deliver(self, message: str, *, patience: float) -> None:
        """Wait until the agent has heard it, its task no longer runs, or `patience` is over."""

    @abstractmethod
    def observed(self, rows: tuple[AgentRow, ...] | list[AgentRow]) -> list[dict[str, Any]]:
        """Return the rows with what the agent is doing, how we know, and what it uses."""

    def measured(self, rows: Sequence[TaskRow]) -> list[TaskRow]:
        """Return the rows; those running here with the lines that their worktrees have changed."""
        return list(rows)

    @abstractmethod
    def opening(self, run_id: str) -> str:
        """Return the first input of the run's coder; empty when this machine does not have it."""

    @abstractmethod
    def last_screen(self, run_id: str) -> Path | None:
        """The file with the last screen of the run's terminal, if this machine has it."""

    @abstractmethod
    def refresh(self, task_id: str) -> None:
        """Bring the folder of a task up to date, if this machine has it."""

    @abstractmethod
    def this_machine(self, action: str) -> LocalClient:
        """The client of this machine, for an action on it alone; raise `Refused` when commands go to a server."""


def with_sights(rows: Sequence[AgentRow], sights: Mapping[str, Sight]) -> list[dict[str, Any]]:
    """Each row as a dict, with what was seen of its run."""
    from fleet.ports import Sight

    nothing = Sight("", "")
    fields = [f.name for f in dataclasses.fields(rows[0])] if rows else []
    return [
        {name: getattr(row, name) for name in fields} | sights.get(row.run, nothing)._asdict()
        for row in rows
    ]
