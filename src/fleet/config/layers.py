"""Layers of settings and how they merge: a later one wins, by key in mappings, lists as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fleet.config.files.problems import SettingPlace
from fleet.config.keys import lookup as schema
from fleet.config.keys import table
from fleet.config.keys.kinds import Wrong, take
from fleet.config.keys.values import read
from fleet.config.stores import KINDS, named_by
from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadInput, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path as FilePath

    from fleet.config.files.problems import Problems
    from fleet.config.keys.table import Path, SettingKey


class Origin(NamedTuple):
    """Where a value comes from. `note` names an ignored value of another layer."""

    layer: str
    place: SettingPlace = SettingPlace("")
    note: str = ""

    def __str__(self) -> str:
        words = {table.DEFAULT: "default", table.FLAG: f"flag {self.place}"}
        text = words.get(self.layer, str(self.place))
        return f"{text} ({self.note})" if self.note else text


class Leaf(NamedTuple):
    key: SettingKey
    value: Any
    origin: Origin
    base: FilePath  # what a relative path is relative to
    written: str = ""  # the path as the file has it, which may be an older name


class Layer(NamedTuple):
    """Values by path. `entries`: named entries, also empty ones, such as ("nodes", "mac-mini")."""

    leaves: dict[Path, Leaf]
    entries: dict[Path, SettingPlace]


def merge(*layers: Layer) -> Layer:
    merged = Layer({}, {})
    for layer in layers:
        merged.leaves.update(layer.leaves)
        merged.entries.update(layer.entries)
    return merged


def defaults(home: FilePath, name: str) -> Layer:
    """Return the layer of defaults. `name`: the default name of the project."""
    origin = Origin(table.DEFAULT)
    leaves = {
        tuple(key.path.split(".")): Leaf(key, key.default, origin, home)
        for key in table.KEYS
        if "*" not in key.path
    }
    called = ("project", "name")
    leaves[called] = leaves[called]._replace(value=name)
    return Layer(leaves, {})


def completed(merged: Layer, base: FilePath) -> Layer:
    """Add the defaults of every declared entry, such as of each node."""
    origin = Origin(table.DEFAULT)
    for section, name in merged.entries:
        for key in table.KEYS:
            parts = tuple(key.path.split("."))
            if len(parts) == 3 and parts[0] == section and key.default is not None:
                path = (section, name, parts[2])
                merged.leaves.setdefault(path, Leaf(key, key.default, origin, base))
    return merged


def from_environment(env: Mapping[str, str], cwd: FilePath, problems: Problems) -> Layer:
    layer = Layer({}, {})
    spoken = [name for name in env if name.startswith("FLEET_") and name not in OURS]
    if not spoken and not any(name in env for name in ALIASES):
        return layer
    for key in table.KEYS:
        for name, text in _spoken(key, env):
            origin = Origin(table.ENVIRONMENT, SettingPlace(name))
            try:
                leaf = Leaf(key, read(key, text), origin, cwd)
            except Wrong as wrong:
                problems.add(origin.place, key.path, wrong.message, wrong.fix)
            else:
                layer.leaves[tuple(key.path.split("."))] = leaf
            break
    _unknown_variables(spoken, problems)
    return layer


OURS = frozenset({  # variables of Fleet that are not settings; agents have nearly all of them
    "FLEET_HOME", "FLEET_URL", "FLEET_TOKEN", "FLEET_TASK_ID", "FLEET_TASK_DIR", "FLEET_ARTIFACT_DIR",
    "FLEET_RUN_ID", "FLEET_RUN_TOKEN", "FLEET_RUN_SERVER", "FLEET_RUN_BEARER",
})  # fmt: skip
ALIASES = ("CLAUDE_FLEET_TEAM", "STORAGE_BACKEND", "DATABASE_URL", "DB_PATH")


def _spoken(key: SettingKey, env: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the variables that set this key, with their values, the strongest first."""
    name = schema.variable(key)
    pairs = [(name, env.get(name, ""))] if name else []
    backend = env.get("STORAGE_BACKEND", "").lower()
    for other in key.env:
        text = env.get(other, "")
        if other == "DATABASE_URL" and not (backend in KINDS and KINDS[backend].variable == other):
            continue  # many web projects set this variable for themselves
        if other == "DB_PATH" and text:
            text = f"sqlite:///{text}" if backend in {"", "sqlite"} else ""
        pairs.append((other, text))
    if "DB_PATH" in key.env and (named := named_by(env)):
        pairs.append(named)
    return [(name, text) for name, text in pairs if text]


def _unknown_variables(names: Iterable[str], problems: Problems) -> None:
    known = {schema.variable(key) for key in table.KEYS} - {""}
    for name in names:
        if name not in known:
            meant = nearest(name, known)
            if meant:  # a slip, rather than a variable of something else
                problems.warn(SettingPlace(name), "", f"is not a setting. {meant}")


def from_flags(flags: Mapping[str, object], cwd: FilePath, problems: Problems) -> Layer:
    layer = Layer({}, {})
    for name, raw in flags.items():
        if raw is None:
            continue
        origin = Origin(table.FLAG, SettingPlace(name))
        try:
            key, path = schema.resolve(name)
            value = read(key, raw) if isinstance(raw, str) else take(key, raw)
        except Wrong as wrong:
            problems.add(origin.place, "", wrong.message, wrong.fix)
        except BadInput as error:
            problems.add(origin.place, "", error.message, error.fix)
        else:
            layer.leaves[path] = Leaf(key, value, origin, cwd)
            if "*" in key.path:
                layer.entries[path[:2]] = origin.place
    return layer
