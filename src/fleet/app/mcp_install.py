"""`fleet mcp` in the settings of the programs that are to use it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.assistants.mcp_settings import (
    SCOPES,
    Registered,
    file_of,
    register,
    text_of,
    unregister,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["SCOPES", "Registered", "install", "shown", "uninstall"]


def command_of(scope: str) -> str:
    """For this person the program itself; a project may be somebody else's, too."""
    here = Path(sys.executable).with_name("fleet")
    return str(here) if scope == "user" and here.exists() else "fleet"


def install(
    coders: Sequence[str], scope: str, top: Path, env: Mapping[str, str]
) -> list[Registered]:
    return [register(c, file_of(c, scope, top, env), command_of(scope)) for c in coders]


def uninstall(
    coders: Sequence[str], scope: str, top: Path, env: Mapping[str, str]
) -> list[Registered]:
    return [unregister(c, file_of(c, scope, top, env)) for c in coders]


def shown(coders: Sequence[str], scope: str, top: Path, env: Mapping[str, str]) -> list[Registered]:
    """What `install` would have there."""
    return [
        Registered(c, str(file_of(c, scope, top, env)), "", text_of(c, command_of(scope)))
        for c in coders
    ]
