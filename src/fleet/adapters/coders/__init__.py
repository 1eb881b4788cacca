"""The built-in coders, one row each. A new one is a row here and a folder beside this file.

Its name stands once more in `fleet.domain.fleet.CODERS`, since the settings know coders by name.
"""

from __future__ import annotations

from typing import Any

from fleet.domain.data import NamedTuple


class BuiltIn(NamedTuple):
    """What Fleet has for a coder. A path (`claude.coder:ClaudeCoder`) is below this package.

    `part` loads what it leads to, when that is needed. An empty path: the coder has no such thing.
    """

    coder: str  # the class that drives it
    title: str = ""  # as its makers write it
    executable: str = ""  # its program on PATH; empty: every agent names its own
    files: str = ""  # a `Generates`: what `fleet generate` writes for it
    tools: str = ""  # a `Tools`: which of an agent's tools it grants
    mcp: str = ""  # an `McpSettings`: where `fleet mcp install` registers Fleet
    plugin: str = ""  # a `Plugin`: the marketplace that `fleet plugins install` makes
    skills: str = ""  # the folder of a project in which it reads skills
    assistant: str = ""  # what `fleet skills` calls it, if not by its name
    screens: str = ""  # a `Program`: how its screen is read
    first_request: int = 0  # tokens, as measured: its instructions and tools alone
    calls_tools: bool = True  # its model must be able to
    subagents: bool = False  # it reads `agents` as parts of one conversation of its own


BUILT_IN: dict[str, BuiltIn] = {
    "claude": BuiltIn(
        "claude.coder:ClaudeCoder",
        title="Claude Code",
        executable="claude",
        files="claude.files:GENERATES",
        tools="claude.files:TOOLS",
        mcp="claude.mcp:MCP",
        plugin="claude.plugin:PLUGIN",
        skills=".claude/skills",
        assistant="claude-code",
        screens="claude.screens:SCREENS",
        first_request=20_000,
        subagents=True,
    ),
    "codex": BuiltIn(
        "codex.coder:CodexCoder",
        title="Codex",
        executable="codex",
        files="codex.files:GENERATES",
        tools="codex.files:TOOLS",
        mcp="codex.mcp:MCP",
        plugin="codex.plugin:PLUGIN",
        skills=".codex/skills",
        screens="codex.screens:SCREENS",
        first_request=10_000,
    ),
    "opencode": BuiltIn(
        "opencode.coder:OpenCodeCoder",
        title="OpenCode",
        executable="opencode",
        files="opencode.files:GENERATES",
        tools="opencode.files:TOOLS",
        mcp="opencode.mcp:MCP",
        skills=".opencode/skills",
        screens="opencode.screens:SCREENS",
        first_request=8_000,
    ),
    "gemini": BuiltIn("acp.gemini:GeminiCoder", title="Gemini CLI", executable="gemini"),
    "agy": BuiltIn("plain.agy:AgyCoder", title="Antigravity CLI", executable="agy"),
    "aider": BuiltIn(
        "aider.coder:AiderCoder",
        title="Aider",
        executable="aider",
        files="aider.files:GENERATES",
        tools="aider.files:TOOLS",
        first_request=1_200,
        calls_tools=False,
    ),
    "acp": BuiltIn("acp.coder:AcpCoder"),
    "command": BuiltIn("plain.command:CommandCoder", calls_tools=False),
    "scripted": BuiltIn("plain.scripted:ScriptedCoder", calls_tools=False),
}
NONE = BuiltIn("")  # of a coder that the settings declare or a package brings


def built_in(name: str) -> BuiltIn:
    return BUILT_IN.get(name, NONE)


def having(what: str) -> tuple[str, ...]:
    """The names of the coders whose row has this, in the order of the table."""
    return tuple(name for name, row in BUILT_IN.items() if getattr(row, what))


def part(path: str) -> Any:
    """What a row's path leads to."""
    from importlib import import_module  # noqa: PLC0415  # start-up time

    module, _, name = path.partition(":")
    return getattr(import_module(f"{__name__}.{module}"), name)
