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
from typing import TYPE_CHECKING

from fleet.adapters.coders.claude import gate as claude_gate
from fleet.adapters.coders.claude import terminal as claude_terminal
from fleet.adapters.coders.claude.listener import ClaudeListener, message
from fleet.adapters.coders.claude.shared import (
    EDITING,
    LEAVING,
    OURS,
    argument,
    environment,
    places,
    refuse_bypass,
    with_team_tools,
)
from fleet.adapters.coders.shared.abilities import Abilities
from fleet.adapters.coders.shared.options import gateway, permissions, strings
from fleet.ports import Brief, Launch

if TYPE_CHECKING:
    from fleet.adapters.coders.shared.options import Permissions

HEADLESS = (
    "-p",
    "--output-format", "stream-json",
    "--input-format", "stream-json",
    "--verbose",
    "--replay-user-messages",
)  # fmt: skip


class ClaudeCoder:
    name = "claude"
    resumes = True
    forks = True
    stalls = True
    costs = True
    window = 200_000
    abilities = Abilities(
        program="Claude Code",
        resume="Yes, on the same host, from any directory; `fleet fork` continues a copy.",
        words="Yes: between two steps of the turn, else as the next turn.",
        usage="Input and cache at every reply of the model, output at the end of a turn.",
        cost="At the end of a turn, as Claude Code computes it. It gets a budget in dollars, and "
        "stops at the first reply that exceeds it. Your own nodes cost nothing.",
        context="At every reply of the model.",
        limits="Yes, with the time of the reset for a subscription. It first retries by itself.",
        read="No editing tools; of the commands, only `fleet` and those that only read.",
        edit="Files in the worktree. Commands, unless their text shows that they write elsewhere; "
        "only Claude Code's own sandbox confines what a program does, if its settings turn "
        "that on.",
        full="--dangerously-skip-permissions: everything that you may do.",
        verified="Claude Code 2.1.325 on Linux, against a scripted model. Not on macOS.",
    )

    def launch(self, brief: Brief) -> Launch:
        prompt = str(uuid.uuid4())
        return Launch(
            argv=_argv(brief),
            cwd=brief.cwd,
            env=environment(brief),
            stdin=message(brief.prompt, prompt),
            keep_stdin=True,
            opening=prompt,
        )

    def listen(self, opening: str) -> ClaudeListener:
        return ClaudeListener(opening)

    def launch_in_terminal(self, brief: Brief) -> Launch:
        return claude_terminal.launch(brief)

    def watch(self, opening: str) -> claude_terminal.ClaudeWatcher:
        return claude_terminal.ClaudeWatcher(opening)


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
        argv += ["--append-system-prompt", argument(brief.instructions)]
    extra = strings(brief, "extra_args")
    refuse_bypass(extra, granted)
    return (*argv, *_permitted(brief, granted), *extra)


def _permitted(brief: Brief, granted: Permissions) -> list[str]:
    named = strings(brief, "tools")
    builtin = [tool.partition("(")[0] for tool in named if not tool.startswith("mcp__")]
    denied = [tool for tool in LEAVING if tool not in builtin]
    allowed = [t for t in named if t.partition("(")[0] not in {"Bash", *EDITING}]
    writable = places(brief)
    server, callable_ = with_team_tools(brief)
    argv = ["--tools", ",".join(builtin)] if builtin else []
    argv += server
    allowed += callable_
    if len(writable) > 1:
        argv += ["--add-dir", *writable[1:]]
    match granted:
        case "read":
            argv += ["--permission-mode", "dontAsk"]
            denied += EDITING
            allowed += OURS
        case "edit":
            argv += ["--permission-mode", "acceptEdits", "--settings", _gate(writable)]
        case "full":
            argv += ["--dangerously-skip-permissions"]
    if allowed:
        argv += ["--allowedTools", ",".join(allowed)]
    return [*argv, "--disallowedTools", ",".join(denied)]


def _gate(writable: list[str]) -> str:
    command = shlex.join([sys.executable, "-I", "-S", claude_gate.__file__, *writable])
    hook = {"type": "command", "command": command, "timeout": 30}
    return json.dumps({"hooks": {"PermissionRequest": [{"matcher": "Bash", "hooks": [hook]}]}})
