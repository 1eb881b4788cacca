"""Read the audit trail of the server on this machine."""

from __future__ import annotations

from typing import Annotated

from fleet.base.outside import Time
from fleet.domain.access import Permission, Role, allow
from fleet.domain.audit import AuditQuery, AuditRecord
from fleet.domain.data import dataclass
from fleet.domain.limits import Name, Rows, TextLimit
from fleet.operations.catalogue import Context, Operation, Request

AuditId = Annotated[
    str, TextLimit(pattern="(a-[0-9]{1,18})?", what="id of an audit record", example="As in a-57.")
]


@dataclass(frozen=True, slots=True)
class ListAudit(Request[tuple[AuditRecord, ...]]):
    """Newest first; with `after`, the id of a record, oldest first from there on.

    A team-lead reads the records of its own team.
    """

    actor: Name = ""
    team: Name = ""
    refused: bool = False
    since: Time = 0
    before: AuditId = ""
    after: AuditId = ""
    limit: Rows = 100


def list_audit(context: Context, request: ListAudit) -> tuple[AuditRecord, ...]:
    team = request.team.strip()
    if context.actor.role is not Role.COORDINATOR:
        team = team or context.actor.team
        allow(context.actor, Permission.AUDIT, team=team)
    query = AuditQuery(
        actor=request.actor.strip(), team=team, refused=request.refused, since=request.since,
        before=request.before, after=request.after, limit=request.limit,
    )  # fmt: skip
    return tuple(context.audit().read(query))


OPERATIONS = (
    Operation(
        "audit.list",
        ListAudit,
        Permission.AUDIT,
        list_audit,
        "List the requests to the server, who made them and from where.",
        reads=True,
        outside=True,
    ),
)
