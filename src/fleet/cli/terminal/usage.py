"""What was typed wrong, said our way: the command, the word, and the nearest right one."""

from __future__ import annotations

import click
from click.exceptions import MissingParameter, NoSuchOption

from fleet.domain.errors import BadInput, nearest

OF_COMMANDS = {"--json", "--config"}  # every command has them, `fleet` itself has not


def explain_usage(error: click.UsageError) -> BadInput:
    ctx = error.ctx
    prefix = place_of(ctx)
    match error:
        case NoSuchOption():
            name = error.option_name
            near = "" if name in OF_COMMANDS else nearest(name, _options(ctx))
            return BadInput(f"{prefix}there is no option '{name}'.", fix=near or _see(ctx))
        case MissingParameter() if error.param is not None:
            name, kind = _name(error.param), error.param.param_type_name
            return BadInput(f"{prefix}the {kind} {name} is missing.", fix=_see(ctx))
        case click.BadParameter() if error.param is not None:
            message = f"{prefix}{_name(error.param)}: {_sentence(error.message)}"
            return BadInput(message, fix=_near_choice(error) or _see(ctx))
    message = _sentence(error.format_message())
    if ctx is not None and isinstance(ctx.command, click.Group) and message == "Missing command.":
        known = ", ".join(ctx.command.list_commands(ctx))
        return BadInput(f"{prefix}the command is missing.", fix=f"It has: {known}.")
    quote = "Text with spaces needs quotes. " if "extra argument" in message else ""
    return BadInput(prefix + message, fix=quote + _see(ctx))


def place_of(ctx: click.Context | None) -> str:
    """`config set: ` for an error in that command, or nothing in `fleet` itself."""
    path = ctx.command_path.partition(" ")[2] if ctx is not None else ""
    return f"{path}: " if path else ""


def _options(ctx: click.Context | None) -> list[str]:
    if ctx is None:
        return []
    options = (p for p in ctx.command.params if isinstance(p, click.Option) and not p.hidden)
    return [name for param in options for name in (*param.opts, *param.secondary_opts)]


def _name(param: click.Parameter) -> str:
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return param.human_readable_name


def _near_choice(error: click.BadParameter) -> str:
    kind = error.param.type if error.param is not None else None
    words = error.message.split("'")
    if not isinstance(kind, click.Choice) or len(words) < 2:
        return ""
    return nearest(words[1], [str(choice) for choice in kind.choices])


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _see(ctx: click.Context | None) -> str:
    if ctx is None:
        return ""
    after = (
        "Options come after the command's name: s" if isinstance(ctx.command, click.Group) else "S"
    )
    return f"{after}ee `{ctx.command_path} --help`."
