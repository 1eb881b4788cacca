"""OpenCode, by its server: `opencode serve`, behind a bridge to standard input and output.

ours   POST /session, or GET of the one to continue                at once, with the launch
its    the session's id                                            → ours: prompt_async
its    session.status busy, parts of messages, step-finish …
ours   prompt_async                                                words, at its next step
its    session.status idle                                         then its input is closed

Its `run` cannot be spoken to; its `acp` tells of tokens only at the end of a turn and of retries
never, and drops a prompt that begins with a slash.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.coders.opencode import bridge as opencode_bridge
from fleet.adapters.coders.opencode import copy_session
from fleet.adapters.coders.opencode import terminal as opencode_terminal
from fleet.adapters.coders.opencode.copy_session import copy_id
from fleet.adapters.coders.opencode.listener import OpenCodeListener, order
from fleet.adapters.coders.shared.abilities import Abilities
from fleet.adapters.coders.shared.options import (
    artifact_dir,
    first_words,
    gateway,
    permissions,
    strings,
    team_tools,
)
from fleet.ports import Brief, Launch

if TYPE_CHECKING:
    from fleet.adapters.coders.shared.options import GatewayOption

AGENT = "fleet-run"
PROVIDER = "fleet"
QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
}
NOBODY = ("question", "plan_enter", "plan_exit", "doom_loop")  # what would wait for a person
READING = ("read", "glob", "grep", "list", "todowrite", "todoread", "skill", "lsp")
OUTPUT = 8192  # tokens that a model behind the gateway is let to say at once


class OpenCodeCoder:
    name = "opencode"
    resumes = True
    forks = True
    stalls = True
    costs = True
    window = 128_000
    abilities = Abilities(
        program="OpenCode",
        resume="Yes, on the same host; `fleet fork` continues a copy.",
        words="Yes: at the next step of the turn, else as the next turn.",
        usage="At every step, agents of its own included.",
        cost="At every step, for models whose price OpenCode knows.",
        context="At every step.",
        limits="Yes, with the time to come back if the provider named one. It first retries by itself, "
        "five times; when it would wait for more than two minutes, it is stopped.",
        read="Its own rules: no editing tools save for the task's artifacts, and no commands "
        "but `fleet` and `bd`.",
        edit="Its own rules: files in the worktree and the task's artifacts. Commands, unless "
        "it finds a path outside in them; it does not see what a program or a redirection writes.",
        full="Everything that you may do.",
        verified="OpenCode 1.18.33 on Linux, against a scripted model. Not on macOS.",
    )

    def launch(self, brief: Brief) -> Launch:
        program = strings(brief, "command") or ("opencode",)
        serve = (*program, "serve", "--hostname", "127.0.0.1", "--port", "0")
        bridge = (sys.executable, "-I", "-S", opencode_bridge.__file__)
        config = json.dumps(_config(brief))
        if brief.session:
            first = order("session", f"/session/{brief.session}", None, method="GET")
        else:
            first = order("session", "/session", {})
        return Launch(
            (*bridge, *serve, *strings(brief, "extra_args")),
            brief.cwd,
            {**brief.env, **QUIET, "OPENCODE_CONFIG_CONTENT": config},
            stdin=first,
            keep_stdin=True,
            opening=json.dumps(_opening(brief)),
        )

    def listen(self, opening: str) -> OpenCodeListener:
        return OpenCodeListener(json.loads(opening or "{}"))

    def launch_in_terminal(self, brief: Brief) -> Launch:
        """`stdin` is the prompt, to be pasted, where it cannot be an argument.

        It can not when it is too long, nor in a session that is continued: there it is dropped.
        """
        program = strings(brief, "command") or ("opencode",)
        argv = [*program, "--agent", AGENT]
        if name := _model(brief):
            argv += ["--model", name]
        session = copy_id(brief.session, brief.run_id) if brief.fork else brief.session
        if session:
            argv += ["--session", session]
        if brief.fork:
            maker = (sys.executable, "-I", "-S", copy_session.__file__)
            argv = [*maker, brief.session, session, str(len(program)), *argv]
        prompt, paste = first_words(brief, when_resumed=False)
        argv += [f"--prompt={one}" for one in prompt]
        config = _config(brief)
        config["plugin"] = [opencode_terminal.plugin(brief.instructions)]
        agent = config["agent"][AGENT]
        agent["permission"] = opencode_terminal.rules(_rules(brief), permissions(brief))
        return Launch(
            (*argv, *strings(brief, "extra_args")),
            brief.cwd,
            {**brief.env, **QUIET, "OPENCODE_CONFIG_CONTENT": json.dumps(config)},
            stdin=paste,
            opening=json.dumps({"session": session}),
            terminal=True,
        )

    def watch(self, opening: str) -> opencode_terminal.OpenCodeWatcher:
        return opencode_terminal.OpenCodeWatcher(json.loads(opening or "{}"))


def _opening(brief: Brief) -> dict[str, Any]:
    message: dict[str, Any] = {"agent": AGENT}
    if name := _model(brief):
        provider, _, model = name.partition("/")
        message["model"] = {"providerID": provider, "modelID": model}
    if brief.instructions:
        message["system"] = brief.instructions
    return {"message": message, "prompt": brief.prompt, "yes": permissions(brief) == "full"}


def _model(brief: Brief) -> str:
    """The model's name as OpenCode writes it: `provider/model`."""
    if brief.model and gateway(brief):
        return f"{PROVIDER}/{brief.model}"
    return brief.model


def _config(brief: Brief) -> dict[str, Any]:
    """Settings on top of the user's own. An agent's rules come last, so that nothing outranks them."""
    agent = {"mode": "primary", "description": "A run of Fleet.", "permission": _rules(brief)}
    config: dict[str, Any] = {"autoupdate": False, "share": "disabled", "agent": {AGENT: agent}}
    if name := _model(brief):
        config |= {"model": name, "small_model": name}
    if behind := gateway(brief):
        config["provider"] = {PROVIDER: _provider(behind, brief.model)}
    if server := _team_server(brief):
        config["mcp"] = {"fleet": server}
    return config


def _team_server(brief: Brief) -> dict[str, Any] | None:
    given = team_tools(brief)
    if given is None:
        return None
    if not given.url:
        return {"type": "local", "command": list(given.command)}
    headers = {"Authorization": f"Bearer {{env:{given.token_env}}}"}
    return {"type": "remote", "url": given.url, "headers": headers, "oauth": False}


def _provider(behind: GatewayOption, model: str) -> dict[str, Any]:
    known: dict[str, Any] = {"name": model, "tool_call": True}
    if behind.context:
        known["limit"] = {"context": behind.context, "output": min(OUTPUT, behind.context // 4)}
    options: dict[str, Any] = {
        "baseURL": f"{behind.url}/v1",
        "apiKey": f"{{env:{behind.key_env}}}",
    }
    if behind.headers:
        options["headers"] = behind.headers
    return {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Fleet",
        "options": options,
        "models": {model: known},
    }


def _rules(brief: Brief) -> dict[str, Any]:
    """The permission rules, in order: of those that match, OpenCode applies the last."""
    nobody = dict.fromkeys(NOBODY, "deny")
    places = (artifact_dir(brief), *strings(brief, "writable"))
    outside = {"*": "deny", **{f"{directory}/*": "allow" for directory in places}}
    match permissions(brief):
        case "full":
            return {"*": "allow", **nobody}
        case "edit":
            return {"*": "allow", "external_directory": outside, **nobody}
    return {
        "*": "deny",
        **dict.fromkeys(READING, "allow"),
        **({"fleet_*": "allow"} if team_tools(brief) else {}),
        "external_directory": outside,
        "edit": {
            "*": "deny",
            **{f"{_as_edited(brief, directory)}/*": "allow" for directory in places},
        },
        "bash": {"*": "deny", "fleet *": "allow", "bd *": "allow", "*>*": "deny", "*<*": "deny"},
    }


def _as_edited(brief: Brief, path: str) -> str:
    """Rules about editing are about paths from the root of the worktree, or of the disk."""
    cwd = Path(brief.cwd)
    root = next((p for p in (cwd, *cwd.parents) if (p / ".git").exists()), Path("/"))
    return os.path.relpath(path, root)
