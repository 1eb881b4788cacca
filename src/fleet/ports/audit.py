"""The audit trail of a server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from fleet.domain.audit import AuditQuery, AuditRecord


class AuditTrail(Protocol):
    """The audit trail, which only the server of a home writes; other processes may read it."""

    def add(self, record: AuditRecord) -> None:
        """Give the record the next id and write it, without a sync to the disk; raise `OSError`."""

    def read(self, query: AuditQuery) -> list[AuditRecord]: ...
