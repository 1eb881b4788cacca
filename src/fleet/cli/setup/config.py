"""Setting up: `fleet init`, `validate`, `config` and `trust`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fleet.cli.terminal.completion import complete_keys
from fleet.cli.terminal.connect import say_warnings
from fleet.cli.terminal.frame import command, group, wants_json
from fleet.cli.terminal.render import can_ask, confirm
from fleet.cli.terminal.view import Cell, Column, Raw, Result, Stack, Table, Text
from fleet.domain.errors import BadInput, Forbidden, NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fleet.config import Loaded
    from fleet.config.commands.init import Begun, Imported
    from fleet.config.commands.set import Change, SettingFiles
    from fleet.config.commands.show import Shown

KINDS = ("python", "node", "rails", "rust", "go", "generic")


@command()
@click.option("--type", "kind", type=click.Choice(KINDS), help="The kind of project.")
@click.option("--output", type=click.Path(path_type=Path), help="Write this file instead.")
@click.option("--force", is_flag=True, help="Replace an existing fleet.yaml; the old file is kept.")
@click.option(
    "--yes", is_flag=True, help="Run the set-up commands in each new worktree; do not ask."
)
@click.option("--migrate-legacy", is_flag=True, help="Import the settings of older tools.")
def init(
    *, kind: str | None, output: Path | None, force: bool, yes: bool, migrate_legacy: bool
) -> Result:
    """Set up the home, and the project's fleet.yaml if there is none.

    The agents in it use a coder that is installed here. It asks before it writes commands that run
    in each new worktree; without a terminal to ask on, it comments them out.
    """
    from fleet.app.coders import on_path
    from fleet.config.commands.init import Wishes, begin_project, ensure_home, migrate

    context = _context()
    fresh = ensure_home(context.home)
    wishes = Wishes(kind, output, force, on_path(context.env), _approval(yes=yes))
    begun = begin_project(context, wishes)
    imported = migrate(context, begun) if migrate_legacy else []
    data = {
        "home": str(context.home),
        "file": str(begun.file) if begun.file else None,
        "written": bool(begun.file) and not begun.kept,
        "kind": begun.kind or None,
        "ollama": begun.ollama._asdict() if begun.ollama else None,
        "coders": list(begun.coders),
        "setup": {"commands": list(begun.setup), "enabled": begun.set_up},
        "backup": str(begun.backup) if begun.backup else None,
        "imported": [_import_data(each) for each in imported],
    }
    lines = [f"{'Fleet home initialized at' if fresh else 'Fleet home:'} {context.home}"]
    lines += _project_lines(begun, context)
    if migrate_legacy:
        lines += [line for each in imported for line in _import_lines(each)] or [
            "There is nothing to import."
        ]
    return Result("init", data, Text("\n".join(lines)), notes=_init_notes(begun, context))


def _approval(*, yes: bool) -> Callable[[tuple[str, ...]], bool]:
    def approve(commands: tuple[str, ...]) -> bool:
        lines = "".join(f"\n  {command}" for command in commands)
        question = f"Run these commands in each new worktree?{lines}\n"
        return yes or (can_ask() and not wants_json() and confirm(question, otherwise="--yes"))

    return approve


def _setup_line(begun: Begun) -> str:
    commands = ", then ".join(f"`{command}`" for command in begun.setup)
    if begun.set_up:
        return f"Each new worktree runs {commands}."
    return f"Commented out in it, because each new worktree would run it: {commands}."


def _project_lines(begun: Begun, context: SettingFiles) -> list[str]:
    from fleet.config.loader import display_path

    if begun.file is None:
        return ["There is no project here. Run `fleet init` again inside one."]
    name = display_path(begun.file, context.cwd)
    if begun.kept:
        return [f"{name} already exists; it was not changed."]
    lines = [f"Created {name} for a {begun.kind} project."]
    if begun.backup is not None:
        lines.append(f"The old file is now {display_path(begun.backup, context.cwd)}.")
    if begun.ollama is not None:
        models = ", ".join(begun.ollama.models) or "no models yet"
        lines.append(f"Found an Ollama at {begun.ollama.endpoint}: {models}.")
    lines.append(
        f"Its agents use {begun.coders[0]}."
        if begun.coders
        else "No coding program was found, so its agents name claude: `fleet coders` lists all."
    )
    if begun.setup:
        lines.append(_setup_line(begun))
    return [*lines, "Next: read through it, then run `fleet validate`."]


def _init_notes(begun: Begun, context: SettingFiles) -> list[str]:
    from fleet.config import checkout_top

    if begun.file is None or checkout_top(begun.file.parent):
        return []
    return [f"{context.cwd} is not in a git repository, so tasks here cannot have worktrees."]


def _import_data(each: Imported) -> dict[str, Any]:
    return {
        "from": str(each.source),
        "into": str(each.into),
        "taken": list(each.taken),
        "left": list(each.left),
    }


def _import_lines(each: Imported) -> list[str]:
    taken = ", ".join(each.taken) or "nothing"
    lines = [f"Imported from {each.source} into {each.into}: {taken}."]
    return lines + [f"  Not imported: {reason}." for reason in each.left]


@command(config=True)
@click.option("--online", is_flag=True, help="Also ask the nodes whether they have the models.")
def validate(*, online: bool, config: Path | None) -> Result:
    """Check fleet.yaml and your own config.yaml.

    It also warns of settings that are valid but will not work well: a context that is too small for
    the coder, a tool that the coder does not have, one alias for different models.
    """
    loaded = load(config)
    if loaded.project_file is None:
        raise NotFound("There is no fleet.yaml here.", fix="`fleet init` writes one.")
    return _validated(loaded, more=_node_warnings(config) if online else [])


def _node_warnings(config: Path | None) -> list[str]:
    """Warnings about settings that do not agree with what the nodes report."""
    from fleet.cli.compute.nodes import WITHIN
    from fleet.cli.compute.views import advice
    from fleet.client import connect_here
    from fleet.domain.findings import judged_slots

    nodes = connect_here(config=config).compute()
    seen = nodes.survey(within=WITHIN)
    down = [f"{each.node} is offline: {each.why}." for each in seen if each.up is False]
    slots = [f"{each.said} {each.fix}" for each in judged_slots(nodes.fleet, seen)]
    return [*down, *advice(nodes.fleet, seen, nodes.unsaid), *slots]


def _validated(loaded: Loaded, more: Sequence[str] = ()) -> Result:
    from fleet.app.advice import advice
    from fleet.config.loader import display_path

    files = [file for file in (loaded.user_file, loaded.project_file) if file and file.exists()]
    names = [display_path(file, Path.cwd()) for file in files]
    if loaded.project_file is not None:
        names = names[-1:]
    lines = [f"{name} is valid." for name in names] or ["There is no file to check."]
    warnings = [*loaded.warnings, *advice(loaded), *more]
    data = {"files": [str(file) for file in files], "warnings": warnings}
    return Result("validation", data, Text("\n".join([*lines, *warnings])))


@group(invoke_without_command=True, json=True, config=True)
@click.option("--show-origin", is_flag=True, help="Show where each value comes from.")
@click.option("--raw", is_flag=True, help="Print the file as it is.")
@click.option("--edit", "-e", "edit_it", is_flag=True, help="Open the file in your editor.")
@click.option("--validate", "-v", "check", is_flag=True, help="Check the files.")
@click.option("--project", is_flag=True, help="With --raw or --edit: the project's file.")
@click.pass_context
def config(
    ctx: click.Context,
    *,
    show_origin: bool,
    raw: bool,
    edit_it: bool,
    check: bool,
    project: bool,
    config: Path | None,
) -> Result | None:
    """Show, set, unset, edit or check the settings."""
    ctx.obj = config
    if ctx.invoked_subcommand is not None:
        return None
    if edit_it:
        return _edit(config, project=project)
    if check:
        return _validated(load(config))
    return _raw(config, project=project) if raw else _show(config, show_origin=show_origin)


@config.command("show", config=True)
@click.option("--show-origin", is_flag=True, help="Show where each value comes from.")
@click.option("--raw", is_flag=True, help="Print the file as it is.")
@click.option("--project", is_flag=True, help="With --raw: the project's file.")
@click.pass_obj
def config_show(
    above: Path | None, *, show_origin: bool, raw: bool, project: bool, config: Path | None
) -> Result:
    """Show every setting and its value."""
    file = config or above
    return _raw(file, project=project) if raw else _show(file, show_origin=show_origin)


@config.command("set", config=True)
@click.argument(
    "assignments",
    nargs=-1,
    required=True,
    metavar="KEY=VALUE...",
    shell_complete=complete_keys,
)
@click.option("--project", is_flag=True, help="Set it in the project's fleet.yaml.")
@click.pass_obj
def config_set(
    above: Path | None, *, assignments: tuple[str, ...], project: bool, config: Path | None
) -> Result:
    """Set values in your own config.yaml, or in the project's file."""
    from fleet.config.commands.set import parsed
    from fleet.config.commands.show import one_line
    from fleet.config.keys.values import display_value

    file = config or above
    changes = [parsed(each) for each in assignments]
    target, loaded = _apply(changes, file, project=project)
    layer = _layer(file, project=project)
    values = {".".join(c.path): display_value(c.key, c.value) for c in changes}
    lines = [f"{path} = {one_line(value)}" for path, value in values.items()]
    text = Text("\n".join([*lines, f"Written to {target}."]))
    notes = _overridden(loaded, layer, list(values)) if loaded is not None else []
    return Result("config_set", {"file": str(target), "values": values}, text, notes=notes)


def _overridden(loaded: Loaded, layer: str, paths: list[str]) -> list[str]:
    from fleet.config.commands.show import one_of

    settings = [one_of(loaded, path) for path in paths if path in loaded.origins]
    return [
        f"{each.setting} is still {each.text}: {each.origin} wins."
        for each in settings
        if each.origin.layer != layer
    ]


@config.command("get", config=True)
@click.argument("key", shell_complete=complete_keys)
@click.option("--show-origin", is_flag=True, help="Show where the value comes from.")
@click.pass_obj
def config_get(above: Path | None, *, key: str, show_origin: bool, config: Path | None) -> Result:
    """Show the value of KEY; of a section such as `run`, all its values."""
    from fleet.config.commands.show import all_of
    from fleet.config.keys.lookup import resolve

    loaded = load(config or above)
    settings = all_of(loaded)
    inside = [each for each in settings if each.setting.startswith(f"{key}.")]
    if inside:
        return _settings(inside, loaded.warnings, show_origin=show_origin)
    path = ".".join(resolve(key)[1])
    setting = next((each for each in settings if each.setting == path), None)
    if setting is None:
        raise NotFound(f"{path} is not set.", fix="`fleet config` lists the settings.")
    data, value = _origin_data(setting), setting.value
    text = value if isinstance(value, str) else setting.whole
    origin = f"  ({setting.origin})" if show_origin else ""
    return Result("config_get", data, Text(f"{text}{origin}"), notes=loaded.warnings)


@config.command("find", config=True)
@click.argument("words", nargs=-1, required=True, metavar="WORD...")
@click.pass_obj
def config_find(above: Path | None, *, words: tuple[str, ...], config: Path | None) -> Result:
    """Find the settings with every WORD in their name or value, and where each is set."""
    from fleet.cli.terminal.connect import connect
    from fleet.operations.settings import FindSettings

    rows = connect(config=config or above).call(FindSettings(" ".join(words)))
    cells = [[row.setting, row.text, row.origin] for row in rows]
    columns = [Column("setting"), Column("value", flexible=True), Column("from", flexible=True)]
    empty = "No setting has these words. `fleet config` lists all."
    return Result("settings", list(rows), Table(columns, cells, empty=empty))


@config.command("unset", config=True)
@click.argument("keys", nargs=-1, required=True, metavar="KEY...", shell_complete=complete_keys)
@click.option("--project", is_flag=True, help="Remove it from the project's fleet.yaml.")
@click.pass_obj
def config_unset(
    above: Path | None, *, keys: tuple[str, ...], project: bool, config: Path | None
) -> Result:
    """Remove settings from your own config.yaml, or from the project's file."""
    from fleet.config.commands.set import UNSET, Change
    from fleet.config.commands.show import one_of
    from fleet.config.keys.lookup import resolve

    changes = [Change(*resolve(key.strip()), UNSET) for key in keys]
    target, loaded = _apply(changes, config or above, project=project)
    paths = [".".join(change.path) for change in changes]
    lines = [f"{path} is no longer set in {target}." for path in paths]
    values = [one_of(loaded, path) for path in paths if loaded and path in loaded.origins]
    lines += [f"{each.setting} is now {each.text} ({each.origin})." for each in values]
    return Result("config_unset", {"file": str(target), "keys": paths}, Text("\n".join(lines)))


def _apply(
    changes: Sequence[Change], file: Path | None, *, project: bool
) -> tuple[Path, Loaded | None]:
    """Change your own config.yaml, or a project's file; that file, and the settings as they are now."""
    from fleet.config.commands.set import apply
    from fleet.config.keys import table

    context, layer = _context(), _layer(file, project=project)
    if layer == table.USER:
        _only_people("set a person's own settings")
    target = _existing(context.cwd / file) if file else context.file(layer)
    return target, apply(changes, file=target, layer=layer, context=context)


def _layer(file: Path | None, *, project: bool) -> str:
    from fleet.config.keys import table

    return table.PROJECT if project or file else table.USER


@config.command("edit", config=True)
@click.option("--project", is_flag=True, help="Edit the project's fleet.yaml.")
@click.pass_obj
def config_edit(above: Path | None, *, project: bool, config: Path | None) -> Result:
    """Open the project's fleet.yaml, or your own config.yaml, in your editor."""
    _only_people("edit a person's own settings")
    return _edit(config or above, project=project)


@config.command("validate", config=True)
@click.pass_obj
def config_validate(above: Path | None, *, config: Path | None) -> Result:
    """Check the settings files that exist."""
    return _validated(load(config or above))


@command(config=True)
@click.option("--show", is_flag=True, help="Only show what would be trusted.")
@click.option("--revoke", is_flag=True, help="Stop trusting this project.")
def trust(*, show: bool, revoke: bool, config: Path | None) -> Result:
    """Trust this project's settings to run commands, send data out and choose the store."""
    from fleet.config import trust as trusting
    from fleet.config.files.write import only_writer

    if show and revoke:
        raise BadInput("--show and --revoke cannot be used together.", fix="Give one.")
    context, loaded = _context(), load(config)
    file = loaded.project_file
    if file is None:
        raise NotFound("There is no fleet.yaml here.", fix="`fleet init` writes one.")
    if not (show or revoke):
        _only_people("trust the settings of its own project")
    if revoke:
        with only_writer(context.home):
            done = trusting.revoke(context.home, file)
        text = f"{file} is no longer trusted." if done else f"{file} was not trusted."
        return Result("trust", {"file": str(file), "trusted": False}, Text(text))
    if loaded.asked and not show:
        with only_writer(context.home):
            trusting.record(context.home, file, trusting.values(loaded.asked))
    return _trust_result(loaded, file, trusted=loaded.trusted or not show)


def _trust_result(loaded: Loaded, file: Path, *, trusted: bool) -> Result:
    from fleet.config.commands.show import one_line
    from fleet.config.keys.table import SENDS
    from fleet.config.keys.values import display_value

    reasons = [
        (".".join(path), display_value(leaf.key, leaf.value), leaf.key.trust or SENDS)
        for path, leaf in loaded.asked.items()
    ]
    settings = [{"setting": name, "value": value, "why": why} for name, value, why in reasons]
    data = {"file": str(file), "trusted": trusted, "settings": settings}
    rows = [(name, one_line(value), why) for name, value, why in reasons]
    if not rows:
        return Result("trust", data, Text(f"{file} asks for nothing that needs trust."))
    columns = [Column("setting"), Column("value", flexible=True), Column("why it needs trust")]
    word = "Trusted" if trusted else "Not trusted yet"
    return Result("trust", data, Stack([(f"{word}: {file}", Table(columns, rows))]))


def _only_people(what: str) -> None:
    """Raise when a run calls this: agents may not change the settings that bind them."""
    if os.environ.get("FLEET_RUN_ID"):
        raise Forbidden(f"An agent may not {what}.", fix="Ask a person.")


def _context() -> SettingFiles:
    from fleet.config import home
    from fleet.config.commands.set import SettingFiles

    try:
        cwd = Path.cwd()
    except FileNotFoundError:
        raise BadInput(
            "The current directory no longer exists.", fix="cd to a directory that exists."
        ) from None
    return SettingFiles(cwd, home(os.environ), os.environ)


def load(config: Path | None) -> Loaded:
    from fleet.config import load as read

    context = _context()
    return read(context.cwd, home=context.home, env=context.env, config_file=config)


def load_and_warn(config: Path | None) -> Loaded:
    """For a command that only uses the settings: say once what is withheld from it, and why."""
    loaded = load(config)
    say_warnings(loaded.warnings)
    return loaded


def _show(config: Path | None, *, show_origin: bool) -> Result:
    from fleet.config.commands.show import all_of

    loaded = load(config)
    return _settings(all_of(loaded), loaded.warnings, show_origin=show_origin)


def _settings(settings: Sequence[Shown], notes: Sequence[str], *, show_origin: bool) -> Result:
    rows = []
    for each in settings:
        cells = [each.setting, each.text, *([str(each.origin)] if show_origin else [])]
        rows.append([Cell(cell, "dim" if each.origin.layer == "default" else "") for cell in cells])
    columns = [Column("setting"), Column("value", flexible=True)]
    columns += [Column("from", flexible=True)] if show_origin else []
    data = [_origin_data(each) for each in settings]
    return Result("config", data, Table(columns, rows), notes=notes)


def _origin_data(each: Shown) -> dict[str, Any]:
    layer, (name, line), note = each.origin
    origin = {"layer": layer, "file": name, "line": line, "note": note}
    return {"setting": each.setting, "value": each.value, **origin}


def _existing(file: Path) -> Path:
    if file.is_file():
        return file
    what = "is a directory, not a file." if file.is_dir() else "is not there."
    raise NotFound(f"{file} {what}", fix="`fleet init` writes your files.")


def _raw(config: Path | None, *, project: bool) -> Result:
    context = _context()
    named = context.cwd / config if config else context.file("project" if project else "user")
    text = _existing(named).read_text(encoding="utf-8", errors="surrogateescape")
    return Result("config_file", {"file": str(named), "text": text}, Raw(text))


def _edit(config: Path | None, *, project: bool) -> Result:
    """The project's file, which people write by hand; without one, your own."""
    from fleet.cli.terminal.editor import edit_file
    from fleet.config.commands.init import ensure_home

    context = _context()
    ensure_home(context.home)
    named = context.file("project") if project else context.edited()
    file = _existing(context.cwd / config if config else named)
    edit_file(file)
    return _validated(load(config))
