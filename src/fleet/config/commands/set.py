"""Values set from the command line: all of them or none, and only when the result is valid."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from fleet.config.files.problems import InvalidConfig
from fleet.config.files.write import only_writer, write_whole
from fleet.config.files.yaml_edit import drop, put, stated
from fleet.config.keys import table
from fleet.config.keys.kinds import Wrong
from fleet.config.keys.lookup import resolve
from fleet.config.keys.values import read
from fleet.config.layers import ALIASES
from fleet.config.loader import display_path, examine
from fleet.config.places import PROJECT_FILE, USER_FILE, find_project
from fleet.config.trust import record, values
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from fleet.config.files.problems import Problems
    from fleet.config.loader import Loaded


class SettingFiles(NamedTuple):
    """The files of settings that a command edits, by where it runs."""

    cwd: Path
    home: Path
    env: Mapping[str, str]

    def file(self, layer: str) -> Path:
        """The file of a layer, which need not exist; raise `NotFound` outside a project."""
        if layer == table.USER:
            return self.home / USER_FILE
        root = find_project(self.cwd)
        if root is None:
            fix = "Run it inside a project, or leave out --project."
            raise NotFound("There is no project here.", fix=fix)
        return root / PROJECT_FILE

    def edited(self) -> Path:
        """The project's file, which people write by hand, or without one their own."""
        root = find_project(self.cwd)
        own = root is None or not (root / PROJECT_FILE).exists()
        return self.file(table.USER if own else table.PROJECT)


class Change(NamedTuple):
    """`value` may be UNSET: the file says nothing about it any more."""

    key: table.SettingKey
    path: table.Path
    value: Any


UNSET = object()


def parsed(assignment: str) -> Change:
    """Read `key=value`; raise `BadInput`."""
    name, equals, text = assignment.partition("=")
    if not equals:
        fix = "Write KEY=VALUE, such as max_concurrent=5."
        raise BadInput(f"'{assignment}' is not a NAME=VALUE pair.", fix=fix)
    key, path = resolve(name.strip())
    try:
        text.encode()
        return Change(key, path, read(key, text))
    except Wrong as wrong:
        raise BadInput(f"{name.strip()}: {wrong.message}", fix=wrong.fix) from None
    except UnicodeEncodeError:
        raise BadInput(f"{name.strip()}: is not UTF-8 text.") from None


def apply(
    changes: Sequence[Change],
    *,
    file: Path,
    layer: str,
    context: SettingFiles,
    trusting: bool = True,
) -> Loaded | None:
    """Write them to the file; the result is None when it was, and still is, wrong elsewhere.

    With `trusting`, what you set in a project's file needs no second question, provided that
    nothing else in it was waiting for one.
    """
    for change in changes:
        if layer not in change.key.layers:
            message = f"{'.'.join(change.path)} cannot be set in a project's file."
            raise BadInput(message, fix="Leave out --project.")
    with only_writer(context.home):
        text = rewritten(_text(file), changes, name=display_path(file, context.cwd))
        before = _examine(file, layer, context, {})
        after = _examine(file, layer, context, {file: text})
        _refuse_fresh(before[1], after[1])
        alone = _without_later_layers(context, layer)
        _refuse_fresh(
            _examine(file, layer, alone, {})[1], _examine(file, layer, alone, {file: text})[1]
        )
        write_whole(
            file, text.encode(), mode=None if file.exists() or layer == table.PROJECT else 0o600
        )
        was, new = before[0], after[0]
        if trusting and was is not None and was.trusted and new is not None and not new.trusted:
            record(context.home, file, values(new.asked))
    return _examine(file, layer, context, {})[0]


def _refuse_fresh(before: Problems, after: Problems) -> None:
    known = {(problem.path, problem.message) for problem in before.all}
    fresh = [p for p in after.all if (p.path, p.message) not in known]
    if fresh:
        raise InvalidConfig(fresh)


def _without_later_layers(context: SettingFiles, layer: str) -> SettingFiles:
    """Return the context without what hides this layer: variables and, for a user's, a project."""
    ours = ("FLEET_", *ALIASES)
    env = {name: value for name, value in context.env.items() if not name.startswith(ours)}
    cwd = FilePath("/") if layer == table.USER else context.cwd
    return context._replace(cwd=cwd, env=env)


def rewritten(text: str, changes: Sequence[Change], *, name: str = "the file") -> str:
    """The text of a file with all of them in it, unchecked; the rest of it stays as it is."""
    for change in changes:
        if change.value is UNSET:
            text = drop(text, _written(change), name=name)
        else:
            text = put(text, _written(change), change.value, name=name)
    return text


def stated_in(file: Path, setting: str) -> tuple[Any, ...]:
    """Return the value in the file as a 1-tuple; empty: the file does not set it."""
    key, path = resolve(setting)
    return stated(_text(file), _written(Change(key, path, UNSET)), name=file.name)


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode()
    except FileNotFoundError:
        return ""
    except (IsADirectoryError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} is not a text file.") from error


def _written(change: Change) -> list[table.Path]:
    """Every path by which the file may already have it, the best first."""
    head = change.path[:-1]
    paths = [(*head, name) for name in (change.path[-1], *change.key.also)]
    for short, long in table.MOVED.items():
        paths += [(*short, *p[len(long) :]) for p in paths if p[: len(long)] == long]
    return paths


def _examine(
    file: Path, layer: str, context: SettingFiles, texts: Mapping[Path, str]
) -> tuple[Loaded | None, Problems]:
    named = layer == table.PROJECT and file.exists()
    return examine(
        context.cwd,
        home=context.home,
        env=context.env,
        flags={},
        config_file=file if named else None,
        texts=texts,
    )
