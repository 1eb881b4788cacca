"""`fleet token`: who is known to the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.team.swarms_and_boards import LISTED, Columns, client_of, when
from fleet.cli.terminal.frame import group
from fleet.cli.terminal.view import Column, Result, Table, Text

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from fleet.operations.team.enrolments import EnrolmentRow
    from fleet.operations.team.tokens import RevokedRow, TokenRow

EVERYWHERE = "A coordinator acts in every team, and can run commands on the server's machine."
ROLES = ("coordinator", "team-lead", "worker", "monitor", "notifier", "merger")


@group(invoke_without_command=True, json=True, config=True)
def token(config: Path | None) -> Result | None:
    """Create, list and revoke tokens for people and programs."""
    if click.get_current_context().invoked_subcommand:
        return None
    return _tokens(config, LISTED)


@token.command(config=True)
@click.argument("name")
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="worker",
    show_default=True,
    help="What its bearer may do.",
)
@click.option("--team", default="", help="Its team. Default: yours.")
@click.option(
    "--days",
    type=click.FloatRange(0.0001, 3650),
    default=30.0,
    show_default=True,
    help="Days until the token expires.",
)
def create(*, name: str, role: str, team: str, days: float, config: Path | None) -> Result:
    """Create a token with which NAME authenticates to the server."""
    from fleet.operations.team.tokens import CreateToken

    client = client_of(config)
    made = client.call(CreateToken(name, role, team, max(1, int(days * 86400))))
    return Result("token", made, Text(_exports(made, client.server_url)), notes=_reach(role))


def _exports(row: TokenRow, url: str) -> str:
    """For a shell: the lines that tell more are comments there."""
    from fleet.cli.terminal.human import moment

    where = "all teams" if row.role == "coordinator" else f"team {row.team}"
    return "\n".join([
        f"export FLEET_URL={url}",
        f"export FLEET_TOKEN={row.token}",
        f"# {row.name} is a {row.role} of {where}, until {moment(row.until)}.",
        f"# This token is shown only now. `fleet token revoke {row.id}` revokes it.",
    ])  # fmt: skip


@token.command(config=True)
@click.option(
    "--role",
    type=click.Choice(ROLES),
    default="worker",
    show_default=True,
    help="The highest role that it gives.",
)
@click.option("--team", default="", help="Its team. Default: yours.")
@click.option("--name", default="", help="Allow only this name to enrol with it.")
@click.option(
    "--days",
    type=click.FloatRange(0.0001, 3650),
    default=7.0,
    show_default=True,
    help="Days until the secret expires.",
)
@click.option(
    "--uses", type=click.IntRange(1, 10_000), help="How many tokens it can be exchanged for."
)
def enrol(
    *, role: str, team: str, name: str, days: float, uses: int | None, config: Path | None
) -> Result:
    """Create a secret with which a person or program gets a token of ROLE or less at /auth."""
    from fleet.operations.team.enrolments import MOST_USES, CreateEnrolment

    seconds = max(1, int(days * 86400))
    made = client_of(config).call(CreateEnrolment(role, team, name, seconds, uses or MOST_USES))
    return Result("enrolment", made, Text(made.secret), notes=_reach(role))


def _reach(role: str) -> tuple[str, ...]:
    """A team in a coordinator's token does not confine it."""
    return (EVERYWHERE,) if role == "coordinator" else ()


@token.command(config=True)
@click.option("-a", "--all", "everything", is_flag=True, help="Also list expired and revoked ones.")
@click.option(
    "--limit",
    type=click.IntRange(1, 200),
    default=100,
    show_default=True,
    help="Show at most this many.",
)
def enrolments(*, everything: bool, limit: int, config: Path | None) -> Result:
    """List the enrolment secrets, newest first; only their hashes are stored."""
    from fleet.operations.team.enrolments import ListEnrolments

    listed = client_of(config).call(ListEnrolments(everything, limit=limit))
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
@click.option("-a", "--all", "everything", is_flag=True, help="Also list expired and revoked ones.")
@click.option(
    "--limit",
    type=click.IntRange(1, 200),
    default=100,
    show_default=True,
    help="Show at most this many.",
)
def list_(*, everything: bool, limit: int, config: Path | None) -> Result:
    """List the tokens, newest first; the tokens themselves are not stored."""
    return _tokens(config, limit, everything=everything)


def _tokens(config: Path | None, limit: int, *, everything: bool = False) -> Result:
    from fleet.operations.team.tokens import ListTokens

    listed = client_of(config).call(ListTokens(everything, limit=limit))
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

    key = client_of(config).this_machine("Rotating the key").rotate_key(overlap * 86400)
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
        done = client_of(config).call(RevokeEnrolment(which))
        return Result("enrolment", done, Text(f"Revoked {done.id} of team {done.team}."))
    until = round(before.timestamp() * 1_000_000) if before else 0
    gone = client_of(config).call(RevokeToken(which, team, everything, until))
    return Result("revoked", gone, Text(_revoked(gone)))


def _revoked(row: RevokedRow) -> str:
    from fleet.cli.terminal.human import moment

    if row.token:
        return f"Revoked {row.token} of {row.name}."
    up_to = f"made up to {moment(row.before)}"
    if row.name:
        where = f" in team {row.team}" if row.team else ""
        return f"Revoked all tokens of {row.name}{where} {up_to}."
    return f"Revoked all tokens and enrolment secrets {up_to}, those of running agents too."
