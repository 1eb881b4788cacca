"""Register our MCP server in Claude Code's settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.assistants.mcp_settings import Json, McpSettings, user_home

if TYPE_CHECKING:
    from collections.abc import Mapping

SECTION = "mcpServers"


def _file(scope: str, top: Path, env: Mapping[str, str]) -> Path:
    own = Path(env.get("CLAUDE_CONFIG_DIR") or user_home(env)) / ".claude.json"
    return own if scope == "user" else top / ".mcp.json"


def _entry(command: str) -> dict[str, Any]:
    return {"type": "stdio", "command": command, "args": ["mcp"]}


MCP = McpSettings(Json(SECTION), SECTION, _file, _entry)
