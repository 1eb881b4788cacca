"""Which of the tools that an agent lists its program grants. Programs drop unknown ones silently."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Claude Code 2.1: the tools that it offered to the model when each was listed.
CLAUDE = frozenset({
    "Agent", "AskUserQuestion", "Bash", "CronCreate", "CronDelete", "CronList", "Edit",
    "EnterWorktree", "ExitPlanMode", "ExitWorktree", "Glob", "Grep", "ListAgents", "Monitor",
    "NotebookEdit", "Read", "ReportFindings", "ScheduleWakeup", "SendMessage", "Skill", "Task",
    "TaskStop", "ToolSearch", "WebFetch", "WebSearch", "Workflow", "Write",
})  # fmt: skip
# OpenCode 1.18: the names of its permissions, the only thing that a list of tools controls there.
OPENCODE = frozenset({
    "agent", "bash", "edit", "glob", "grep", "ls", "multiedit", "notebookedit", "notebookread",
    "read", "skill", "task", "todowrite", "webfetch", "websearch", "write",
})  # fmt: skip
UNHEEDED = {  # programs that take no list, and what they do instead
    "aider": "aider calls no tools: it writes into files what the model answers",
    "codex": "codex takes no list of tools and has all of its own; it heeds `permissions`",
}
BY_BASH = frozenset({"Glob", "Grep"})  # not granted beside Bash, which does the same
INSTEAD = {"MultiEdit": "Edit", "LS": "Glob", "NotebookRead": "Read"}


def unknown(coder: str, tools: Sequence[str]) -> list[str]:
    """The tools that the program does not have; none for a program that takes no list of tools."""
    if coder == "claude":
        known = [tool for tool in tools if _plain(tool) in CLAUDE]
    elif coder == "opencode":
        known = [tool for tool in tools if _plain(tool).lower() in OPENCODE]
    else:
        return []
    return [tool for tool in tools if not tool.startswith("mcp__") and tool not in known]


def granted(coder: str, tools: Sequence[str]) -> tuple[str, ...]:
    """The tools that the agent will have when its program is given this list."""
    left = [tool for tool in tools if tool not in unknown(coder, tools)]
    if coder == "claude" and any(_plain(tool) == "Bash" for tool in left):
        left = [tool for tool in left if tool not in BY_BASH]
    return tuple(left)


def _plain(tool: str) -> str:
    """`Bash(git:*)` is Bash."""
    return tool.partition("(")[0]
