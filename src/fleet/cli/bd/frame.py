"""How `fleet bd` differs from our other commands: bd's JSON, and 1 for every error."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.connect import connect
from fleet.cli.terminal.frame import FleetCommand, FleetGroup, explain, json_option
from fleet.cli.terminal.output import write, write_json
from fleet.cli.terminal.render import Raw, Result
from fleet.domain.errors import FleetError, Refused

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleet.cli.terminal.view import View
    from fleet.client import Client

FAILED = 1
SCHEMA = 1
AS_JSON, MAY_BE_JSON = "bd.json", "bd.json.perhaps"

# What bd has and this queue has no use for, and what does the same here.
ELSEWHERE = {
    "init": "`fleet init` makes the home, and the queue is in it.",
    "dolt": "The queue is one file, fleet.db in the home: back that up, or set store.url.",
    "sync": "The queue is shared through store.url; there is nothing to push or pull.",
    "export": "`fleet bd list --all --limit 0 --json` prints all of it.",
    "import": "`fleet config set queue=beads` takes tasks from a beads database in the home.",
    "daemon": "`fleet run --detach` starts the supervisor.",
    "doctor": "`fleet run status` shows whether the supervisor runs.",
    "config": "`fleet config show` and `fleet config set KEY=VALUE`.",
    "edit": "`fleet bd update ID --title TITLE --description TEXT`.",
    "label": "Set labels when you create the task: `fleet bd create TITLE --labels a,b`.",
    "epic": "`fleet bd create TITLE --type epic`, then `--parent ID` for its parts.",
    "search": "`fleet bd list --all` shows every task.",
    "stats": "`fleet tasks --all` shows every task.",
    "status": "`fleet tasks` lists the tasks.",
    "defer": "`fleet pause ID`.",
    "undefer": "`fleet resume ID`.",
    "quickstart": "`fleet bd prime` prints how to work with the queue.",
    "onboard": "`fleet bd prime` prints how to work with the queue.",
    "setup": "`fleet init` sets up the home and the project.",
    "hooks": "Agents learn about the queue when they start; no hook is needed.",
    "migrate": "The store is brought up to date when it is opened.",
    "compact": "The store needs no compaction.",
    "human": "`fleet questions` lists the open questions.",
}


class BdCommand(FleetCommand):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, json=False, **kwargs)
        self.params.insert(len(self.params) - 1, bd_json_option())


class BdGroup(FleetGroup):
    command_class = BdCommand
    group_class = type

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ours = args[: args.index("--")] if "--" in args else args
        ctx.meta.setdefault(MAY_BE_JSON, "--json" in ours)
        try:
            return super().parse_args(ctx, args or ["--help"])
        except click.UsageError as error:
            raise _as_bd(ctx, error) from error

    def invoke(self, ctx: click.Context) -> int:
        try:
            return super().invoke(ctx)
        except (FleetError, click.ClickException, OSError) as error:
            raise _as_bd(ctx, error) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if ctx.info_name == "bd" and args[0] in ELSEWHERE:
            raise Refused(
                f"`bd {args[0]}` is not supported here: this queue is Fleet's own.",
                fix=ELSEWHERE[args[0]],
            )
        return super().resolve_command(ctx, args)


def _as_bd(ctx: click.Context, error: Exception) -> Exception:
    """The error as bd would end: status 1, and with --json one object on stderr."""
    known = explain(error)
    if known is None:
        return error
    known.exit_status = FAILED
    if not ctx.meta.get(MAY_BE_JSON):
        return known
    body = {"error": known.message, "code": known.code, "hint": known.fix}
    head = {"schema_version": SCHEMA} if _enveloped() else {}
    write_json(_dumps(head | body), sys.stderr)
    return click.exceptions.Exit(FAILED)


def bd_json_option() -> click.Option:
    return json_option(AS_JSON, "Print JSON in bd's format.")


def version_option() -> click.Option:
    def print_version(ctx: click.Context, _param: click.Parameter, value: object) -> None:
        if value and not ctx.resilient_parsing:
            from fleet import __version__

            write(f"bd of fleet {__version__}\n")
            ctx.exit()

    words = "Show the version and exit."
    return click.Option(
        ["-V", "--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=print_version,
        help=words,
    )


def answer(data: Any, view: View, *, notes: Sequence[str] = (), exit_status: int = 0) -> Result:
    """`data` as bd prints it with --json, else the view."""
    if not click.get_current_context().meta.get(AS_JSON):
        return Result("bd", data, view, notes, exit_status)
    body = {"schema_version": SCHEMA, "data": data} if _enveloped() else data
    return Result("bd", data, Raw(_dumps(body)), exit_status=exit_status)


def _enveloped() -> bool:
    return os.environ.get("BD_JSON_ENVELOPE", "1") not in {"0", "false"}


def _dumps(data: Any) -> str:
    import json

    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def bd_client(cwd: Path | None = None) -> Client:
    return connect(cwd=cwd)
