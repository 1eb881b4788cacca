"""Claude Code: `claude -p`, with JSON lines in and out.

Its standard input stays open, so that it can be spoken to while it works; it ends when that is
closed and nothing waits. Every message we send carries an id, and `command_lifecycle` lines say
when that message was taken.
"""

from __future__ import annotations

import json
import shlex
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.coders import claude_gate
from fleet.adapters.coders.abilities import Abilities
from fleet.adapters.coders.claude_listener import ClaudeListener, message
from fleet.adapters.coders.options import gateway, permissions, strings
from fleet.domain.errors import Refused
from fleet.ports import Brief, Launch

if TYPE_CHECKING:
    from fleet.adapters.coders.options import GatewayOption, Permissions

HEADLESS = (
    "-p",
    "--output-format", "stream-json",
    "--input-format", "stream-json",
    "--verbose",
    "--replay-user-messages",
)  # fmt: skip
DEFAULTS = {  # what the person has set wins
    "BASH_MAX_TIMEOUT_MS": "3600000",  # the run's own limits end what takes too long
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",  # one command left there keeps it from exiting
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}
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
LONGEST = 120_000  # bytes in one argument; the kernel takes 128 KiB


class ClaudeCoder:
    name = "claude"
    resumes = True
    stalls = True
    costs = True
    window = 200_000
    abilities = Abilities(
        program="Claude Code",
        resume="Yes, on the same host, from any directory.",
        words="Yes: between two steps of the turn, else as the next turn.",
        usage="Input and cache at every reply of the model, output at the end of a turn.",
        cost="At the end of a turn, as Claude Code reckons it; a budget in dollars is given to "
        "it, and it stops at the first reply that is over. Nothing on our own nodes.",
        context="At every reply of the model.",
        limits="Yes, with the time of the reset for a subscription. It first retries by itself.",
        read="No editing tools; of the commands, only `fleet` and those that only read.",
        edit="Files in the worktree. Commands, unless it is plain from their text that they write "
        "elsewhere; what a program does is confined only by Claude Code's own sandbox, "
        "where its settings turn that on.",
        full="--dangerously-skip-permissions: everything that you may do.",
        verified="Claude Code 2.1.325 on Linux, against a scripted model. Not on macOS.",
    )

    def launch(self, brief: Brief) -> Launch:
        prompt = str(uuid.uuid4())
        return Launch(
            argv=_argv(brief),
            cwd=brief.cwd,
            env=_environment(brief),
            stdin=message(brief.prompt, prompt),
            keep_stdin=True,
            opening=prompt,
        )

    def listen(self, opening: str) -> ClaudeListener:
        return ClaudeListener(opening)


def _argv(brief: Brief) -> tuple[str, ...]:
    granted = permissions(brief)
    argv = [*(strings(brief, "command") or ("claude",)), *HEADLESS]
    if brief.session:
        argv += ["--resume", brief.session]
    if brief.model:
        argv += ["--model", brief.model]
    if (dollars := brief.options.get("budget_usd")) and gateway(brief) is None:
        argv += ["--max-budget-usd", f"{dollars:.4f}"]  # our own nodes cost nothing
    if brief.instructions:
        argv += ["--append-system-prompt", _argument(brief.instructions)]
    extra = strings(brief, "extra_args")
    _refuse_bypass(extra, granted)
    return (*argv, *_permitted(brief, granted), *extra)


def _permitted(brief: Brief, granted: Permissions) -> list[str]:
    named = strings(brief, "tools")
    builtin = [tool.partition("(")[0] for tool in named if not tool.startswith("mcp__")]
    denied = [tool for tool in LEAVING if tool not in builtin]
    allowed = [t for t in named if t.partition("(")[0] not in {"Bash", *EDITING}]
    places = _places(brief)
    argv = ["--tools", ",".join(builtin)] if builtin else []
    if len(places) > 1:
        argv += ["--add-dir", *places[1:]]
    match granted:
        case "read":
            argv += ["--permission-mode", "dontAsk"]
            denied += EDITING
            allowed += OURS
        case "edit":
            argv += ["--permission-mode", "acceptEdits", "--settings", _gate(places)]
        case "full":
            argv += ["--dangerously-skip-permissions"]
    if allowed:
        argv += ["--allowedTools", ",".join(allowed)]
    return [*argv, "--disallowedTools", ",".join(denied)]


def _places(brief: Brief) -> list[str]:
    """Where it may write: where it starts, all of that worktree, and its task's artifacts."""
    here = Path(brief.cwd)
    root = next((str(p) for p in (here, *here.parents) if (p / ".git").exists()), brief.cwd)
    notes = brief.env.get("FLEET_ARTIFACT_DIR") or str(Path(brief.task_dir, "artifacts"))
    return list(dict.fromkeys([brief.cwd, root, notes, *strings(brief, "writable")]))


def _gate(places: list[str]) -> str:
    command = shlex.join([sys.executable, "-I", "-S", claude_gate.__file__, *places])
    hook = {"type": "command", "command": command, "timeout": 30}
    return json.dumps({"hooks": {"PermissionRequest": [{"matcher": "Bash", "hooks": [hook]}]}})


def _refuse_bypass(extra: tuple[str, ...], granted: Permissions) -> None:
    risky = [a for a in extra if "dangerously" in a or "bypassPermissions" in a]
    if risky and granted != "full":
        raise Refused(
            f"extra_args has {risky[0]}, and the agent's permissions are '{granted}'.",
            fix="Set agents.NAME.permissions to full, if that is what you want.",
        )


def _environment(brief: Brief) -> dict[str, str]:
    env = DEFAULTS | {name: value for name, value in brief.env.items() if name not in OUTER}
    behind = gateway(brief)
    if behind is not None:
        env |= _behind(behind, env.get(behind.key_env, ""), brief.model)
        env.pop("ANTHROPIC_API_KEY", None)  # it would outrank the gateway's key
    return env


def _behind(given: GatewayOption, key: str, model: str) -> dict[str, str]:
    """Without the header that changes with every release, a node keeps its cache of the prompt."""
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


def _argument(text: str) -> str:
    if len(text.encode()) > LONGEST:
        raise Refused(
            f"The agent's instructions are longer than {LONGEST:,} bytes.",
            fix="Put them in a file and have them tell the agent to read it.",
        )
    return text
