"""Alerts: a monitor, or the notifier of a team, tells those who lead that something is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fleet.domain.access import Permission, Role
from fleet.domain.data import dataclass
from fleet.domain.entry import EntryKind
from fleet.domain.errors import Forbidden, Refused
from fleet.domain.event import Kind
from fleet.domain.limits import Name, TextLimit
from fleet.domain.message import Details, MessageKind
from fleet.operations.catalogue import Operation, Request
from fleet.operations.messages.deliver import speak_all
from fleet.operations.messages.speech import new_message
from fleet.operations.shared.entries import page, the_team

if TYPE_CHECKING:
    from fleet.domain.entry import Entry
    from fleet.operations.catalogue import Context

MAX_MEMBERS = 1000
MOST_ALERTS = 20  # in ten minutes, by one sender who is not a coordinator
MAX_COUNTED = 10_000
PERIOD = 600_000_000  # microseconds
AlertText = Annotated[str, TextLimit(2000, some=True)]
ALERTS = (Kind.ALERT_RAISED,)
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

    Who is no coordinator may send 20 alerts and notices in ten minutes.

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
    """The coordinators of all teams but this one."""
    members = page(context, EntryKind.MEMBER, team="", limit=MAX_MEMBERS)
    role = str(Role.COORDINATOR)
    return [each for each in members if each.body["role"] == role and each.team != team]


def _tell(context: Context, text: str, team: str, subject: str, others: list[Entry]) -> AlertRow:
    _must_not_flood(context, team)
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


def _must_not_flood(context: Context, team: str) -> None:
    """Raise `Refused` beyond `MOST_ALERTS`: each alert is mail to every lead, and a notice."""
    if context.actor.role is Role.COORDINATOR:
        return
    store = context.store
    start = store.number_before(store.now() - PERIOD)
    alerts = store.events_of_kinds(ALERTS, after=start, limit=MAX_COUNTED)
    mine = [e for e in alerts if e.actor == context.actor.name and e.data.get("team") == team]
    if len(mine) >= MOST_ALERTS:
        raise Refused(
            f"{context.actor.name} has sent {len(mine)} alerts and notices in ten minutes.",
            fix="Wait, or put several of them into one.",
            code="too_many_alerts",
        )


_P = Permission
OPERATIONS = (
    Operation("alert.raise", RaiseAlert, _P.ALERT, raise_alert, "Alert the leads of the team.",
              idempotent=False),
    Operation("alert.notice", SendNotice, _P.NOTIFY, send_notice,
              "Send the leads of the team a notice.", idempotent=False),
)  # fmt: skip
