"""Read the audit trail of the server on this machine."""

from __future__ import annotations

from fleet.domain.access import Permission, Role, allow
from fleet.domain.audit import AuditQuery, AuditRecord, number_of
from fleet.domain.data import dataclass
from fleet.domain.errors import BadInput
from fleet.operations.catalogue import Context, Operation, Request
from fleet.operations.shared.names import how_many


@dataclass(frozen=True, slots=True)
class ListAudit(Request[tuple[AuditRecord, ...]]):
    """Newest first; with `after`, the id of a record, oldest first from there on.

    `since`: microseconds since 1970. A team-lead reads the records of its own team.
    """

    actor: str = ""
    team: str = ""
    refused: bool = False
    since: int = 0
    before: str = ""
    after: str = ""
    limit: int = 100


def list_audit(context: Context, request: ListAudit) -> tuple[AuditRecord, ...]:
    team = request.team.strip()
    if context.actor.role is not Role.COORDINATOR:
        team = team or context.actor.team
        allow(context.actor, Permission.AUDIT, team=team)
    for name in (request.before, request.after):
        if name and name != "a-0" and not number_of(name):
            raise BadInput(f"'{name[:60]}' is not the id of an audit record.", fix="As in a-57.")
    query = AuditQuery(
        actor=request.actor.strip(), team=team, refused=request.refused, since=request.since,
        before=request.before, after=request.after, limit=how_many(request.limit),
    )  # fmt: skip
    return tuple(context.audit().read(query))


OPERATIONS = (
    Operation(
        "audit.list",
        ListAudit,
        Permission.AUDIT,
        list_audit,
        "List what was asked of the server, by whom and from where.",
        reads=True,
        outside=True,
    ),
)
