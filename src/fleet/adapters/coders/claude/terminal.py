"""Claude Code with its screen: what its own hooks wrote is the run's transcript.

The hooks come by `--settings`, for this process alone: nothing is written into the repository or
the person's settings. Each is one line of `sh`. What it is handed ends with a newline, and `dd`
writes it at once, so that hooks that run side by side do not mix their lines.

No hook tells that a person pressed Escape, or said no to a dialog. Claude Code's own record of the
conversation does, so it watches that file for us (its FileChanged hook), and what is new in it and
tells something is copied: how a turn was cut short, and what the model's replies have used.

The first prompt is an argument, for what is pasted loses its tabs and the blanks at its end. Later
ones with tabs come by the editor that Claude Code lets write a prompt: that is ours (`editor.sh`),
and starts the person's own when nothing waits to be typed.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

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
from fleet.adapters.coders.claude.watcher import ClaudeWatcher
from fleet.adapters.coders.shared.hook_lines import APPEND
from fleet.adapters.coders.shared.options import first_words, permissions, strings
from fleet.ports import Brief, Launch

if TYPE_CHECKING:
    from fleet.adapters.coders.shared.options import Permissions

__all__ = ["ClaudeWatcher", "launch"]

TELLING = (
    "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest",
    "PermissionDenied", "Notification", "Stop", "StopFailure",
)  # fmt: skip
HEADLESS_ONLY = "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"  # a person may want them, and can end them
PATH = (
    """x=$(cat); p=${x#*'"transcript_path":"'}; p=${p%%'"'*}; s="$FLEET_RUN_DIR/read.${p##*/}\""""
)
WATCHED = f"""\
{PATH}; printf '%s\\n' "$x" | {APPEND}; mkdir -p -m 700 "${{p%/*}}"
[ -e "$s" ] || if [ -e "$p" ]; then
tail -c 262144 "$p" | grep -F '"type":"cost-state"' | tail -n 1 | {APPEND}; wc -c <"$p" >"$s"
fi
printf '{{"hookSpecificOutput":{{"hookEventName":"SessionStart","watchPaths":["%s"]}}}}' "$p\""""
FOLLOW = f"""\
{PATH}; o=$(cat "$s" 2>/dev/null || echo 0); n=$(wc -c <"$p"); echo "$n" >"$s"
tail -c "+$((o + 1))" "$p" | head -c "$((n - o))" |
grep -F -e '"type":"assistant"' -e '[Request interrupted by user' -e '"type":"cost-state"' |
{APPEND}"""
LAST_LINE = f"{FOLLOW}; printf '%s\\n' \"$x\" | {APPEND}"
EDITOR = Path(__file__).with_name("editor.sh")
HOOK_SECONDS = 10  # seconds for a hook; each takes milliseconds


def launch(brief: Brief) -> Launch:
    """`stdin` is the prompt, to be pasted, only where it is too long for an argument."""
    session = str(uuid.uuid4()) if brief.fork or not brief.session else brief.session
    argv = [*(strings(brief, "command") or ("claude",))]
    if brief.session:
        argv += ["--resume", brief.session]
    if brief.fork:
        argv += ["--fork-session"]
    if session != brief.session:
        argv += ["--session-id", session]
    if brief.model:
        argv += ["--model", brief.model]
    if brief.instructions:
        argv += ["--append-system-prompt", argument(brief.instructions)]
    granted, extra = permissions(brief), strings(brief, "extra_args")
    refuse_bypass(extra, granted)
    argv += ["--settings", _settings(granted), *_permitted(brief, granted), *extra]
    prompt, paste = first_words(brief)
    argv += ["--", *prompt] if prompt else []
    env = environment(brief)
    if HEADLESS_ONLY not in brief.env:
        del env[HEADLESS_ONLY]
    if " " not in str(EDITOR):  # it is split there
        own = env.get("VISUAL") or env.get("EDITOR") or ""
        env |= dict.fromkeys(("VISUAL", "EDITOR"), f"sh {EDITOR}") | {"FLEET_EDITOR": own}
    return Launch(tuple(argv), brief.cwd, env, stdin=paste, opening=session, terminal=True)


def _settings(granted: Permissions) -> str:
    commands = dict.fromkeys(TELLING, APPEND)
    commands |= {"SessionStart": WATCHED, "FileChanged": FOLLOW, "SessionEnd": LAST_LINE}
    settings: dict[str, object] = {"hooks": {on: [_hook(does)] for on, does in commands.items()}}
    if granted == "full":
        settings["skipDangerousModePermissionPrompt"] = True  # it was written down: `full`
    return json.dumps(settings)


def _hook(command: str) -> dict[str, object]:
    return {"hooks": [{"type": "command", "command": command, "timeout": HOOK_SECONDS}]}


def _permitted(brief: Brief, granted: Permissions) -> list[str]:
    """The tools that Claude may use without asking; for others, it asks the person at its screen."""
    named = strings(brief, "tools")
    builtin = [tool.partition("(")[0] for tool in named if not tool.startswith("mcp__")]
    denied = [tool for tool in LEAVING if tool not in builtin]
    allowed = [t for t in named if t.partition("(")[0] not in {"Bash", *EDITING}]
    server, callable_ = with_team_tools(brief)
    argv = ["--tools", ",".join(builtin)] if builtin else []
    argv += server
    if len(writable := places(brief)) > 1:
        argv += ["--add-dir", *writable[1:]]
    match granted:
        case "read":
            argv += ["--permission-mode", "manual"]
            denied += EDITING
        case "edit":
            argv += ["--permission-mode", "acceptEdits"]
        case "full":
            argv += ["--dangerously-skip-permissions"]
    allowed = [*dict.fromkeys([*allowed, *OURS, *callable_])]
    return [*argv, "--allowedTools", ",".join(allowed), "--disallowedTools", ",".join(denied)]
