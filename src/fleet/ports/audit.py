"""The audit trail of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fleet.domain.audit import AuditQuery, AuditRecord


class AuditTrail(Protocol):
    """Only the server of a home adds to it; everyone who may can read it meanwhile."""

    def add(self, record: AuditRecord) -> None:
        """Give it the next id, and hand it to the system before returning. Raise `OSError`."""

    def read(self, query: AuditQuery) -> list[AuditRecord]: ...
