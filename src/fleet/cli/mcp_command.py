"""`fleet mcp` as a command with a help page; see `fleet.cli.mcp`."""

from __future__ import annotations

from fleet.cli.frame import command


@command(json=False)
def mcp() -> int:
    """Give the server's tools to a program that speaks MCP over its pipes.

    It uses the server of FLEET_URL (with FLEET_TOKEN), else the one that runs over this home.

        claude mcp add fleet -- fleet mcp
    """
    from fleet.cli.mcp import bridge

    return bridge()
