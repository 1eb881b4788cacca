"""Codex, by its app-server: JSON-RPC over standard input and output, one process a run.

    ours   initialize, initialized, thread/start | thread/resume       at once, with the launch
    its    the thread's id                                             → ours: turn/start
    its    turn/started, item/started, item/completed, tokenUsage …
    ours   turn/steer                                                  words, into the running turn
    its    turn/completed                                              then its input is closed

It exits with 0 when its input ends, also in the middle of a turn.
"""

from __future__ import annotations

import json
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.coders.acp import rpc
from fleet.adapters.coders.codex import terminal as codex_terminal
from fleet.adapters.coders.codex.listener import CodexListener
from fleet.adapters.coders.shared.abilities import Abilities
from fleet.adapters.coders.shared.options import (
    artifact_dir,
    first_words,
    gateway,
    permissions,
    strings,
    team_tools,
)
from fleet.domain.errors import Refused
from fleet.ports import Brief, Launch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PROFILE = "fleet-run"
BESIDE_STORE = ("worktrees", "tasks", "runs", "logs", "config.yaml", "key", "host")
QUIET = (  # said again, whole, when the item is complete; or nothing to us
    "item/agentMessage/delta",
    "item/plan/delta",
    "item/reasoning/textDelta",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/summaryPartAdded",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "turn/diff/updated",
    "thread/started",
    "thread/status/changed",
    "thread/readState/changed",
    "remoteControl/status/changed",
    "skills/changed",
)


class CodexCoder:
    name = "codex"
    resumes = True
    forks = True
    stalls = True
    costs = False
    window = 128_000
    abilities = Abilities(
        program="Codex",
        resume="Yes, on the same host, with other permissions or another model if need be; `fleet fork` "
        "continues a copy.",
        words="Yes, into the running turn, at once; after it, as the next turn.",
        usage="At every reply of the model, agents of its own included.",
        cost="No.",
        context="At every reply of the model.",
        limits="Yes, with the time of the reset for a subscription. It first retries by itself.",
        read="Its sandbox: the whole disk read-only, save the task's artifacts; no network.",
        edit="Its sandbox: the worktree, its git directory save hooks and config, the task's "
        "artifacts and /tmp; no network for commands.",
        full="No sandbox: everything that you may do.",
        verified="Codex 0.166.0 on Linux, against a scripted model. Not on macOS.",
    )

    def launch(self, brief: Brief) -> Launch:
        argv = [*(strings(brief, "command") or ("codex",)), "--disable", "plugins"]
        for setting in (*_settings(brief), *_provider(brief)):
            argv += ["-c", setting]
        argv += ["app-server", *_extra(brief)]
        opening = _opening(brief)
        ours = {"clientInfo": {"name": "fleet", "title": "Fleet", "version": "1"}}
        able = {"experimentalApi": True, "optOutNotificationMethods": list(QUIET)}
        first = (
            rpc.request("initialize", "initialize", {**ours, "capabilities": able}),
            rpc.notification("initialized"),
            rpc.request("thread", opening["method"], opening["thread"]),
        )
        return Launch(
            tuple(argv),
            brief.cwd,
            _environment(brief),
            stdin="".join(first),
            keep_stdin=True,
            opening=json.dumps(opening),
            sandboxes=permissions(brief) != "full",
        )

    def listen(self, opening: str) -> CodexListener:
        return CodexListener(json.loads(opening or "{}"))

    def launch_in_terminal(self, brief: Brief) -> Launch:
        """`stdin` is the prompt, to be pasted, only where it is too long for an argument."""
        program = strings(brief, "command") or ("codex",)
        verb = ("fork" if brief.fork else "resume",) if brief.session else ()
        argv = [*program, *verb, "--no-daemon"]
        argv += ["--disable", "plugins"]
        if brief.fork:  # else it asks whether to work where the first agent does
            argv += ["--cd", brief.cwd]
        ours = codex_terminal.settings(permissions(brief), brief.instructions)
        for setting in (*_settings(brief), *_provider(brief), *ours):
            argv += ["-c", setting]
        argv += ["-m", brief.model] if brief.model else []
        prompt, paste = first_words(brief)
        words = (*((brief.session,) if brief.session else ()), *prompt)
        return Launch(
            (*argv, *_extra(brief), *(("--", *words) if words else ())),
            brief.cwd,
            _environment(brief),
            stdin=paste,
            opening="" if brief.fork else brief.session,  # a copy has an id of its own
            terminal=True,
            sandboxes=permissions(brief) != "full",
        )

    def watch(self, opening: str) -> codex_terminal.CodexWatcher:
        return codex_terminal.CodexWatcher(opening)


def _environment(brief: Brief) -> Mapping[str, str]:
    home = brief.options.get("home")
    return {**brief.env, "CODEX_HOME": str(home)} if home else brief.env


def _opening(brief: Brief) -> dict[str, Any]:
    """How the thread begins. It names no folder: Codex would write that into the user's settings."""
    full = permissions(brief) == "full"
    thread: dict[str, Any] = {
        "approvalPolicy": "never",
        "permissions": ":danger-full-access" if full else PROFILE,
    }
    if brief.model:
        thread["model"] = brief.model
    if brief.instructions:
        thread["developerInstructions"] = brief.instructions
    if brief.session:
        thread |= {"threadId": brief.session, "excludeTurns": True}
    method = "thread/resume" if brief.session else "thread/start"
    return {"method": method, "thread": thread, "prompt": brief.prompt, "yes": full}


def _settings(brief: Brief) -> Iterator[str]:
    yield "check_for_update_on_startup=false"
    yield "analytics.enabled=false"
    yield "allow_login_shell=false"  # a profile may set another PATH, without our `fleet` and `bd`
    yield from _team_tools(brief)
    match permissions(brief):
        case "full":
            return
        case "edit":
            base, rules = ":workspace", _home_places(brief) | _work_places(Path(brief.cwd))
        case _:
            base, rules = ":read-only", _home_places(brief)
    for directory in (artifact_dir(brief), *strings(brief, "writable")):
        rules[directory] = "write"
    yield f'default_permissions="{PROFILE}"'
    yield f'permissions.{PROFILE}.extends="{base}"'
    yield f"permissions.{PROFILE}.filesystem={_toml(rules)}"


def _team_tools(brief: Brief) -> Iterator[str]:
    """Secrets are passed by the names of variables, which are in the environment of the program.

    With `required`, the thread begins once the tools are known, and not without them. What is given
    here is merged with a server of that name in the settings, which must be of the same kind.
    """
    given = team_tools(brief)
    if given is None:
        return
    server: dict[str, Any] = {"default_tools_approval_mode": "approve", "required": True}
    kind = _declared(brief)
    if kind == "url" and not given.url:
        return
    if given.url and kind != "command":
        server |= {"url": given.url, "bearer_token_env_var": given.token_env}
    else:
        command, *args = given.command
        server |= {"command": command, "args": args, "env_vars": list(given.passes)}
    yield f"mcp_servers.fleet={_toml(server)}"


def _declared(brief: Brief) -> str:
    """How the user's settings reach an MCP server named `fleet`: `command`, `url`, or empty."""
    own = Path(brief.env.get("CODEX_HOME") or Path(brief.env.get("HOME", "/"), ".codex"))
    cwd = Path(brief.cwd)
    for directory in (own, *(folder / ".codex" for folder in (cwd, *cwd.parents))):
        with suppress(OSError, ValueError, AttributeError):
            config = tomllib.loads((directory / "config.toml").read_text("utf-8"))
            server = config.get("mcp_servers", {}).get("fleet", {})
            if kind := next((kind for kind in ("command", "url") if kind in server), ""):
                return kind
    return ""


def _extra(brief: Brief) -> tuple[str, ...]:
    extra, granted = strings(brief, "extra_args"), permissions(brief)
    risky = [a for a in extra if "danger" in a]
    if risky and granted != "full":
        raise Refused(
            f"extra_args has {risky[0]}, and the agent's permissions are '{granted}'.",
            fix="Set agents.NAME.permissions to full, if that is what you want.",
        )
    return extra


def _provider(brief: Brief) -> Iterator[str]:
    """The user's own login, unless there is a gateway."""
    behind = gateway(brief)
    if behind is None:
        return
    provider = {
        "name": "Fleet",
        "base_url": f"{behind.url}/v1",
        "env_key": behind.key_env,
        "wire_api": "responses",
        "stream_idle_timeout_ms": 1_800_000,  # a node of one's own may read a prompt for minutes
        "request_max_retries": 2,
    }
    if behind.headers:
        provider["http_headers"] = behind.headers
    yield 'model_provider="fleet"'
    yield f"model_providers.fleet={_toml(provider)}"
    yield 'web_search="disabled"'  # the provider's own tool, which no gateway has
    if behind.context:
        yield f"model_context_window={behind.context}"


def _home_places(brief: Brief) -> dict[str, str]:
    """The home, writable so that `fleet ask` works from the agent's shell; the rest of it is read-only.

    Only what is there is named: its sandbox makes what is not, and a kill would leave that behind.
    """
    named = brief.env.get("FLEET_HOME")
    if not named:
        return {}
    beside = (Path(named, name) for name in BESIDE_STORE)
    return {named: "write"} | {str(path): "read" for path in beside if path.exists()}


def _work_places(cwd: Path) -> dict[str, str]:
    """A linked worktree, and its git directory, so that work there can be committed.

    Its sandbox protects git directories, so they are named; hooks and config stay protected, since
    git would run what they say outside of the sandbox.
    """
    for directory in (cwd, *cwd.parents):
        mark = directory / ".git"
        if not mark.exists():
            continue
        rules = {} if mark.is_dir() else {str(directory): "write", str(mark): "read"}
        own, common = _git_directories(mark)
        rules |= {str(common): "write", str(own): "write"}
        guarded = (common / name for name in ("hooks", "config"))
        return rules | {str(directory): "read" for directory in guarded if directory.exists()}
    return {}


def _git_directories(mark: Path) -> tuple[Path, Path]:
    """The git directory of a worktree, and the one that it shares with others."""
    if mark.is_dir():
        return mark, mark
    own = mark.parent / mark.read_text().removeprefix("gitdir:").strip()
    shared = own / "commondir"
    common = own / shared.read_text().strip() if shared.exists() else own
    return own.resolve(), common.resolve()


def _toml(table: dict[str, Any]) -> str:
    pairs = ((k, _toml(v) if isinstance(v, dict) else _quoted(v)) for k, v in table.items())
    return "{" + ",".join(f"{_quoted(key)}={value}" for key, value in pairs) + "}"


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
