"""Any program that speaks the Agent Client Protocol (version 1) on standard input and output.

    ours   initialize                                                  with the launch
    its    what it can do                       → ours: session/new, session/resume, session/load
    its    a session, its modes and models      → ours: set_mode, set_model, session/prompt
    its    session/update …, request_permission → ours: what the agent's permissions say
    its    why the prompt ended                                        then its input is closed

The program is the agent's `command:` in fleet.yaml; `{model}` in it is replaced. It is offered no
files and no terminal of ours: it has its own.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fleet.adapters.coders.acp import rpc
from fleet.adapters.coders.acp.listener import AcpListener
from fleet.adapters.coders.shared.abilities import Abilities
from fleet.adapters.coders.shared.options import artifact_dir, permissions, strings
from fleet.domain.errors import Refused
from fleet.ports import Brief, Launch

if TYPE_CHECKING:
    from collections.abc import Sequence

MODEL = "{model}"


class AcpCoder:
    name = "acp"
    resumes = True
    stalls = True
    costs = True
    window = 128_000
    abilities = Abilities(
        program="The agent's `command:`",
        resume="If the program says that it can.",
        words="As one more prompt; the program decides when it reads that. Fleet knows that it was "
        "read when that prompt ends.",
        usage="At the end of a turn, if the program reports it.",
        cost="If the program reports it.",
        context="If the program reports it.",
        limits="As an error, if its message says so. Fleet does not see what it retries by itself.",
        read="Fleet denies every permission that the program asks for, except to read, and chooses "
        "its mode `read-only` if it has one. Fleet does not see what the program does unasked.",
        edit="Fleet grants what the program asks for in the worktree and the task's artifacts. It "
        "does not see what the program does unasked.",
        full="Fleet grants all that the program asks for, in the mode that asks least.",
        verified="`opencode acp` 1.18.33 and claude-agent-acp 0.99.0 on Linux, against a "
        "scripted model. Not on macOS.",
    )

    def launch(self, brief: Brief) -> Launch:
        command = strings(brief, "command")
        if not command:
            raise Refused("The agent has no command.", fix="Set agents.NAME.command in fleet.yaml.")
        argv = [part.replace(MODEL, brief.model) for part in command]
        none = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
        able = {"protocolVersion": 1, "clientCapabilities": none}
        ours = {**able, "clientInfo": {"name": "fleet", "title": "Fleet", "version": "1"}}
        return Launch(
            (*argv, *strings(brief, "extra_args")),
            brief.cwd,
            brief.env,
            stdin=rpc.request("initialize", "initialize", ours),
            keep_stdin=True,
            opening=json.dumps(_opening(brief, command)),
        )

    def listen(self, opening: str) -> AcpListener:
        return AcpListener(json.loads(opening or "{}"))


def _opening(brief: Brief, command: Sequence[str]) -> dict[str, Any]:
    """ACP has no place for instructions, so they stand before the first prompt."""
    texts = (brief.instructions, brief.prompt) if not brief.session else (brief.prompt,)
    named = any(MODEL in part for part in command)
    return {
        "prompt": "\n\n".join(filter(None, texts)),
        "cwd": brief.cwd,
        "session": brief.session,
        "model": "" if named else brief.model,
        "mode": str(brief.options.get("mode") or ""),
        "permissions": permissions(brief),
        "places": [brief.cwd, artifact_dir(brief), *strings(brief, "writable")],
    }
