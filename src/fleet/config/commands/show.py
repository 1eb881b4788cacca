"""The settings as they may be shown to a person, in the order of the reference page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.config.files.yaml_edit import rendered
from fleet.config.keys import table
from fleet.config.keys.values import display_value
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from fleet.config.layers import Origin
    from fleet.config.loader import Loaded


WIDEST = 80  # characters shown of a value such as a prompt; `--json` has all of it


class Shown(NamedTuple):
    setting: str
    value: Any  # without secrets
    origin: Origin

    @property
    def whole(self) -> str:
        return one_line(self.value)

    @property
    def text(self) -> str:
        text = self.whole
        return text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"


def all_of(loaded: Loaded) -> list[Shown]:
    """Return all settings in the order of the reference page, grouped by entry (node, model)."""
    rank = {key.path: number for number, key in enumerate(table.KEYS)}
    first: dict[str, int] = {}
    for path, number in rank.items():
        first.setdefault(path.partition(".")[0], number)

    def place(path: str) -> tuple[int, str, int]:
        key = loaded.keys[path]
        section, _, rest = path.partition(".")
        if "*" not in key.path:
            return rank[key.path], "", 0
        return first[section], rest.removesuffix(key.path.rpartition("*")[2]), rank[key.path]

    return [one_of(loaded, path) for path in sorted(loaded.origins, key=place)]


def one_of(loaded: Loaded, path: str) -> Shown:
    return Shown(path, display_value(loaded.keys[path], loaded.values[path]), loaded.origins[path])


def one_line(value: Any) -> str:
    return str(value) if isinstance(value, Path) else rendered(value)
