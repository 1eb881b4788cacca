"""`fleet` as a click group that knows its commands from the table and loads only the one it runs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

import click

from fleet.cli import main as table
from fleet.cli.terminal.frame import FleetGroup
from fleet.cli.terminal.output import write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem


MOST_EXAMPLES = 2


class Root(FleetGroup):
    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(table.COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        name = table.ALIASES.get(name, name)
        if name in table.COMMANDS:
            return load(name)
        return None

    def hint(self, _known: Sequence[str]) -> str:
        return "`fleet help all` lists the commands."

    def get_help(self, _ctx: click.Context) -> str:
        return table.overview().rstrip("\n")

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        named = [
            CompletionItem(name, help=words)
            for name, (_, words) in table.COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return named + click.Command.shell_complete(self, ctx, incomplete)


def load(name: str) -> click.Command:
    """The command of that name in the table, with its module loaded."""
    target, words = table.COMMANDS[name]
    module, _, attribute = target.partition(":")
    loaded = getattr(import_module(module), attribute)
    if not isinstance(loaded, click.Command):
        raise TypeError(f"{target} is not a command")
    loaded.short_help = words
    return loaded


def examples_of(path: str) -> list[str]:
    """The lines to type for the command `path`, such as `fleet config set`."""
    _, first, *others = path.split()
    command = [table.ALIASES.get(first, first), *others]
    from pathlib import Path

    lines = Path(__file__).with_name("examples.txt").read_text("utf-8").splitlines()
    same = [line for line in lines if line.split()[1 : 1 + len(command)] == command]
    return same[:MOST_EXAMPLES]


def help_page(ctx: click.Context) -> str:
    """What `--help` prints."""
    page = ctx.get_help() + "\n"
    path = ctx.command_path
    if " " not in path:
        return page
    lines = "".join(f"  {line}\n" for line in examples_of(path))
    return f"{page}\nExamples:\n{lines}" if lines else page


def _version_option() -> click.Option:
    def print_version(ctx: click.Context, _param: click.Parameter, value: object) -> None:
        if value and not ctx.resilient_parsing:
            write(table.version())
            ctx.exit()

    return click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=print_version,
        help="Show the version and exit.",
    )


root = Root("fleet", params=[_version_option()])
