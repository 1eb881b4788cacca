"""Read a value from text, resolve it relative to its file, and make it safe to show."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.config.keys.kinds import FROM_ENV, LISTS, Wrong, masked, take
from fleet.config.places import expand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.config.keys.table import SettingKey

YES, NO = {"true", "yes", "on", "1"}, {"false", "no", "off", "0"}


def read(key: SettingKey, text: str) -> Any:
    """Parse the text of a variable or of `config set`; raise `Wrong`."""
    if key.kind in LISTS:
        return take(key, _items(text))
    if key.kind == "flag":
        word = text.strip().lower()
        return take(key, True if word in YES else False if word in NO else text)
    if key.kind in {"whole", "number"}:
        return take(key, _number(text))
    return take(key, text)


def _items(text: str) -> list[Any]:
    """A list as YAML and JSON write it, or one item per line."""
    if not text.lstrip().startswith("["):
        return [line for line in text.splitlines() if line.strip()]
    import yaml  # noqa: PLC0415 - only for a list typed as one

    try:
        items = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        raise Wrong("is not a list.", 'Write ["one", "two"], or one item per line.') from None
    return items if isinstance(items, list) else [text]


def _number(text: str) -> Any:
    for convert in (int, float):
        try:
            return convert(text.strip())
        except ValueError:
            continue
    return text


def display_value(key: SettingKey, value: Any) -> Any:
    """Return the value without secrets."""
    if key.kind == "private":
        return "***"
    if key.kind == "store":
        return masked(value)
    return list(value) if isinstance(value, tuple) else value


def final(key: SettingKey, value: Any, *, base: Path, home: Path, env: Mapping[str, str]) -> Any:
    """Resolve relative paths and references; raise `Wrong` for a variable that is not set."""
    if key.kind == "path":
        return _absolute(value, base, home, env)
    if key.kind != "store":
        return value
    if value.startswith(FROM_ENV):
        name = value.removeprefix(FROM_ENV)
        if not env.get(name):
            raise Wrong(f"the variable {name} is not set.", f"Set {name} to the store's address.")
        return final(key, take(key, env[name]), base=base, home=home, env=env)
    if not value.startswith("sqlite:///"):
        return value
    return f"sqlite:///{_absolute(value.removeprefix('sqlite:///'), base, home, env)}"


def _absolute(written: str, base: Path, home: Path, env: Mapping[str, str]) -> Path:
    if written == "$FLEET_HOME" or written.startswith("$FLEET_HOME/"):
        return home / written.removeprefix("$FLEET_HOME").lstrip("/")
    return Path(base, expand(written, env))
