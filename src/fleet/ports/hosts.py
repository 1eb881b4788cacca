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

    def __call__(self, task: str) -> Future[None]:
        """Done once the hosts of this task's runs have ended them."""

    def do(self, actor: Actor, request: Any, key: str) -> Future[Any]:
        """Of an operation that waits for programs of this host."""

    def end(self) -> None: ...


class StoreLogins(Protocol):
    """The logins of machines to the store that this server uses."""

    def check(self) -> None:
        """Raise `Refused` when the store is not one that machines share by logins."""

    def make(self, role: str, address: str) -> StoreLogin:
        """With a new password, also for a login that exists. `address`: of the store, as machines reach it."""

    def drop(self, role: str) -> None: ...
