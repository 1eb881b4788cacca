"""What was typed wrong, said our way: the command, the word, and the nearest right one."""

from __future__ import annotations

import re

import click
from click.exceptions import MissingParameter, NoSuchOption

from fleet.domain.errors import BadInput, nearest

PLAIN = {  # what click says of a value, and what we say
    "a valid integer( range)?": "a whole number",
    "a valid float( range)?": "a number",
    r"is not in the range ([^<>]+)<=x<=(.+?)(?=\.?$)": r"is not between \1 and \2",
    r"is not in the range x>=(.+?)(?=\.?$)": r"is less than \1",
    "is not one of '', ": "is not one of ",
    r"does not match the formats? '%.+": "is not a time",
    r"Got unexpected extra arguments? \((.+)\)": r"unexpected argument: \1",
}
TEXTS = {  # arguments in which people write sentences
    *("title", "text", "prompt", "words", "question", "why", "what", "goal", "fact", "payload"),
}
OF_COMMANDS = {"--json", "--config"}  # every command has them, `fleet` itself has not


def explain_usage(error: click.UsageError) -> BadInput:
    ctx = error.ctx
    prefix = place_of(ctx)
    match error:
        case NoSuchOption():
            name = error.option_name
            near = "" if name in OF_COMMANDS else nearest(name, _options(ctx))
            fix = near or f"{_dash(ctx)}{_see(ctx, name, before_command=True)}"
            return BadInput(f"{prefix}there is no option '{name}'.", fix=fix)
        case MissingParameter() if error.param is not None:
            name, kind = _name(error.param), error.param.param_type_name
            return BadInput(f"{prefix}the {kind} {name} is missing.", fix=_see(ctx))
        case click.BadParameter() if error.param is not None:
            message = f"{prefix}{_name(error.param)}: {plain_words(error.message)}"
            return BadInput(message, fix=_near_choice(error) or _see(ctx))
    message = plain_words(error.format_message())
    if ctx is not None and isinstance(ctx.command, click.Group) and message == "Missing command.":
        known = ", ".join(ctx.command.list_commands(ctx))
        return BadInput(f"{prefix}the command is missing.", fix=f"It has: {known}.")
    if "extra argument" in error.format_message():
        if re.search(r": -.", message):
            return BadInput(prefix + message, fix=f"Options go before --. {_see(ctx)}")
        return BadInput(prefix + message, fix=f"{_takes(ctx)} {_see(ctx)}")
    return BadInput(prefix + message, fix=_see(ctx))


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
    return param.human_readable_name.strip("[]")


def _near_choice(error: click.BadParameter) -> str:
    kind = error.param.type if error.param is not None else None
    words = error.message.split("'")
    if not isinstance(kind, click.Choice) or len(words) < 2:
        return ""
    return nearest(words[1], [str(choice) for choice in kind.choices])


def plain_words(text: str) -> str:
    text = " ".join(text.split())
    for words, plain in PLAIN.items():
        text = re.sub(words, plain, text)
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _see(ctx: click.Context | None, name: str = "", *, before_command: bool = False) -> str:
    if ctx is None:
        return ""
    if before_command and ctx.parent is None and name in OF_COMMANDS:
        return f"Options come after the command's name: `fleet status {name}`."
    group = before_command and isinstance(ctx.command, click.Group)
    after = "Options come after the command's name: s" if group else "S"
    return f"{after}ee `{ctx.command_path} --help`."


def _takes(ctx: click.Context | None) -> str:
    """The hint for too many arguments."""
    params = ctx.command.params if ctx is not None else []
    arguments = [p.make_metavar(ctx) for p in params if isinstance(p, click.Argument) and ctx]
    if ctx is None or _takes_text(ctx):
        return "Text with spaces needs quotes."
    if not arguments:
        return "It takes only options."
    return f"It takes {' '.join(arguments)}."


def _takes_text(ctx: click.Context) -> bool:
    arguments = (param for param in ctx.command.params if isinstance(param, click.Argument))
    return any(param.name in TEXTS for param in arguments)


def _dash(ctx: click.Context | None) -> str:
    """A hint for text that was taken for an option, where the command takes text."""
    if ctx is None or not _takes_text(ctx):
        return ""
    words = [ctx.command_path]
    for param in ctx.command.params:
        if param.name in TEXTS:
            break
        words += [param.make_metavar(ctx)] if isinstance(param, click.Argument) else []
    return f"Text that begins with - goes after --: {' '.join(words)} -- TEXT. "
