"""The key that a reference means. It is read when it is sent, and kept nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

FROM_ENV, FROM_FILE = "os.environ/", "file:"


def key_of(reference: str, env: Mapping[str, str], base: Path) -> str:
    """Empty for no reference; raise `Unavailable` when there is nothing at the end of it."""
    if not reference:
        return ""
    if reference.startswith(FROM_ENV):
        name = reference.removeprefix(FROM_ENV)
        if not env.get(name):
            raise Unavailable(f"the variable {name}, which holds its key, is not set")
        return env[name]
    named = reference.removeprefix(FROM_FILE).strip()
    path = base / Path(named).expanduser()
    try:
        found = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise Unavailable(f"the file of its key, {path}, cannot be read") from None
    if not found or "\n" in found:
        raise Unavailable(f"the file of its key, {path}, does not hold one line")
    return found
