"""Alerts: a monitor, or the notifier of a team, tells those who lead that something is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.domain.access import Permission, Role
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.event import Kind
from fleet.domain.message import MessageKind
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.deliver import speak_all
from fleet.operations.messages.speech import new_message
from fleet.operations.shared.entries import page, the_team
from fleet.operations.shared.names import some_text

if TYPE_CHECKING:
    from fleet.operations.catalogue import Context

MAX_TEXT, MAX_MEMBERS = 2000, 1000
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
    """Tells the leads of the team by mail, everyone who reads its events, and by a notice."""

    text: str
    team: str = ""


@dataclass(frozen=True, slots=True)
class SendNotice(Request[AlertRow]):
    """The same for a notifier: news rather than trouble."""

    text: str
    team: str = ""


def raise_alert(context: Context, request: RaiseAlert) -> AlertRow:
    return _tell(context, request.text, request.team, Permission.ALERT, "Alert")


def send_notice(context: Context, request: SendNotice) -> AlertRow:
    return _tell(context, request.text, request.team, Permission.NOTIFY, "Notice")


def _tell(context: Context, text: str, team: str, permission: Permission, subject: str) -> AlertRow:
    team = the_team(context, team, permission)
    text = some_text(subject.lower(), text, most=MAX_TEXT)
    members = page(context, EntryKind.MEMBER, team=team, limit=MAX_MEMBERS)
    leads = tuple(member.owner for member in members if member.body["role"] in LEADING)
    mails = [
        new_message(
            context, MessageKind.MAIL, text, is_open=True, subject=subject, team=team, to=name
        )
        for name in leads
    ]
    event = context.event(Kind.ALERT_RAISED, "", text=text, subject=subject, team=team)
    speak_all(context, [(mail, ()) for mail in mails], event)
    return AlertRow(text, context.actor.name, team, leads)


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
