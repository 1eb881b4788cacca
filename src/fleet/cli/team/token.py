"""`fleet token`: who is known to the server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.team.swarms_and_boards import LISTED, Columns, client_of, when
from fleet.cli.terminal.frame import group
from fleet.cli.terminal.view import Column, Result, Table, Text

if TYPE_CHECKING:
    from pathlib import Path

ROLES = ("coordinator", "team-lead", "worker", "monitor", "notifier", "merger")


@group(invoke_without_command=True, json=True, config=True)
def token(config: Path | None) -> Result | None:
    """List, make and revoke tokens for people and programs."""
    if click.get_current_context().invoked_subcommand:
        return None
    return _tokens(config, LISTED)


@token.command(config=True)
@click.argument("name")
@click.option("--role", type=click.Choice(ROLES), default="worker", show_default=True)
@click.option("--team", default="", help="Its team; yours if not given.")
@click.option("--days", type=click.FloatRange(0.0001, 3650), default=30.0, show_default=True)
def create(*, name: str, role: str, team: str, days: float, config: Path | None) -> Result:
    """Make a token by which NAME is known to the server."""
    from fleet.operations.team.tokens import CreateToken

    made = client_of(config).call(CreateToken(name, role, team, max(1, int(days * 86400))))
    return Result("token", made, Text(made.token))


@token.command(config=True)
@click.option("--role", type=click.Choice(ROLES), default="worker", show_default=True)
@click.option("--team", default="", help="Its team; yours if not given.")
@click.option("--name", default="", help="Good for this one alone.")
@click.option("--days", type=click.FloatRange(0.0001, 3650), default=7.0, show_default=True)
def enrol(*, role: str, team: str, name: str, days: float, config: Path | None) -> Result:
    """Make a secret with which a person or program enrols at the server's /auth, as ROLE or less."""
    from fleet.operations.team.enrolments import CreateEnrolment

    seconds = max(1, int(days * 86400))
    made = client_of(config).call(CreateEnrolment(role, team, name, seconds))
    return Result("enrolment", made, Text(made.secret))


@token.command(config=True)
@click.option("-a", "--all", "everything", is_flag=True, help="Also those that count no more.")
@click.option("--limit", type=click.IntRange(1, 200), default=100, show_default=True)
def enrolments(*, everything: bool, limit: int, config: Path | None) -> Result:
    """List the secrets to enrol with, newest first; only their hashes are kept."""
    from fleet.operations.team.enrolments import ListEnrolments

    found = client_of(config).call(ListEnrolments(everything, limit=limit))
    rows = [
        (e.id, e.name or "anybody", e.role, e.team, when(e.at), "revoked" if e.revoked_at else "")
        for e in found
    ]
    columns: Columns = ["enrolment", Column("for", flexible=True), "role", "team", "made", ""]
    return Result("enrolments", found, Table(columns, rows, empty="No secrets to enrol with."))


@token.command("list", config=True)
@click.option("-a", "--all", "everything", is_flag=True, help="Also those that count no more.")
@click.option("--limit", type=click.IntRange(1, 200), default=100, show_default=True)
def list_(*, everything: bool, limit: int, config: Path | None) -> Result:
    """List the tokens, newest first; what they are themselves is not kept."""
    return _tokens(config, limit, everything=everything)


def _tokens(config: Path | None, limit: int, *, everything: bool = False) -> Result:
    from fleet.operations.team.tokens import ListTokens

    found = client_of(config).call(ListTokens(everything, limit=limit))
    rows = [
        (t.id, t.name, t.role, t.team, when(t.at), "revoked" if t.revoked_at else "") for t in found
    ]
    columns: Columns = ["token", Column("name", flexible=True), "role", "team", "made", ""]
    return Result("tokens", found, Table(columns, rows, empty="No tokens."))


@token.command(config=True)
@click.argument("which", metavar="TOKEN")
def revoke(*, which: str, config: Path | None) -> Result:
    """Let a TOKEN count no more: its id, or a name for all of theirs.

    The id of a secret to enrol with ends that, and the tokens that came of it.
    """
    from fleet.operations.team.enrolments import RevokeEnrolment
    from fleet.operations.team.tokens import RevokeToken

    if which.startswith("e-") and which[2:].isdigit():
        done = client_of(config).call(RevokeEnrolment(which))
        return Result("enrolment", done, Text(f"Revoked {done.id} of team {done.team}."))
    gone = client_of(config).call(RevokeToken(which))
    return Result("tokens", gone, Text("\n".join(f"Revoked {t.id} of {t.name}." for t in gone)))
