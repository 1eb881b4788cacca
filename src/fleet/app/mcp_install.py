"""Register `fleet mcp` in the settings of coders."""

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

__all__ = ["SCOPES", "Registered", "install", "uninstall", "would_install"]


def command_of(scope: str) -> str:
    """Return the command that serves MCP: an absolute path for the user, a name for a project."""
    program = Path(sys.executable).with_name("fleet")
    return str(program) if scope == "user" and program.exists() else "fleet"


def install(
    coders: Sequence[str], scope: str, top: Path, env: Mapping[str, str]
) -> list[Registered]:
    return [register(c, file_of(c, scope, top, env), command_of(scope)) for c in coders]


def uninstall(
    coders: Sequence[str], scope: str, top: Path, env: Mapping[str, str]
) -> list[Registered]:
    return [unregister(c, file_of(c, scope, top, env)) for c in coders]


def would_install(
    coders: Sequence[str], scope: str, top: Path, env: Mapping[str, str]
) -> list[Registered]:
    """Return what `install` would write, without writing it."""
    return [
        Registered(c, str(file_of(c, scope, top, env)), "", text_of(c, command_of(scope)))
        for c in coders
    ]
