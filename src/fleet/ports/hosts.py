"""What the supervisors of other hosts do to runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from concurrent.futures import Future

    from fleet.domain.access import Actor


class Hosts(Protocol):
    """What is done to runs, by the supervisors of their hosts."""

    def __call__(self, task: str) -> Future[None]:
        """Done once the hosts of this task's runs have ended them."""

    def do(self, actor: Actor, request: Any, key: str) -> Future[Any]:
        """Of an operation that waits for programs of this host."""

    def end(self) -> None: ...
