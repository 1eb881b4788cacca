"""The built-in coders, one row each. A new one is a row here and a folder beside this file.

Its name stands once more in `fleet.domain.fleet.CODERS`, since the settings know coders by name.
"""

from __future__ import annotations

from typing import Any

from fleet.domain.data import NamedTuple


class BuiltIn(NamedTuple):
    """What Fleet has for a coder. Each path (`module:name`) is loaded by `part` when it is needed.

    An empty path: the coder has no such part.
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
    keys: tuple[str, ...] | None = None  # its provider's variables begin so; None: any provider's
    subagents: bool = False  # it reads `agents` as parts of one conversation of its own


BUILT_IN: dict[str, BuiltIn] = {
    "claude": BuiltIn(
        "fleet.adapters.coders.claude.coder:ClaudeCoder",
        title="Claude Code",
        executable="claude",
        files="fleet.adapters.coders.claude.files:GENERATES",
        tools="fleet.adapters.coders.claude.files:TOOLS",
        mcp="fleet.adapters.coders.claude.mcp:MCP",
        plugin="fleet.adapters.coders.claude.plugin:PLUGIN",
        skills=".claude/skills",
        assistant="claude-code",
        screens="fleet.adapters.coders.claude.screens:SCREENS",
        first_request=20_000,
        keys=("ANTHROPIC_", "CLAUDE_"),
        subagents=True,
    ),
    "codex": BuiltIn(
        "fleet.adapters.coders.codex.coder:CodexCoder",
        title="Codex",
        executable="codex",
        files="fleet.adapters.coders.codex.files:GENERATES",
        tools="fleet.adapters.coders.codex.files:TOOLS",
        mcp="fleet.adapters.coders.codex.mcp:MCP",
        plugin="fleet.adapters.coders.codex.plugin:PLUGIN",
        skills=".codex/skills",
        screens="fleet.adapters.coders.codex.screens:SCREENS",
        first_request=10_000,
        keys=("OPENAI_", "CODEX_", "AZURE_OPENAI_"),
    ),
    "opencode": BuiltIn(
        "fleet.adapters.coders.opencode.coder:OpenCodeCoder",
        title="OpenCode",
        executable="opencode",
        files="fleet.adapters.coders.opencode.files:GENERATES",
        tools="fleet.adapters.coders.opencode.files:TOOLS",
        mcp="fleet.adapters.coders.opencode.mcp:MCP",
        skills=".opencode/skills",
        screens="fleet.adapters.coders.opencode.screens:SCREENS",
        first_request=8_000,
    ),
    "gemini": BuiltIn(
        "fleet.adapters.coders.acp.gemini:GeminiCoder",
        title="Gemini CLI",
        executable="gemini",
        keys=("GEMINI_", "GOOGLE_"),
    ),
    "agy": BuiltIn(
        "fleet.adapters.coders.plain.agy:AgyCoder",
        title="Antigravity CLI",
        executable="agy",
        keys=("GEMINI_", "GOOGLE_", "ANTIGRAVITY_"),
    ),
    "aider": BuiltIn(
        "fleet.adapters.coders.aider.coder:AiderCoder",
        title="Aider",
        executable="aider",
        files="fleet.adapters.coders.aider.files:GENERATES",
        tools="fleet.adapters.coders.aider.files:TOOLS",
        first_request=1_200,
        calls_tools=False,
    ),
    "acp": BuiltIn("fleet.adapters.coders.acp.coder:AcpCoder"),
    "command": BuiltIn("fleet.adapters.coders.plain.command:CommandCoder", calls_tools=False),
    "scripted": BuiltIn(
        "fleet.adapters.coders.plain.scripted:ScriptedCoder", calls_tools=False, keys=()
    ),
}
NONE = BuiltIn("")  # of a coder that the settings declare or a package brings


def built_in(name: str) -> BuiltIn:
    return BUILT_IN.get(name, NONE)


def having(what: str) -> tuple[str, ...]:
    """The names of the coders whose row has this, in the order of the table."""
    return tuple(name for name, row in BUILT_IN.items() if getattr(row, what))


def part(path: str) -> Any:
    """Load the object that a row's path names."""
    from importlib import import_module  # noqa: PLC0415  # start-up time

    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
