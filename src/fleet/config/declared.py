"""What the layers declare, entry by entry, and where each part of it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fleet.config.files.problems import Place, Problems
    from fleet.config.keys.table import Path
    from fleet.config.layers import Layer


class Declared:
    def __init__(self, merged: Layer, problems: Problems) -> None:
        self.merged, self.problems = merged, problems
        self.under: dict[Path, dict[str, Any]] = {}
        for path, leaf in merged.leaves.items():
            self.under.setdefault(path[:-1], {})[path[-1]] = leaf.value

    def section(self, section: str) -> list[tuple[str, dict[str, Any]]]:
        names = [name for kind, name in self.merged.entries if kind == section]
        return [(name, self.values(section, name)) for name in names]

    def values(self, *above: str) -> dict[str, Any]:
        return self.under.get(above, {})

    def place(self, *path: str) -> Place:
        leaf = self.merged.leaves.get(path)
        return leaf.origin.place if leaf else self.merged.entries[path[0], path[1]]

    def wrong(self, path: tuple[str, ...], message: str, fix: str = "") -> None:
        leaf = self.merged.leaves.get(path)
        written = leaf.written if leaf and leaf.written else ".".join(path)
        self.problems.add(self.place(*path), written, message, fix)

    def needs(self, section: str, name: str, field: str, fix: str) -> None:
        given = (section, name, field) in self.merged.leaves
        if not given and not self.problems.about(f"{section}.{name}.{field}"):
            place = self.merged.entries[section, name]
            self.problems.add(place, f"{section}.{name}", f"has no `{field}`.", fix)
