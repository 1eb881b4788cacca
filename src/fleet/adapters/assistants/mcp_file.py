"""`.mcp.json`: the declared MCP servers, for the programs that read it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fleet.domain.generated.files import File

if TYPE_CHECKING:
    from fleet.domain.fleet import Fleet

TARGET = "mcp"
REFERENCE = "os.environ/"


def mcp_file(fleet: Fleet) -> File:
    servers = {
        server.name: {
            "command": server.command,
            "args": list(server.args),
            "env": {name: _value(value) for name, value in server.env.items()},
        }
        for server in fleet.mcp_servers.values()
    }
    return File(TARGET, ".mcp.json", json.dumps({"mcpServers": servers}, indent=2) + "\n")


def _value(value: str) -> str:
    """A reference stays one, in the syntax of the programs that read this."""
    if value.startswith(REFERENCE):
        return f"${{{value.removeprefix(REFERENCE)}}}"
    return value
