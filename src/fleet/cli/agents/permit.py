"""`fleet approve`, `fleet deny` and `fleet interrupt`: keys on an agent's screen, from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fleet.cli.terminal.completion import complete_agents_at_work
from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import command
from fleet.cli.terminal.render import Result, Text

if TYPE_CHECKING:
    from pathlib import Path

agent_argument = click.argument("name", metavar="AGENT", shell_complete=complete_agents_at_work)
asks_option = click.option(
    "--asks", default="", metavar="TEXT", help="Answer only if it still asks for exactly this."
)


@command(config=True)
@agent_argument
@asks_option
@click.option(
    "--always",
    is_flag=True,
    help="Allow it from now on, where the dialog offers that: `fleet explain` shows how far it goes.",
)
def approve(
    name: str,
    asks: str,
    always: bool,  # noqa: FBT001  # click passes by name
    config: Path | None,
) -> Result:
    """Allow what AGENT asks for in the permission dialog on its screen: once, or from now on.

    `fleet list` and `fleet explain` show what it asks for. With `--always` the agent's program
    remembers it in its own way: Claude Code for the project or the session, Codex for commands that
    begin alike.
    """
    return _answered(config, name, asks, allow=True, always=always)


@command(config=True)
@agent_argument
@asks_option
def deny(name: str, asks: str, config: Path | None) -> Result:
    """Refuse what AGENT asks for in the permission dialog on its screen.

    Its turn ends, and it waits for you: say what to do instead.

        fleet deny fix-login
        fleet deny t-3 && fleet prompt t-3 "Do not delete anything"
    """
    return _answered(config, name, asks, allow=False)


def _answered(
    config: Path | None, name: str, asks: str, *, allow: bool, always: bool = False
) -> Result:
    from fleet.operations.tasks.observe import PermitRun

    row = connect(config=config).call(PermitRun(name, allow, asks, always))
    word = "Always allowed" if always else "Allowed" if allow else "Denied"
    return Result("permit", row, Text(f"{word} {row.task}: {row.asks}"))


@command(config=True)
@agent_argument
def interrupt(name: str, config: Path | None) -> Result:
    """End AGENT's turn: press Escape in its terminal. It waits for what you say next."""
    from fleet.operations.tasks.transcript import InterruptRun

    screen = connect(config=config).call(InterruptRun(name))
    text = f"Interrupted {name}. Tell it what to do: fleet prompt {name} TEXT"
    return Result("screen", screen, Text(text))
