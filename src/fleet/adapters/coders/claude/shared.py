"""What the headless and the interactive Claude Code share: environment, places, refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.coders.shared.options import LONGEST_ARGUMENT, gateway, strings, team_tools
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from fleet.adapters.coders.shared.options import GatewayOption, Permissions
    from fleet.ports import Brief

DEFAULTS = {  # what the person has set wins
    "BASH_MAX_TIMEOUT_MS": "3600000",  # the run's own limits end what takes too long
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",  # one command left there keeps it from exiting
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}
HEADERS = "ANTHROPIC_CUSTOM_HEADERS"  # one to a line
OUTER = (  # what Claude Code tells its children about itself, as 2.1.325 does
    "AI_AGENT", "CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH", "CLAUDE_CODE_MESSAGING_SOCKET", "CLAUDE_CODE_MESSAGING_TOKEN",
    "CLAUDE_CODE_SESSION_ATTENDED", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_EFFORT", "CLAUDE_PID",
)  # fmt: skip
LEAVING = (  # tools that lead out of the run: elsewhere, later, or to other agents of this person
    "CronCreate", "CronDelete", "CronList", "EnterWorktree", "ExitWorktree", "ListAgents",
    "ScheduleWakeup", "SendMessage",
)  # fmt: skip
EDITING = ("Edit", "NotebookEdit", "Write")
OURS = ("Bash(fleet:*)", "Bash(bd:*)")
TIERS = ("HAIKU", "SONNET", "OPUS", "FABLE")  # an agent that it starts may ask for one by name


def places(brief: Brief) -> list[str]:
    """The directories that Claude may write in: where it starts, the worktree, the task's artifacts."""
    cwd = Path(brief.cwd)
    root = next((str(p) for p in (cwd, *cwd.parents) if (p / ".git").exists()), brief.cwd)
    notes = brief.env.get("FLEET_ARTIFACT_DIR") or str(Path(brief.task_dir, "artifacts"))
    return list(dict.fromkeys([brief.cwd, root, notes, *strings(brief, "writable")]))


def with_team_tools(brief: Brief) -> tuple[list[str], list[str]]:
    """What makes it find our MCP server, and what it may call there unasked.

    It fills in `${…}` itself, so that no token is seen in its arguments.
    """
    given = team_tools(brief)
    if given is None:
        return [], []
    if given.url:
        headers = {"Authorization": f"Bearer ${{{given.token_env}}}"}
        server: dict[str, object] = {"type": "http", "url": given.url, "headers": headers}
    else:
        server = {"type": "stdio", "command": given.command[0], "args": list(given.command[1:])}
    server["alwaysLoad"] = (
        True  # its tools are there from the first turn on, and are not searched for
    )
    return ["--mcp-config", json.dumps({"mcpServers": {"fleet": server}})], ["mcp__fleet"]


def refuse_bypass(extra: tuple[str, ...], granted: Permissions) -> None:
    risky = [a for a in extra if "dangerously" in a or "bypassPermissions" in a]
    if risky and granted != "full":
        raise Refused(
            f"extra_args has {risky[0]}, and the agent's permissions are '{granted}'.",
            fix="Set agents.NAME.permissions to full, if that is what you want.",
        )


def environment(brief: Brief) -> dict[str, str]:
    env = DEFAULTS | {name: value for name, value in brief.env.items() if name not in OUTER}
    behind = gateway(brief)
    if behind is not None:
        own = env.get(HEADERS, "").splitlines()
        headers = [*own, *(f"{name}: {value}" for name, value in behind.headers.items())]
        env |= _behind(behind, env.get(behind.key_env, ""), brief.model)
        env |= {HEADERS: "\n".join(headers)} if headers else {}
        env.pop("ANTHROPIC_API_KEY", None)  # it would outrank the gateway's key
    return env


def _behind(given: GatewayOption, key: str, model: str) -> dict[str, str]:
    """The environment for a gateway, without a header that would spoil the nodes' prompt caches."""
    env = {
        "ANTHROPIC_BASE_URL": given.url,
        "ANTHROPIC_AUTH_TOKEN": key,
        "API_TIMEOUT_MS": "3000000",
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
    }
    if model:
        env |= {"ANTHROPIC_MODEL": model}
        env |= {f"ANTHROPIC_DEFAULT_{tier}_MODEL": model for tier in TIERS}
    if given.context:
        env["CLAUDE_CODE_MAX_CONTEXT_TOKENS"] = str(given.context)
    return env


def argument(text: str) -> str:
    if len(text.encode()) > LONGEST_ARGUMENT:
        raise Refused(
            f"The agent's instructions are longer than {LONGEST_ARGUMENT:,} bytes.",
            fix="Put them in a file and have them tell the agent to read it.",
        )
    return text
