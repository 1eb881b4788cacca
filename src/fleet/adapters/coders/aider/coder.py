"""Aider: `aider --message-file`, one prompt and then the end.

Its words go to standard output as they are, model's and Aider's own alike. Between them stand the
lines of its event log (`--analytics-log`, kept on this machine): they alone say where a reply
begins and ends, what it cost, and that a message was never answered. It exits with 0 either way.

It works on files that are named to it, runs no command of the model's, and commits what it has
edited: nobody else would, so the work would not be on the task's branch.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.coders.aider.listener import AiderListener
from fleet.adapters.coders.shared.abilities import Abilities
from fleet.adapters.coders.shared.options import gateway, permissions, strings
from fleet.base.files import write_atomically
from fleet.ports import Brief, Launch

if TYPE_CHECKING:
    from fleet.adapters.coders.shared.options import GatewayOption

HEADLESS = (
    "--yes-always",  # else it waits for a person; to running commands this says no
    "--no-pretty", "--no-stream", "--no-fancy-input",
    "--no-suggest-shell-commands", "--no-detect-urls", "--disable-playwright",
    "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings",
    "--no-gitignore", "--no-analytics", "--analytics-log", "/dev/stdout",
    "--message-file", "/dev/stdin",
)  # fmt: skip
QUIET = {
    "BROWSER": "true",  # it offers to open addresses, and `--yes-always` accepts
    "COLUMNS": "10000",  # it would break lines
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "PYTHONUNBUFFERED": "1",  # so that its two kinds of lines come in order
}
PROVIDER = "litellm_proxy"  # whose variables no project's .env is likely to set
OUTPUT = 8192  # tokens that a model behind the gateway is let to say at once
PROBE_SECONDS = 10.0


class AiderCoder:
    name = "aider"
    resumes = True
    stalls = False  # the tests that its settings name may be long and silent
    costs = True
    window = 128_000
    abilities = Abilities(
        program="Aider",
        resume="Yes, on the same host, from a chat history in the task's folder.",
        words="No.",
        usage="At every reply of the model, but for what it asks to word its commits.",
        cost="At every reply, for models whose price Aider knows.",
        context="At every reply of the model.",
        limits="Yes, without the time to come back. It first retries by itself, for a minute.",
        read="Its chat mode `ask`, with --dry-run: it changes nothing, its artifacts included.",
        edit="Files in the repository of the worktree, and commits on its branch. No commands, "
        "so that it cannot ask; linters and tests run if Aider's own settings name them. A new "
        "file that it names elsewhere is made there, empty.",
        full="As `edit`: it is never let to run commands.",
        verified="Aider 0.86.2 on Linux, against a scripted model. Not on macOS.",
    )

    def launch(self, brief: Brief) -> Launch:
        history = brief.session or str(Path(brief.task_dir, "aider", f"{brief.run_id}.md"))
        folder = Path(history).parent
        argv = [*(strings(brief, "command") or ("aider",)), *HEADLESS]
        argv += ["--chat-history-file", history, "--input-history-file", str(folder / "input")]
        if brief.session:
            argv += ["--restore-chat-history"]
        if brief.instructions:
            argv += ["--read", _written(folder / "instructions.md", brief.instructions)]
        if permissions(brief) == "read":
            argv += ["--chat-mode", "ask", "--dry-run"]
        env = {**brief.env, **QUIET, **_identity(brief)}
        if behind := gateway(brief):
            argv += _behind(behind, brief.model, folder)
            env["LITELLM_PROXY_API_KEY"] = env.get(behind.key_env, "")
        elif brief.model:
            argv += ["--model", brief.model]
        if not _in_git(brief.cwd):
            argv += ["--no-git"]  # it would make a repository
        return Launch(
            (*argv, *strings(brief, "extra_args")),
            brief.cwd,
            env,
            stdin=_as_words(brief.prompt),
            opening=json.dumps({"session": history}),
        )

    def listen(self, opening: str) -> AiderListener:
        return AiderListener(json.loads(opening or "{}"))


def _as_words(prompt: str) -> str:
    """The text, changed so that Aider does not take its beginning for a command of its own."""
    return f"\n{prompt}" if prompt.startswith(("/", "!")) else prompt


def _behind(behind: GatewayOption, model: str, folder: Path) -> list[str]:
    """Point Aider at the gateway by flags: a project's .env outranks the environment."""
    argv = ["--set-env", f"LITELLM_PROXY_API_BASE={behind.url}/v1"]
    if not model:
        return argv
    name = f"{PROVIDER}/{model}"
    argv += ["--model", name, "--weak-model", name]
    if behind.context:
        known: dict[str, Any] = {"litellm_provider": PROVIDER, "mode": "chat"}
        known["max_input_tokens"] = behind.context
        known["max_output_tokens"] = known["max_tokens"] = min(OUTPUT, behind.context // 4)
        models = _written(folder / "models.json", json.dumps({name: known}))
        argv += ["--model-metadata-file", models]
    return argv


def _written(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)
    return str(path)


def _in_git(cwd: str) -> bool:
    return any((folder / ".git").exists() for folder in (Path(cwd), *Path(cwd).parents))


def _identity(brief: Brief) -> dict[str, str]:
    """Name a committer where git knows none: else Aider writes one into the repository's settings."""
    try:
        ran = subprocess.run(
            ["git", "config", "--get-regexp", r"^user\.(name|email)$"],
            cwd=brief.cwd, env=dict(brief.env), capture_output=True, timeout=PROBE_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return {}
    known = {line.partition(b" ")[0] for line in ran.stdout.splitlines()}
    wanted = {b"user.name": "aider", b"user.email": "aider@localhost"}
    unknown = [(key, value) for key, value in wanted.items() if key not in known]
    taken = int(brief.env.get("GIT_CONFIG_COUNT") or 0)
    env = {"GIT_CONFIG_COUNT": str(taken + len(unknown))} if unknown else {}
    for number, (key, value) in enumerate(unknown, taken):
        env |= {f"GIT_CONFIG_KEY_{number}": key.decode(), f"GIT_CONFIG_VALUE_{number}": value}
    return env
