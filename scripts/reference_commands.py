"""Write docs/reference/commands.md from the command table; `--check` only says whether it is stale."""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import dedent

import click

from fleet.cli.main import COMMANDS, HEADINGS, LOCAL
from fleet.cli.root import examples_of, load

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "commands.md"
HEAD = """\
# Commands

Made from the command table by `scripts/reference_commands.py`; do not edit.

An *operation* reads or changes the store, here or through a server. A *local* command acts on this
machine: its files, its terminal, its processes. Every command takes `--help`.
[JSON](json.md) describes what `--json` prints, and [exit codes](exit-codes.md) the exit status.
"""


def reference() -> str:
    parts = [HEAD]
    for heading, (everyday, others) in HEADINGS.items():
        parts.append(f"## {heading}\n")
        parts += [part for name in (*everyday, *others) for part in command_parts(name)]
    return "\n".join(parts)


def command_parts(name: str) -> list[str]:
    command = load(name)
    kind = "Local" if name in LOCAL else "Operation"
    ctx = click.Context(command, info_name=f"fleet {name}", **command.context_settings)
    parts = [
        f"### fleet {name}\n\n{COMMANDS[name][1]} *{kind}.*\n",
        *usage_parts(ctx, skip_first=True),
    ]
    if isinstance(command, click.Group):
        for sub_name in command.list_commands(ctx):
            sub = command.get_command(ctx, sub_name)
            assert sub is not None
            if not sub.hidden:
                parts.append(f"#### fleet {name} {sub_name}\n")
                inner = click.Context(sub, ctx, sub_name, **sub.context_settings)
                parts += usage_parts(inner, skip_first=False)
    return parts


def usage_parts(ctx: click.Context, *, skip_first: bool) -> list[str]:
    """The usage line, what the help says beyond its first sentence, and the options."""
    command = ctx.command
    paragraphs = (command.help or "").split("\n\n")
    words = [paragraph_of(text) for text in paragraphs[1 if skip_first else 0 :] if text.strip()]
    usage = command.get_usage(ctx).removeprefix("Usage: ")
    return [
        f"```text\n{' '.join(usage.split())}\n```\n",
        *words,
        *option_parts(ctx),
        *example_parts(ctx),
    ]


def example_parts(ctx: click.Context) -> list[str]:
    lines = "\n".join(examples_of(ctx.command_path))
    return [f"```sh\n{lines}\n```\n"] if lines else []


def paragraph_of(text: str) -> str:
    if text.startswith("\b\n"):
        return f"```text\n{dedent(text[2:]).rstrip()}\n```\n"
    return " ".join(text.split()) + "\n"


def option_parts(ctx: click.Context) -> list[str]:
    records = [
        record
        for param in ctx.command.get_params(ctx)
        if isinstance(param, click.Option)
        and "--help" not in param.opts
        and (record := param.get_help_record(ctx)) is not None
    ]
    if not records:
        return []
    cells = [[text.replace("|", "\\|") for text in record] for record in records]
    rows = [f"| `{names}` | {words} |" for names, words in cells]
    return ["\n".join(["| option | |", "|---|---|", *rows]) + "\n"]


if __name__ == "__main__":
    from write_page import main

    sys.exit(main(PAGE, reference()))
