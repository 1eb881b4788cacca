"""Register our MCP server in OpenCode's settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.assistants.mcp_settings import Json, McpSettings, user_home

if TYPE_CHECKING:
    from collections.abc import Mapping

SECTION = "mcp"
FILES = ("opencode.jsonc", "opencode.json")


def _file(scope: str, top: Path, env: Mapping[str, str]) -> Path:
    """The settings file that exists, or else the second of the two names."""
    own = Path(env.get("XDG_CONFIG_HOME") or user_home(env) / ".config") / "opencode"
    folder = own if scope == "user" else top
    return next((folder / name for name in FILES if (folder / name).exists()), folder / FILES[-1])


def _entry(command: str) -> dict[str, Any]:
    return {"type": "local", "command": [command, "mcp"]}


MCP = McpSettings(Json(SECTION), SECTION, _file, _entry)
