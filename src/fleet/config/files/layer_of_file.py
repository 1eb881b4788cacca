"""One file's items, checked against the schema and turned into a layer."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

from fleet.config.files.problems import SettingPlace
from fleet.config.keys import table
from fleet.config.keys.kinds import LISTS, Wrong, take
from fleet.config.keys.table import Path, SettingKey
from fleet.config.layers import Layer, Leaf, Origin
from fleet.domain.errors import nearest

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from fleet.config.files.problems import Problems
    from fleet.config.files.yaml_read import YamlItem


class FileReader:
    """Notes everything that is wrong, and goes on.

    In its methods `written` is a path as the file has it, and `path` the same in the schema.
    """

    def __init__(self, layer: str, name: str, base: FilePath, problems: Problems) -> None:
        self.layer, self.name, self.base, self.problems = layer, name, base, problems
        self.layer_values = Layer({}, {})

    def read(self, root: YamlItem | None) -> Layer:
        if root is not None:
            self.section(root, tree(), (), ())
        return self.layer_values

    def section(self, item: YamlItem, below: dict[str, Any], written: Path, path: Path) -> None:
        if item.value is None:
            return
        if not isinstance(item.value, dict):
            listed = isinstance(item.value, list) and "*" in below
            fix = (
                "Give each entry a name of your choice: `NAME: …` instead of `- …`."
                if listed
                else ""
            )
            self.wrong(item, written, "needs `name: value` lines.", fix)
            return
        for name, child in item.value.items():
            child_path = (*written, name)
            spec = below.get(name, below.get("*"))
            if not path and name.startswith("x-"):
                continue  # a section that only holds YAML anchors
            if spec is None:
                self.unknown(child, child_path, below)
            elif name in below or self.named_safely(child, child_path, path[-1]):
                self.one(child, spec, child_path, self.moved(item, child, (*path, name)))

    def moved(self, item: YamlItem, child: YamlItem, path: Path) -> Path:
        """`gateway` is also accepted at the top; both places in one file are an error."""
        to = table.MOVED.get(path)
        if to is None:
            return path
        other = item.value.get(to[0])
        if other is not None and isinstance(other.value, dict) and to[1] in other.value:
            fix = f"Keep `{'.'.join(to)}` and delete the other."
            self.wrong(child, path, f"is given here and as `{'.'.join(to)}`.", fix)
        return to

    def one(self, item: YamlItem, spec: Any, written: Path, path: Path) -> None:
        if isinstance(spec, str):
            self.without_effect(item, spec, written, path)
        elif isinstance(spec, SettingKey):
            self.leaf(item, spec, written, path)
        else:
            if len(path) == 2 and path[0] in table.NAMES:
                self.layer_values.entries[path] = SettingPlace(self.name, item.line)
            self.section(item, spec, written, path)

    def leaf(self, item: YamlItem, key: SettingKey, written: Path, path: Path) -> None:
        if item.value is None:
            return
        if self.layer not in key.layers:
            fix = f"Set it for yourself: `fleet config set {key.path}=VALUE`."
            self.wrong(item, written, "cannot be set in a project's file.", fix)
            return
        if not key.path.endswith("*"):
            path = (*path[:-1], key.path.rpartition(".")[2])
        if path in self.layer_values.leaves:
            other = self.layer_values.leaves[path].origin.place.line
            self.wrong(item, written, f"means the same as line {other}.", "Keep one of them.")
            return
        origin = Origin(self.layer, SettingPlace(self.name, item.line))
        try:
            value = take(key, _plain(item, one=key.kind in LISTS and written[-1] in key.also))
        except Wrong as wrong:
            at = item if wrong.index is None else item.value[wrong.index]
            self.wrong(at, _indexed(written, wrong.index), wrong.message, wrong.fix)
        else:
            self.layer_values.leaves[path] = Leaf(key, value, origin, self.base, ".".join(written))

    def without_effect(self, item: YamlItem, words: str, written: Path, path: Path) -> None:
        """Report an older tool's setting that Fleet does not have, unless its value is false."""
        pattern = ".".join((path[0], "*", *path[2:]) if path[0] in table.NAMES else path)
        if item.value in (None, False):
            return
        if pattern in table.REFUSED:
            self.wrong(item, written, "is not something that Fleet does.", words)
        else:
            where = SettingPlace(self.name, item.line)
            self.problems.warn(where, ".".join(written), f"is not needed: {words}.")

    def unknown(self, item: YamlItem, written: Path, below: dict[str, Any]) -> None:
        known = [name for name in below if name != "*"]
        fix = nearest(written[-1], known) or f"It may be {', '.join(sorted(known))}."
        self.wrong(item, written, "is not a setting.", fix)

    def named_safely(self, item: YamlItem, written: Path, section: str) -> bool:
        rule = table.NAMES.get(section)
        if rule is None or re.fullmatch(rule.pattern, written[-1]):
            return True
        self.wrong(item, written, f"'{written[-1]}' is not a safe name.", f"Use {rule.words}.")
        return False

    def wrong(self, item: YamlItem, written: Path, message: str, fix: str = "") -> None:
        self.problems.add(SettingPlace(self.name, item.line), ".".join(written), message, fix)


def _indexed(written: Path, index: int | None) -> Path:
    return written if index is None else (*written[:-1], f"{written[-1]}[{index}]")


def _plain(item: YamlItem, *, one: bool) -> Any:
    """Return the value without line numbers; `one` accepts a single text for a list."""
    if isinstance(item.value, list):
        return [_plain(child, one=False) for child in item.value]
    return [item.value] if one and isinstance(item.value, str) else item.value


@cache
def tree() -> dict[str, Any]:
    """Return the schema as nested dicts; a leaf is a key or the reason to ignore an older name."""
    root: dict[str, Any] = {}
    for key in table.KEYS:
        below, last = _under(root, key.path)
        below.update(dict.fromkeys((last, *key.also), key))
    for path, why in (table.NEEDLESS | table.REFUSED).items():
        below, last = _under(root, path)
        below[last] = why
    for short, (section, name) in table.MOVED.items():
        root[short[0]] = root[section][name]
    return root


def _under(root: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    *sections, last = path.split(".")
    for name in sections:
        root = root.setdefault(name, {})
    return root, last
