"""What `fleet init` does: the home, the project's file, and the settings of older tools."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from fleet.config import legacy, trust
from fleet.config.commands import init_files as starter
from fleet.config.commands.set import Change, SettingFiles, apply
from fleet.config.files.problems import Problems
from fleet.config.files.write import only_writer, write_whole
from fleet.config.keys import table
from fleet.config.keys.kinds import Wrong, take
from fleet.config.keys.lookup import resolve
from fleet.config.loader import file_layer
from fleet.config.places import PROJECT_FILE, USER_FILE, find_project, user_home
from fleet.config.project_kind import FoundOllama, find_ollama, kind_of, set_up
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DIRECTORIES = ("tasks", "runs", "worktrees", "logs")


class Begun(NamedTuple):
    """What `init` did. `file`: None outside of a project; `kept`: it existed already."""

    file: Path | None
    kept: bool
    kind: str = ""
    ollama: FoundOllama | None = None
    backup: Path | None = None
    coders: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()
    set_up: bool = False  # whether the commands in `setup` are to run in each new worktree


class Imported(NamedTuple):
    source: Path
    into: Path
    taken: tuple[str, ...]
    left: tuple[str, ...]  # each with the reason


def ensure_home(home: Path) -> bool:
    """Create what is missing in the home; return whether the home is new."""
    fresh = not home.exists()
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name in DIRECTORIES:
            (home / name).mkdir(exist_ok=True)
    except FileExistsError as error:
        raise BadInput(
            f"{error.filename} is a file, where a directory is needed.",
            fix="Move it away, or set FLEET_HOME to another place.",
        ) from None
    except FileNotFoundError as error:
        raise Unavailable(
            f"{error.filename} cannot be made: {error.strerror}.",
            fix="Set FLEET_HOME to another place.",
        ) from None
    if not (home / USER_FILE).exists():
        write_whole(home / USER_FILE, starter.user_file().encode(), mode=0o600)
    return fresh


class Wishes(NamedTuple):
    """Options of `init`. `approve` asks whether each new worktree shall run these commands."""

    kind: str | None = None
    output: Path | None = None
    force: bool = False
    coders: tuple[str, ...] = ()  # the installed ones, the preferred one first
    approve: Callable[[tuple[str, ...]], bool] = lambda _: False


def begin_project(context: SettingFiles, wishes: Wishes) -> Begun:
    """Write the project's fleet.yaml, unless it is there and `force` is not given."""
    output = wishes.output
    root = find_project(context.cwd)
    if root is None and output is None and context.cwd == user_home(context.env):
        return Begun(None, kept=False)  # a fleet.yaml there would apply to everything below
    root = root or context.cwd
    file = context.cwd / output if output is not None else root / PROJECT_FILE
    exists = file.exists() or file.is_symlink()
    if exists and not wishes.force:
        if output is not None:
            raise Refused(f"{output} already exists.", fix="--force replaces it.")
        return Begun(file, kept=True)
    if file.is_dir() or not file.parent.is_dir():
        if file.is_dir():
            raise BadInput(f"{output or file} is a directory.", fix="Add the name of a file.")
        message = f"{output or file} cannot be written: its directory is missing."
        raise BadInput(message, fix=f"mkdir -p {shlex.quote(str(file.parent))}")
    kind = wishes.kind or kind_of(root)
    work = set_up(kind, root)
    wanted = bool(work.setup) and wishes.approve(work.setup)
    machine = starter.MachineTools(wishes.coders, find_ollama(context.env), wanted)
    text = starter.project_file(root.name or "fleet", kind, work, machine)
    with only_writer(context.home):
        backup = _set_aside(file) if exists else None
        write_whole(file, text.encode())
        _trust(file, context)
    return Begun(
        file, kept=False, kind=kind, ollama=machine.ollama, backup=backup,
        coders=wishes.coders, setup=work.setup, set_up=wanted,
    )  # fmt: skip


def _set_aside(file: Path) -> Path:
    """Copy a file that will be replaced to a backup beside it; return the backup."""
    number, backup = 0, file.with_name(f"{file.name}.bak")
    while backup.exists():
        number += 1
        backup = file.with_name(f"{file.name}.bak{number}")
    write_whole(backup, file.read_bytes(), mode=file.stat().st_mode & 0o777)
    return backup


def _trust(file: Path, context: SettingFiles) -> None:
    """Trust what the file contains: the user has just had it written."""
    layer = file_layer(table.PROJECT, file, context.cwd, {}, Problems())
    untrusted = trust.values(trust.asked_by(layer))
    if untrusted:
        trust.record(context.home, file, untrusted)


def migrate(context: SettingFiles, begun: Begun) -> list[Imported]:
    """Import older tools' settings that ours do not have; their files stay as they are."""
    project = find_project(context.cwd) or (begun.file.parent if begun.file else None)
    sources = legacy.sources(context.home, project, user_home(context.env))
    wanted = [legacy.read(source) for source in sources]  # all must be readable before any is taken
    claimed: set[table.Path] = set()
    return [_take(legacy_file, context, begun, claimed) for legacy_file in wanted]


def _take(
    legacy_file: legacy.Import, context: SettingFiles, begun: Begun, claimed: set[table.Path]
) -> Imported:
    layer = legacy_file.source.layer
    file = begun.file if layer == table.PROJECT else None
    file = file or context.home / USER_FILE
    if layer == table.USER or begun.kept:
        claimed |= file_layer(layer, file, context.cwd, {}, Problems()).leaves.keys()
    changes, left = _changes(legacy_file, claimed)
    if changes:
        trusting = legacy_file.source.ours  # what came with a repository is not trusted yet
        apply(changes, file=file, layer=layer, context=context, trusting=trusting)
    claimed |= {change.path for change in changes}
    taken = [".".join(change.path) for change in changes]
    legacy.record(context.home, legacy_file, taken, left)
    return Imported(legacy_file.source.file, file, tuple(taken), tuple(left))


def _changes(
    legacy_file: legacy.Import, claimed: set[table.Path]
) -> tuple[list[Change], list[str]]:
    left = list(legacy_file.left)
    changes = []
    for name, raw in legacy_file.values.items():
        key, path = resolve(name)
        try:
            value = take(key, raw)
        except Wrong as wrong:
            left.append(f"{name}: {wrong.message.rstrip('.')}")
            continue
        if path in claimed:
            left.append(f"{name}: it is set already")
        elif value != key.default:
            changes.append(Change(key, path, value))
    return changes, left
