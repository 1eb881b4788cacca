"""What a program grants of the tools that an agent names. What it does not have it drops unsaid."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# Claude Code 2.1, by what it sent to the model when each was named.
CLAUDE = frozenset({
    "Agent", "AskUserQuestion", "Bash", "CronCreate", "CronDelete", "CronList", "Edit",
    "EnterWorktree", "ExitPlanMode", "ExitWorktree", "Glob", "Grep", "ListAgents", "Monitor",
    "NotebookEdit", "Read", "ReportFindings", "ScheduleWakeup", "SendMessage", "Skill", "Task",
    "TaskStop", "ToolSearch", "WebFetch", "WebSearch", "Workflow", "Write",
})  # fmt: skip
BY_BASH = frozenset({"Glob", "Grep"})  # not granted beside Bash, which does the same
INSTEAD = {"MultiEdit": "Edit", "LS": "Glob", "NotebookRead": "Read"}


def unknown(coder: str, tools: Sequence[str]) -> list[str]:
    """Those that the program does not have; for one that takes no names of tools there are none."""
    if coder != "claude":
        return []
    return [tool for tool in tools if not tool.startswith("mcp__") and _plain(tool) not in CLAUDE]


def granted(coder: str, tools: Sequence[str]) -> tuple[str, ...]:
    """What the program will give the agent when it is told these."""
    if coder != "claude":
        return tuple(tools)
    left = [tool for tool in tools if tool not in unknown(coder, tools)]
    if any(_plain(tool) == "Bash" for tool in left):
        left = [tool for tool in left if tool not in BY_BASH]
    return tuple(left)


def _plain(tool: str) -> str:
    """`Bash(git:*)` is Bash."""
    return tool.partition("(")[0]
