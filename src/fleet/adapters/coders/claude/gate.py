"""Asked by Claude Code (its PermissionRequest hook) whether a command may run: `edit` permissions.

    claude_gate.py DIRECTORY…

It runs on its own, so that a command waits for no supervisor. A command may run unless it is plain
that it leaves the directories: Claude Code has found a path outside that it would write to, or it
changes to a directory outside. What a program does once it runs is not seen here; that takes
Claude Code's own sandbox. About anything but commands it says nothing, which means no.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

MOVES = re.compile(r"(?:^|[\s;&|('\"])(?:cd|pushd)\s+(?:--\s+)?(\"[^\"]+\"|'[^']+'|[^\s;&|)<>]+)")


def decide(call: dict[str, Any], directories: list[str]) -> dict[str, Any] | None:
    """The decision to print for a Bash command: deny it if it leaves these directories. Else None."""
    if call.get("tool_name") != "Bash":
        return None
    where = _outside(call, directories)
    decision = {"behavior": "allow"}
    if where:
        message = f"{where} is outside {' and '.join(directories)}. Work inside."
        decision = {"behavior": "deny", "message": message}
    return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}


def _outside(call: dict[str, Any], directories: list[str]) -> str:
    for suggested in call.get("permission_suggestions") or ():
        if suggested.get("type") == "addDirectories":
            return ", ".join(suggested.get("directories", ())) or "A path in it"
    command = str(call.get("tool_input", {}).get("command", ""))
    for target in MOVES.findall(command):
        named = Path(os.path.expandvars(target.strip("\"'")))
        path = Path(str(call.get("cwd", "")), named.expanduser()).resolve()
        if not any(path.is_relative_to(Path(directory).resolve()) for directory in directories):
            return str(path)
    return ""


if __name__ == "__main__":
    output = decide(json.load(sys.stdin), sys.argv[1:])
    if output is not None:
        json.dump(output, sys.stdout)
