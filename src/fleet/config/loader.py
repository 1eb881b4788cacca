"""All layers, read, checked and bound in one go."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.config import trust
from fleet.config.bind import bind
from fleet.config.files.problems import InvalidConfig, Problems, SettingPlace
from fleet.config.keys import table
from fleet.config.keys.kinds import Wrong, masked
from fleet.config.keys.values import final
from fleet.config.layers import (
    Layer,
    Origin,
    completed,
    defaults,
    from_environment,
    from_flags,
    merge,
)
from fleet.config.places import PROJECT_FILE, USER_FILE, find_project
from fleet.config.settings import Settings, settings_of
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.config.layers import Leaf
    from fleet.domain.fleet import Fleet
    from fleet.ports import ShownSetting


class Loaded(NamedTuple):
    """The loaded settings. `values` and `origins` are by dotted path."""

    settings: Settings
    fleet: Fleet
    values: Mapping[str, Any]
    origins: Mapping[str, Origin]
    warnings: tuple[str, ...]
    project: Path | None  # the project's directory
    user_file: Path  # it need not exist
    project_file: Path | None
    keys: Mapping[str, table.SettingKey]  # the schema's row for each path
    asked: Mapping[table.Path, Leaf]  # the settings of the project's file that need trust
    trusted: bool

    @property
    def withheld(self) -> frozenset[str]:
        """The settings of the project's file that have no effect, as it is not trusted."""
        return frozenset() if self.trusted else frozenset(".".join(path) for path in self.asked)

    def for_people(self) -> list[ShownSetting]:
        from fleet.config.commands.show import all_of  # noqa: PLC0415  # few commands show them
        from fleet.ports import ShownSetting  # noqa: PLC0415  # likewise

        return [ShownSetting(each.setting, each.text, str(each.origin)) for each in all_of(self)]


def load(
    cwd: Path,
    *,
    home: Path,
    env: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
    config_file: Path | None = None,
) -> Loaded:
    """Raise `BadConfig` that lists everything that is wrong.

    `flags` are values by dotted path; None says nothing. `config_file` takes the place of the
    project's fleet.yaml.
    """
    loaded, problems = examine(
        cwd, home=home, env=env, flags=flags or {}, config_file=config_file, texts={}
    )
    if loaded is None:
        raise InvalidConfig(problems.all)
    return loaded


def examine(
    cwd: Path,
    *,
    home: Path,
    env: Mapping[str, str],
    flags: Mapping[str, object],
    config_file: Path | None,
    texts: Mapping[Path, str],
) -> tuple[Loaded | None, Problems]:
    """Return what `load` returns, with all problems; `texts` replace the content of some files."""
    problems = Problems()
    cwd, home = Path(cwd).absolute(), Path(home).absolute()
    project, file = _project(cwd, config_file, problems)
    if file is None and project is not None and project / PROJECT_FILE in texts:
        file = project / PROJECT_FILE
    user = file_layer(table.USER, home / USER_FILE, cwd, texts, problems)
    shared = file_layer(table.PROJECT, file, cwd, texts, problems)
    stand = _trust_state(shared, user, file, home, problems)
    below = merge(defaults(home, project.name if project is not None else ""), user)
    above = merge(from_environment(env, cwd, problems), from_flags(flags, cwd, problems))
    if stand.withheld:  # it is checked like the rest
        bind(completed(merge(below, shared, above), home), problems)
    merged = completed(merge(below, trust.withhold(shared, stand.withheld), above), home)
    _note_untrusted(merged, stand, problems)
    values = _final(merged, home, env, problems)
    fleet = bind(merged, problems, stand.withheld)
    if problems.all:
        return None, problems
    origins = {".".join(path): leaf.origin for path, leaf in merged.leaves.items()}
    loaded = Loaded(
        settings=settings_of(values),
        fleet=fleet,
        values=values,
        origins=origins,
        keys={".".join(path): leaf.key for path, leaf in merged.leaves.items()},
        warnings=tuple(problems.warnings),
        project=project,
        user_file=home / USER_FILE,
        project_file=file,
        asked=stand.asked,
        trusted=stand.trusted,
    )
    return loaded, problems


def _project(
    cwd: Path, config_file: Path | None, problems: Problems
) -> tuple[Path | None, Path | None]:
    """The project's directory and its file, if there is one."""
    project = find_project(cwd)
    if config_file is None:
        file = project / PROJECT_FILE if project is not None else None
        return project, file if file is not None and file.exists() else None
    file = cwd / config_file
    if not file.exists():
        problems.add(
            SettingPlace(str(config_file)), "", "is not there.", "`fleet init` writes one."
        )
        return project, None
    return project or file.resolve().parent, file


def file_layer(
    layer: str, file: Path | None, cwd: Path, texts: Mapping[Path, str], problems: Problems
) -> Layer:
    """Return the settings of one file, without other layers."""
    if file is None or (file not in texts and not file.exists()):
        return Layer({}, {})
    from fleet.config.files import yaml_read as document  # noqa: PLC0415 - YAML only when there is a file
    from fleet.config.files.layer_of_file import FileReader  # noqa: PLC0415 - likewise

    name = display_path(file, cwd)
    if file in texts:
        root = document.load_text(texts[file], name, problems)
    else:
        root = document.load_file(file, name, problems)
    read = FileReader(layer, name, file.parent, problems).read(root)
    if layer == table.PROJECT:
        _no_password(read, problems)
    return read


def _no_password(layer: Layer, problems: Problems) -> None:
    leaf = layer.leaves.get(("store", "url"))
    if leaf is not None and masked(leaf.value) != leaf.value:
        message = "holds a password, in a file that may be committed."
        fix = "Write `url: os.environ/NAME`, and put the URL into that variable."
        problems.add(leaf.origin.place, "store.url", message, fix)


def _trust_state(
    shared: Layer, user: Layer, file: Path | None, home: Path, problems: Problems
) -> trust.TrustState:
    if file is None:
        return trust.TrustState({}, trusted=True)
    return trust.trust_state(shared, user, file, home, problems)


def _note_untrusted(merged: Layer, stand: trust.TrustState, problems: Problems) -> None:
    if not stand.withheld:
        return
    for path, leaf in stand.withheld.items():
        current = merged.leaves.get(path)
        note = f"{leaf.origin.place} is untrusted"
        if current is not None:
            merged.leaves[path] = current._replace(origin=current.origin._replace(note=note))
    first = next(iter(stand.withheld.values())).origin.place
    names = ", ".join(".".join(path) for path in stand.withheld)
    problems.warnings.append(
        f"{first.name}: not trusted, so without effect: {names}. Read it, then run `fleet trust`."
    )


def _final(merged: Layer, home: Path, env: Mapping[str, str], problems: Problems) -> dict[str, Any]:
    values = {}
    for path, leaf in merged.leaves.items():
        name = ".".join(path)
        try:
            values[name] = final(leaf.key, leaf.value, base=leaf.base, home=home, env=env)
        except Wrong as wrong:
            problems.add(leaf.origin.place, name, wrong.message, wrong.fix)
            values[name] = leaf.key.default
    return values


def display_path(path: Path, cwd: Path) -> str:
    """Return a file's path for messages: relative if it is inside `cwd`."""
    inside = cwd != cwd.parent and path.is_relative_to(cwd)
    return str(path.relative_to(cwd) if inside else path)
