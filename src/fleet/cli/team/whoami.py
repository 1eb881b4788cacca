"""`fleet whoami`: who Fleet takes you for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.human import moment
from fleet.cli.terminal.view import Pairs, Result

if TYPE_CHECKING:
    from pathlib import Path

    from fleet.cli.terminal.view import Value


@command(config=True)
def whoami(config: Path | None) -> Result:
    """Show your name, your role and team, what you may do, and until when.

    With FLEET_URL and FLEET_TOKEN it is what the server says of that token.
    """
    from fleet.operations.team.sessions import ShowMe

    me = connect(config=config).call(ShowMe())
    pairs: list[tuple[str, Value]] = [
        ("name", me.name),
        ("role", me.role),
        ("team", me.team),
        ("may", " ".join(me.permissions)),
        *([("run", me.run)] if me.run else []),
        *([("until", moment(me.until))] if me.until else []),
        ("version", me.version),
    ]
    return Result("me", me, Pairs(pairs))
