"""`fleet help COMMAND`. The pages of `fleet help` and `fleet help all` are in `main`, which loads less."""

from __future__ import annotations

import click

from fleet.cli.main import COMMANDS
from fleet.cli.terminal.frame import command, run


def _complete_commands(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    typed = ctx.params.get("words") or ()
    return [] if typed else [n for n in ("all", *COMMANDS) if n.startswith(incomplete)]


@command("help", json=False)
@click.argument("words", nargs=-1, metavar="[COMMAND|all]", shell_complete=_complete_commands)
def help_(*, words: tuple[str, ...]) -> int:
    """Show the commands, or the help of one: `fleet help add` is `fleet add --help`.

    `fleet help` alone is `fleet --help`: the everyday commands. `fleet help all` lists every one.
    """
    from fleet.cli.root import root

    return run(root, [*words, "--help"])
