"""`fleet mcp` as a command with a help page; see `fleet.cli.server.mcp_bridge`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fleet.app.coders import coders_with
from fleet.cli.terminal.frame import group
from fleet.cli.terminal.view import Column, Result, Stack, Table, Text
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.app.mcp_install import Registered

CODERS = coders_with("mcp")
WORDS = {"nothing": "as it was"}


@group(invoke_without_command=True)
@click.pass_context
def mcp(ctx: click.Context) -> int:
    """Serve the team's tools over MCP, on standard input and output.

    It uses the server at FLEET_URL (with FLEET_TOKEN), else the server of this home. If none is
    running, it works on the store of this home directly.

        fleet mcp install
    """
    if ctx.invoked_subcommand is not None:
        return 0
    from fleet.cli.server.mcp_bridge import bridge

    return bridge()


def options(function: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--scope",
            type=click.Choice(("user", "project")),
            default="user",
            show_default=True,
            help="Your own settings, or this project's.",
        ),
        click.option(
            "--coder",
            "coders",
            multiple=True,
            type=click.Choice((*CODERS, "all")),
            help="Only this program's settings. May be repeated.",
        ),
    ):
        function = option(function)
    return function


@mcp.command()
@options
@click.option(
    "--print", "only_print", is_flag=True, help="Show what would be written; write nothing."
)
def install(*, coders: tuple[str, ...], scope: str, only_print: bool) -> Result:
    """Register `fleet mcp` in the settings of Claude Code, Codex and OpenCode.

    Of programs that are not installed here, only those that --coder names are registered. Nothing
    else in those settings changes, and an existing registration stays as it is.
    """
    import os

    from fleet.app import mcp_install as registering
    from fleet.app.coders import on_path

    wanted = coders or tuple(name for name in CODERS if name in on_path(os.environ))
    if not wanted:
        raise Refused(
            f"None of these programs is installed: {', '.join(CODERS)}.",
            fix="Install one, or name one: fleet mcp install --coder claude",
        )
    done = _done(registering.would_install if only_print else registering.install, wanted, scope)
    if only_print:
        return Result("registered", _data(done), Stack([(r.file, Text(r.text)) for r in done]))
    absent = [name for name in CODERS if name not in wanted and "all" not in wanted]
    note = f"Not installed here: {', '.join(absent)}. --coder NAME registers one all the same."
    return _result(done)._replace(notes=(note,) if absent and not coders else ())


@mcp.command()
@options
def uninstall(*, coders: tuple[str, ...], scope: str) -> Result:
    """Remove `fleet mcp` from the settings of these programs."""
    from fleet.app import mcp_install as registering

    return _result(_done(registering.uninstall, coders, scope))


def _done(
    act: Callable[..., list[Registered]], coders: tuple[str, ...], scope: str
) -> list[Registered]:
    import os

    from fleet.client import here
    from fleet.config import checkout_top

    named = CODERS if not coders or "all" in coders else tuple(dict.fromkeys(coders))
    cwd = here()
    return act(named, scope, checkout_top(cwd) or cwd, os.environ)


def _result(done: Sequence[Registered]) -> Result:
    rows = [(r.coder, WORDS.get(r.did, r.did), r.file) for r in done]
    columns = ("program", "", Column("file", flexible=True))
    return Result("registered", _data(done), Table(columns, rows))


def _data(done: Sequence[Registered]) -> list[dict[str, str]]:
    return [r._asdict() for r in done]
