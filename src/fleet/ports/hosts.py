"""What the supervisors of other hosts do to runs, and how hosts open the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fleet.domain.access import Actor


class StoreLogin(NamedTuple):
    """A login. `url`: with its password. `own`: the machine's own, not shared with the server."""

    url: str
    schema: str
    own: bool


class Hosts(Protocol):
    """Waits for what other supervisors or slow programs do."""

    def __call__(self, actor: Actor, task: str) -> Future[None]:
        """Return a future that is done once this task's runs have been ended by their hosts."""

    def do(self, actor: Actor, request: Any, key: str) -> Future[Any]:
        """Do an operation that waits for programs of this host.

        Members take turns. Raise `Refused` when too much of one waits.
        """

    def end(self) -> None: ...


class StoreLogins(Protocol):
    """Manages the machines' logins to the store that this server uses."""

    def check(self) -> None:
        """Raise `Refused` when the store has no logins for machines."""

    def make(self, role: str, address: str) -> StoreLogin:
        """Make a login with a new password, also if it exists. `address`: of the store, as machines reach it."""

    def drop(self, role: str) -> None: ...


class ProjectPaths(Protocol):
    """Translates between projects' directories on this host and their names in a shared store."""

    def here(self, name: str) -> str:
        """Return the project's directory here; a path that does not exist if it has none."""

    def name(self, path: str) -> str:
        """Return the store's name for the project in this directory."""

    def register(self, path: str) -> str:
        """Return the store's name for the project in this directory, storing a new one."""
