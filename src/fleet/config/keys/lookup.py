"""Finding a setting in the table by the path that a user wrote."""

from __future__ import annotations

import re
from functools import cache

from fleet.config.keys.table import ENVIRONMENT, KEYS, MOVED, Path, SettingKey
from fleet.domain.errors import BadInput, nearest


def variable(key: SettingKey) -> str:
    """Return the environment variable of a setting; empty when it cannot have one."""
    if ENVIRONMENT not in key.layers:
        return ""
    return "FLEET_" + key.path.upper().replace(".", "_")


@cache
def by_path() -> dict[str, SettingKey]:
    return {key.path: key for key in KEYS}


def resolve(path: str) -> tuple[SettingKey, Path]:
    """The setting that a dotted path names, older names too; raise `BadInput` when there is none."""
    for written, key in _patterns():
        match = written.fullmatch(path)
        if match:
            return key, _filled(key.path, match.groups())
    known = [key.path for key in KEYS]
    inside = sorted(p for p in known if p.startswith(f"{path}."))
    if inside:
        raise BadInput(f"'{path}' is a section, not a setting.", fix=f"It has {', '.join(inside)}.")
    near = nearest(path, [p for p in known if "*" not in p] + _like(path, known))
    raise BadInput(
        f"There is no setting '{path}'.", fix=near or "`fleet config` lists the settings."
    )


def _like(path: str, known: list[str]) -> list[str]:
    """Return the patterns with this path's names in place of each `*`, to suggest one."""
    words = path.split(".")
    patterns = (pattern.split(".") for pattern in known if "*" in pattern)
    return [
        ".".join(word if part == "*" else part for part, word in zip(parts, words, strict=True))
        for parts in patterns
        if len(parts) == len(words)
    ]


def _filled(pattern: str, names: tuple[str, ...]) -> Path:
    rest = iter(names)
    return tuple(next(rest) if part == "*" else part for part in pattern.split("."))


@cache
def _patterns() -> list[tuple[re.Pattern[str], SettingKey]]:
    written = []
    for key in KEYS:
        head, _, last = key.path.rpartition(".")
        for name in (last, *key.also):
            path = f"{head}.{name}" if head else name
            for spelling in (path, *_shorter(path)):
                pattern = re.escape(spelling).replace(r"\*", "(.+)")
                written.append((re.compile(pattern), key))
    return written


def _shorter(path: str) -> list[str]:
    """Return the shorter spellings of a path that `MOVED` also accepts."""
    if path.startswith("project.gateway."):
        return [path.removeprefix("project.")]
    return [".".join(short) for short, long in MOVED.items() if ".".join(long) == path]
