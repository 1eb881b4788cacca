"""Register our MCP server in Codex's TOML settings."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.assistants.mcp_settings import NAME, McpSettings, user_home

if TYPE_CHECKING:
    from collections.abc import Mapping

SECTION = "mcp_servers"
_HEADER = re.compile(r"^\s*\[")
_OURS = re.compile(r"^\s*\[\s*mcp_servers\s*\.\s*(?:fleet|\"fleet\")\s*(?:\.[^\]]*)?\]")


class _Toml:
    def read(self, text: str) -> Any:
        return tomllib.loads(text)

    def put(self, text: str, entry: dict[str, Any]) -> str:
        left = self.drop(text)
        gap = "" if not left else "\n" if left.endswith("\n") else "\n\n"
        return f"{left}{gap}{self.rendered(entry)}\n"

    def drop(self, text: str) -> str:
        """Remove the table and those inside it; a comment after them belongs to what follows."""
        kept: list[str] = []
        after: list[str] = []
        inside = False
        for line in text.splitlines(keepends=True):
            if _HEADER.match(line):
                inside = bool(_OURS.match(line))
            if inside:
                is_setting = line.strip() and not line.lstrip().startswith("#")
                after = [] if is_setting else [*after, line]
            else:
                kept += [*after, line]
                after = []
        return re.sub(r"\n\n+\Z", "\n", "".join([*kept, *after]))

    def rendered(self, entry: dict[str, Any]) -> str:
        pairs = [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
        return "\n".join([f"[{SECTION}.{NAME}]", *pairs])


def _file(scope: str, top: Path, env: Mapping[str, str]) -> Path:
    own = Path(env.get("CODEX_HOME") or user_home(env) / ".codex") / "config.toml"
    return own if scope == "user" else top / ".codex" / "config.toml"


def _entry(command: str) -> dict[str, Any]:
    return {"command": command, "args": ["mcp"]}


MCP = McpSettings(_Toml(), SECTION, _file, _entry)
