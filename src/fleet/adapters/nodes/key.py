"""Read the API key that a setting refers to, when it is sent; Fleet stores it nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

FROM_ENV, FROM_FILE = "os.environ/", "file:"


def key_of(reference: str, env: Mapping[str, str], base: Path) -> str:
    """Return the key, empty for no reference; raise `Unavailable` when it cannot be read."""
    if not reference:
        return ""
    if reference.startswith(FROM_ENV):
        name = reference.removeprefix(FROM_ENV)
        if not env.get(name):
            raise Unavailable(f"the variable {name}, which holds its key, is not set")
        return env[name]
    name = reference.removeprefix(FROM_FILE).strip()
    path = base / Path(name).expanduser()
    try:
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise Unavailable(f"its key file {path} cannot be read") from None
    if not key or "\n" in key:
        raise Unavailable(f"its key file {path} must contain exactly one line")
    return key
