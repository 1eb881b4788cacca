'''How a command is written: it takes what was typed, returns a `Result`, and raises `FleetError`.

    import click
    from fleet.cli.terminal.connect import connect
    from fleet.cli.terminal.frame import command
    from fleet.cli.terminal.view import Cell, Column, Result, Table

    @command(config=True)                     # adds --json, --help, and --config FILE
    @click.argument("team", required=False, default="")
    @click.option("--limit", type=click.IntRange(min=1), default=20, help="Show at most this many.")
    def tasks(*, team: str, limit: int, config: Path | None) -> Result:
        """List the tasks, newest first."""
        from fleet.operations.tasks.list import ListTasks  # imported when it runs: start-up time

        tasks = connect(config=config).call(ListTasks(team=team, limit=limit))
        rows = [(t.id, Cell(t.status, "green"), t.title) for t in tasks]
        view = Table(["task", "state", Column("title", flexible=True)], rows, empty="No tasks.")
        return Result("tasks", tasks, view)   # --json prints `tasks`

Indented paragraphs of a docstring (examples) are shown line by line, the others are wrapped.
It never prints, never catches `FleetError` to show it, never calls `sys.exit`. A command with
subcommands is a `@group()`; its own are `@thatgroup.command("set")`. A command that goes on for
long returns a `Feed` or draws with `fleet.cli.terminal.live.Live`; `wants_json()` says which was asked for.
In a test: `run(tasks, ["--limit", "3"])` returns the exit status.
'''

from __future__ import annotations

import errno
import inspect
import os
import sys
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

import click

from fleet.cli.terminal import output, render
from fleet.cli.terminal.view import Result
from fleet.domain.errors import BadInput, FleetError, Refused, Unavailable, nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BUG, INTERRUPTED, READER_GONE = 70, 130, 141
AS_JSON = "fleet.json"
SETTINGS = {"show_default": True, "max_content_width": 100}
DISK = {
    errno.ENOSPC: "Free some space on that disk, then run the command again.",
    errno.EDQUOT: "Free some of your quota on that disk, then run the command again.",
    errno.EACCES: "Give yourself access to it, or use another place (FLEET_HOME).",
    errno.EPERM: "Give yourself access to it, or use another place (FLEET_HOME).",
    errno.EROFS: "Make the disk writable, or use another place (FLEET_HOME).",
    errno.EIO: "The disk reports a failure. Check the system's log before you continue.",
    errno.EMFILE: "Raise the limit on open files (ulimit -n).",
    errno.ENFILE: "Close some programs: the machine has no open files left.",
}


class _Framed(click.Command):
    """A click command that shows the `Result` it returns; its value is the exit status."""

    def __init__(self, *args: Any, json: bool = True, config: bool = False, **kwargs: Any) -> None:
        kwargs["context_settings"] = SETTINGS | kwargs.get("context_settings", {})
        kwargs["add_help_option"] = False  # ours prints through the renderer
        super().__init__(*args, **kwargs)
        self.help = _keep_examples(self.help)
        for param in self.params:
            if isinstance(param, click.Option) and param.default == "":
                param.show_default = False  # `[default: ""]` tells nobody anything
        if config:
            self.params.append(_config_option())
        if json:
            self.params.append(json_option())
        self.params.append(_help_option())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click leaves it out of some
            raise

    def invoke(self, ctx: click.Context) -> int:
        result = super().invoke(ctx)
        if isinstance(result, Result):
            return render.show(result, as_json=bool(ctx.meta.get(AS_JSON)))
        if result is None or isinstance(result, int):
            return result or 0
        raise TypeError(f"{ctx.command_path} returned {type(result).__name__}, not a Result")


class FleetCommand(_Framed):
    pass


class FleetGroup(_Framed, click.Group):
    command_class = FleetCommand
    group_class = type

    def __init__(self, *args: Any, json: bool = False, **kwargs: Any) -> None:
        super().__init__(*args, json=json, no_args_is_help=False, **kwargs)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        command = self.get_command(ctx, args[0])
        if command is None and not ctx.resilient_parsing:
            from fleet.cli.terminal.usage import place_of

            fix = nearest(args[0], known) or self.hint(known)
            raise BadInput(f"{place_of(ctx)}'{args[0]}' is not a command.", fix=fix)
        return (args[0] if command else None), command, args[1:]

    def hint(self, known: Sequence[str]) -> str:
        """The suggestion for a command that does not exist."""
        return f"It has: {', '.join(known)}."


def command(
    name: str | None = None, *, json: bool = True, config: bool = False, **attrs: Any
) -> Callable[[Callable[..., Any]], FleetCommand]:
    """Make a command of a function; see the example above."""
    return click.command(name, cls=FleetCommand, json=json, config=config, **attrs)


def group(
    name: str | None = None, *, json: bool = False, config: bool = False, **attrs: Any
) -> Callable[[Callable[..., Any]], FleetGroup]:
    """Make a command that has subcommands.

    With `invoke_without_command=True, json=True` its function may return a `Result` itself; it then
    looks at `click.get_current_context().invoked_subcommand` first.
    """
    return click.group(name, cls=FleetGroup, json=json, config=config, **attrs)


def listing_group(function: Callable[[], None]) -> FleetGroup:
    """Make a group that, without a subcommand, does what its own command `list` does."""

    @wraps(function)
    def alone(**params: Any) -> Any:
        ctx = click.get_current_context()
        if ctx.invoked_subcommand:
            return None
        command = cast("FleetGroup", ctx.command).commands["list"]
        return ctx.invoke(command, **params)

    return group(invoke_without_command=True, json=True, config=True)(alone)


def wants_json() -> bool:
    """Whether the command that is running was asked for JSON."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and bool(ctx.meta.get(AS_JSON))


def _keep_examples(text: str | None) -> str | None:
    """Mark the indented paragraphs of a help text, so that click does not wrap them."""
    if text is None:
        return None
    parts = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(f"\b\n{part}" if part.startswith("    ") else part for part in parts)


def json_option(
    key: str = AS_JSON, words: str = "Print one JSON document instead of text."
) -> click.Option:
    """--json, which is noted in the context under `key`."""

    def note(ctx: click.Context, _param: click.Parameter, value: object) -> None:
        if value:
            ctx.meta[key] = True

    return click.Option(
        ["--json"], is_flag=True, is_eager=True, expose_value=False, callback=note, help=words
    )


def _config_option() -> click.Option:
    from pathlib import Path

    words = "Read this file instead of the project's fleet.yaml."
    return click.Option(["--config"], type=click.Path(path_type=Path), metavar="FILE", help=words)


def _help_option() -> click.Option:
    def print_help(ctx: click.Context, _param: click.Parameter, value: object) -> None:
        if value and not ctx.resilient_parsing:
            from fleet.cli.root import help_page

            output.write(help_page(ctx))
            ctx.exit()

    return click.Option(
        ["-h", "--help", "show_help"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=print_help,
        help="Show this message and exit.",
    )


def run(command: click.Command, argv: Sequence[str], *, prog: str = "fleet") -> int:
    """Run a command to its end, whatever happens, and return its exit status."""
    words = list(argv)
    as_json = "--json" in words[: words.index("--")] if "--" in words else "--json" in words
    try:
        with command.make_context(prog, words) as ctx:
            return int(command.invoke(ctx) or 0)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the last place before the person
        return ended(error, as_json=as_json)


def ended(error: Exception | KeyboardInterrupt, *, as_json: bool = False) -> int:
    """The exit status of a command that ended with this error, once it has been reported."""
    match error:
        case click.exceptions.Exit():
            return error.exit_code
        case output.ReaderGone():
            return READER_GONE
        case KeyboardInterrupt() | click.Abort():
            output.end_line(sys.stderr)
            return INTERRUPTED
    return report(error, as_json=as_json)


def report(error: Exception, *, as_json: bool) -> int:
    """Print what a person should see of this error; anything unforeseen is our bug."""
    known = explain(error)
    if known is None:
        return _report_bug(error, as_json=as_json)
    debug = os.environ.get("FLEET_DEBUG") or os.environ.get("AI_FLEET_DEBUG")
    wanted = debug not in {None, "", "0"}
    return render.fail(known, as_json=as_json, detail=_trace(error) if wanted else "")


def _report_bug(error: Exception, *, as_json: bool) -> int:
    from fleet import __version__

    versions = f"fleet {__version__}, Python {sys.version.split()[0]}, {sys.platform}"
    bug = FleetError(
        f"This is a bug in fleet ({type(error).__name__}: {error}).",
        fix=f"Please report it with the lines above and the command you typed ({versions}).",
        code="bug",
    )
    render.fail(bug, as_json=as_json, detail=_trace(error))
    return BUG


def _trace(error: Exception) -> str:
    import traceback

    return "".join(traceback.format_exception(error))


def explain(error: Exception) -> FleetError | None:
    """The error as a person should hear it, or None when it is a bug."""
    match error:
        case FleetError():
            return error
        case click.UsageError():
            from fleet.cli.terminal.usage import explain_usage

            return explain_usage(error)
        case click.ClickException():
            return Refused(error.format_message())
        case EOFError():
            return BadInput("The input ended before the question was answered.")
        case OSError(errno=number) if number in DISK:
            where = error.filename if error.filename is not None else "the disk"
            return Unavailable(f"{os.fsdecode(where)}: {error.strerror}.", fix=DISK[number])
    return None
