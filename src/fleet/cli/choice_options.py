"""Who does the work, and what they may do: the same options of `add`, `create`, `spawn` and others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.completion import complete_agents, complete_coders
from fleet.domain.fleet import PERMISSIONS

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT = "Default: the setting `coder`"


def choice_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """--agent, --coder, --model and --permissions."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


_OPTIONS = (
    click.option(
        "-a",
        "--agent",
        default="",
        shell_complete=complete_agents,
        help=f"The agent (role) or coder. {DEFAULT}; `default`: decided when the task starts.",
    ),
    click.option("--coder", default="", shell_complete=complete_coders, help="The coder."),
    click.option("--model", default="", help="The model."),
    click.option(
        "--permissions",
        default="",
        type=click.Choice(("", *PERMISSIONS)),
        metavar=f"[{'|'.join(PERMISSIONS)}]",
        help="What the agent may do. Default: as the agent is declared.",
    ),
)
