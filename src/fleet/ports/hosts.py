"""What the supervisors of other hosts do to runs, and how hosts open the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fleet.domain.access import Actor


class StoreLogin(NamedTuple):
    """`url`: with its password. `own`: it can be removed alone; else it is the server's own."""

    url: str
    schema: str
    own: bool


class Hosts(Protocol):
    """What is done to runs, by the supervisors of their hosts."""

    def __call__(self, actor: Actor, task: str) -> Future[None]:
        """Done once the hosts of this task's runs have ended them, for who asked for it."""

    def do(self, actor: Actor, request: Any, key: str) -> Future[Any]:
        """Do an operation that waits for programs of this host.

        Members take turns. Raise `Refused` when too much of one waits.
        """

    def end(self) -> None: ...


class StoreLogins(Protocol):
    """The logins of machines to the store that this server uses."""

    def check(self) -> None:
        """Raise `Refused` when the store is not one that machines share by logins."""

    def make(self, role: str, address: str) -> StoreLogin:
        """Make a login with a new password, also if it exists. `address`: of the store, as machines reach it."""

    def drop(self, role: str) -> None: ...


class ProjectPaths(Protocol):
    """Where on this host the projects of a shared store are."""

    def here(self, name: str) -> str:
        """The directory of the project that the store calls this; else a path that does not exist."""

    def name(self, path: str) -> str:
        """What the store calls the project in this directory."""

    def register(self, path: str) -> str:
        """The same; from now on the store knows it."""
