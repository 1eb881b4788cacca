"""`fleet token`: who is known to the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from fleet.cli.team.lists import Columns, limit_option, when
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import listing_group
from fleet.cli.terminal.view import Column, Result, Table, Text
from fleet.domain.access import ROLES

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from fleet.operations.team.enrolments import EnrolmentRow
    from fleet.operations.team.tokens import RevokedRow, TokenRow

FC = TypeVar("FC", bound="Callable[..., Any]")

EVERYWHERE = "A coordinator acts in every team, and can run commands on the server's machine."


own_team_option = click.option("--team", default="", help="Its team. Default: yours.")
ended_option = click.option(
    "-a", "--all", "everything", is_flag=True, help="Also list expired and revoked ones."
)


def role_option(help_: str) -> Callable[[FC], FC]:
    return click.option(
        "--role", type=click.Choice(ROLES), default="worker", show_default=True, help=help_
    )


def days_option(default: float, help_: str) -> Callable[[FC], FC]:
    days = click.FloatRange(0.0001, 3650)
    return click.option("--days", type=days, default=default, show_default=True, help=help_)


@listing_group
def token() -> None:
    """Create, list and revoke tokens for people and programs."""


@token.command(config=True)
@click.argument("name")
@role_option("What its bearer may do.")
@own_team_option
@days_option(30.0, "Days until the token expires.")
def create(*, name: str, role: str, team: str, days: float, config: Path | None) -> Result:
    """Create a token with which NAME authenticates to the server."""
    from fleet.operations.team.tokens import CreateToken

    client = connect(config=config)
    made = client.call(CreateToken(name, role, team, max(1, int(days * 86400))))
    return Result("token", made, Text(_exports(made, client.server_url)), notes=_reach(role))


def _exports(row: TokenRow, url: str) -> str:
    """Lines for a shell to evaluate; the explanations are comments."""
    from fleet.cli.terminal.human import moment

    where = "all teams" if row.role == "coordinator" else f"team {row.team}"
    return "\n".join([
        f"export FLEET_URL={url}",
        f"export FLEET_TOKEN={row.token}",
        f"# {row.name} is a {row.role} of {where}, until {moment(row.until)}.",
        f"# This token is shown only now. `fleet token revoke {row.id}` revokes it.",
    ])  # fmt: skip


@token.command(config=True)
@role_option("The highest role that it gives.")
@own_team_option
@click.option("--name", default="", help="Allow only this name to enrol with it.")
@days_option(7.0, "Days until the secret expires.")
@click.option(
    "--uses", type=click.IntRange(1, 10_000), help="How many tokens it can be exchanged for."
)
def enrol(
    *, role: str, team: str, name: str, days: float, uses: int | None, config: Path | None
) -> Result:
    """Create a secret with which a person or program gets a token of ROLE or less at /auth."""
    from fleet.operations.team.enrolments import MOST_USES, CreateEnrolment

    seconds = max(1, int(days * 86400))
    made = connect(config=config).call(
        CreateEnrolment(role, team, name, seconds, uses or MOST_USES)
    )
    return Result("enrolment", made, Text(made.secret), notes=_reach(role))


def _reach(role: str) -> tuple[str, ...]:
    """What to show beside a token's team: a coordinator's token is not limited to that team."""
    return (EVERYWHERE,) if role == "coordinator" else ()


@token.command(config=True)
@ended_option
@limit_option
def enrolments(*, everything: bool, limit: int, config: Path | None) -> Result:
    """List the enrolment secrets, newest first; only their hashes are stored."""
    from fleet.operations.team.enrolments import ListEnrolments

    listed = connect(config=config).call(ListEnrolments(everything, limit=limit))
    rows = [
        (
            e.id,
            e.name or "anybody",
            e.role,
            e.team,
            f"{e.uses} of {e.most_uses}",
            when(e.at),
            _end(e),
        )
        for e in listed
    ]
    columns: Columns = [
        "enrolment", Column("for", flexible=True), "role", "team", "uses", "made", "ends",
    ]  # fmt: skip
    return Result("enrolments", listed, Table(columns, rows, empty="No enrolment secrets."))


@token.command("list", config=True)
@ended_option
@limit_option
def list_(*, everything: bool, limit: int, config: Path | None) -> Result:
    """List the tokens, newest first; the tokens themselves are not stored."""
    from fleet.operations.team.tokens import ListTokens

    listed = connect(config=config).call(ListTokens(everything, limit=limit))
    rows = [(t.id, t.name, t.role, t.team, when(t.at), _end(t)) for t in listed]
    columns: Columns = ["token", Column("name", flexible=True), "role", "team", "made", "ends"]
    return Result("tokens", listed, Table(columns, rows, empty="No tokens."))


def _end(row: TokenRow | EnrolmentRow) -> str:
    return "revoked" if row.revoked else when(row.until)


@token.command(config=True)
@click.option(
    "--overlap",
    type=click.FloatRange(0, 3650),
    default=30.0,
    show_default=True,
    help="Days for which tokens of the earlier keys stay valid; 0 ends them at once.",
)
def rotate(*, overlap: float, config: Path | None) -> Result:
    """Make a new key to sign tokens with. A running server uses it within a second."""
    import time

    from fleet.cli.terminal.human import moment

    key = connect(config=config).this_machine("Rotating the key").rotate_key(overlap * 86400)
    until = int((time.time() + overlap * 86400) * 1_000_000) if overlap else 0
    older = f"Tokens of the old keys are valid until {moment(until)} at most."
    text = f"New tokens are signed with the key {key}. "
    text += older if until else "All other tokens are invalid now, those of running agents too."
    return Result("key", {"id": key, "old_until": until or None}, Text(text))


@token.command(config=True)
@click.argument("which", metavar="TOKEN", default="")
@click.option("--team", default="", help="With a name: only the tokens of that name in this team.")
@click.option("--all", "everything", is_flag=True, help="Every token and enrolment secret.")
@click.option(
    "--before",
    type=click.DateTime(),
    help="Only what was made up to this local time, such as 2026-11-16T12:00:00. Default: now.",
)
def revoke(
    *, which: str, team: str, everything: bool, before: datetime | None, config: Path | None
) -> Result:
    """Revoke a TOKEN by its id, all tokens of a name, or with --all every one.

    The id of an enrolment secret revokes the secret and the tokens it was exchanged for.
    """
    from fleet.operations.team.enrolments import RevokeEnrolment
    from fleet.operations.team.tokens import RevokeToken

    if which.startswith("e-") and which[2:].isdigit():
        done = connect(config=config).call(RevokeEnrolment(which))
        return Result("enrolment", done, Text(f"Revoked {done.id} of team {done.team}."))
    until = round(before.timestamp() * 1_000_000) if before else 0
    revoked = connect(config=config).call(RevokeToken(which, team, everything, until))
    return Result("revoked", revoked, Text(_revoked(revoked)))


def _revoked(row: RevokedRow) -> str:
    from fleet.cli.terminal.human import moment

    if row.token:
        return f"Revoked {row.token} of {row.name}."
    up_to = f"made up to {moment(row.before)}"
    if row.name:
        where = f" in team {row.team}" if row.team else ""
        return f"Revoked all tokens of {row.name}{where} {up_to}."
    return f"Revoked all tokens and enrolment secrets {up_to}, those of running agents too."
