"""Alerts: a monitor, or the notifier of a team, tells those who lead that something is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fleet.domain.access import Permission, Role
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import Forbidden
from fleet.domain.event import Kind
from fleet.domain.limits import Name, Text
from fleet.domain.message import Details, MessageKind
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.deliver import speak_all
from fleet.operations.messages.speech import new_message
from fleet.operations.shared.entries import page, the_team

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context

MAX_MEMBERS = 1000
AlertText = Annotated[str, Text(2000, some=True)]
LEADING = frozenset({str(Role.TEAM_LEAD), str(Role.COORDINATOR)})


@dataclass(frozen=True, slots=True)
class AlertRow:
    """`to`: the leads who have mail of it. Where notices are set up, a person gets one, too."""

    text: str
    sender: str
    team: str
    to: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RaiseAlert(Request[AlertRow]):
    """Tells the leads of the team by mail, everyone who reads its events, and by a notice.

    `everywhere`: also the coordinators of all other teams; for coordinators alone.
    """

    text: AlertText
    team: Name = ""
    everywhere: bool = False


@dataclass(frozen=True, slots=True)
class SendNotice(Request[AlertRow]):
    """The same for a notifier: news rather than trouble."""

    text: AlertText
    team: Name = ""


def raise_alert(context: Context, request: RaiseAlert) -> AlertRow:
    if request.everywhere and context.actor.role is not Role.COORDINATOR:
        raise Forbidden(
            "Only a coordinator alerts the coordinators of all teams.",
            fix="Leave out `everywhere`: the alert then goes to the leads of your own team.",
        )
    team = the_team(context, request.team, Permission.ALERT)
    others = _coordinators(context, team) if request.everywhere else []
    return _tell(context, request.text, team, "Alert", others)


def send_notice(context: Context, request: SendNotice) -> AlertRow:
    team = the_team(context, request.team, Permission.NOTIFY)
    return _tell(context, request.text, team, "Notice", [])


def _coordinators(context: Context, team: str) -> list[Entry]:
    """Of all teams but this one."""
    members = page(context, EntryKind.MEMBER, team="", limit=MAX_MEMBERS)
    role = str(Role.COORDINATOR)
    return [each for each in members if each.body["role"] == role and each.team != team]


def _tell(context: Context, text: str, team: str, subject: str, others: list[Entry]) -> AlertRow:
    text = text.strip()
    members = page(context, EntryKind.MEMBER, team=team, limit=MAX_MEMBERS)
    leads = [member for member in members if member.body["role"] in LEADING] + others
    mails = [
        new_message(
            context,
            MessageKind.MAIL,
            text,
            is_open=True,
            details=Details(subject=subject),
            team=lead.team,
            to=lead.owner,
        )
        for lead in leads
    ]
    event = context.event(Kind.ALERT_RAISED, "", text=text, subject=subject, team=team)
    speak_all(context, [(mail, ()) for mail in mails], event)
    return AlertRow(text, context.actor.name, team, tuple(lead.owner for lead in leads))


_P = Permission
OPERATIONS = (
    Operation(
        "alert.raise", RaiseAlert, _P.ALERT, raise_alert, "Alert the leads of the team.",
        idempotent=False,
    ),
    Operation(
        "alert.notice", SendNotice, _P.NOTIFY, send_notice, "Send the leads of the team a notice.",
        idempotent=False,
    ),
)  # fmt: skip
