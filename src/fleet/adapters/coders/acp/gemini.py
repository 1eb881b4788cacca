"""Gemini CLI, by ACP: `gemini --acp`.

Its other way, `-p --output-format stream-json`, cannot be spoken to, and without a person it denies
every command that its approval mode does not grant outright. By ACP it asks, and the agent's
permissions answer; and what it says is read by the listener that every ACP program has.

It is not told that the worktree can be trusted, so what a repository has in `.gemini` does nothing;
in return it asks for everything.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.adapters.coders.acp.coder import AcpCoder
from fleet.adapters.coders.acp.listener import AcpListener
from fleet.adapters.coders.shared.abilities import Abilities
from fleet.adapters.coders.shared.context_estimate import ContextEstimate
from fleet.adapters.coders.shared.options import artifact_dir, gateway, permissions, strings
from fleet.base.files import write_atomically
from fleet.domain.run import Usage
from fleet.domain.transcript import Said, SaidKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fleet.adapters.coders.shared.options import GatewayOption
    from fleet.ports import Brief, Launch

MODES = {"read": "plan", "edit": "default", "full": "default"}  # the others need its trust
LOGIN = {"selectedType": "gemini-api-key"}
SETTINGS = "GEMINI_CLI_SYSTEM_SETTINGS_PATH"
SYSTEM = ("/etc/gemini-cli/settings.json", "/Library/Application Support/GeminiCli/settings.json")
OTHER_LOGINS = ("GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA")


class GeminiCoder:
    name = "gemini"
    resumes = False  # a session taken up within the minute in which it began is lost for good
    stalls = True
    costs = False
    estimates = True
    window = 1_000_000
    abilities = Abilities(
        program="Gemini CLI",
        resume="No: Gemini CLI 0.61.0 loses a session that is loaded within the minute in which it "
        "began.",
        words="Between two turns: in the middle of one they would cancel it.",
        usage="At the end of a turn.",
        cost="Never.",
        context="Estimated from its output, at about four characters a token.",
        limits="As an error, without the time to come back. It first retries by itself.",
        read="Its own mode `plan`: it reads, and writes nothing but plans of its own, in its home.",
        edit="Its tools write in the worktree and the task's artifacts. Fleet grants commands, and "
        "nothing confines them.",
        full="Fleet grants all that it asks for; its tools still write only in the worktree and "
        "the task's artifacts.",
        verified="Gemini CLI 0.61.0 on Linux, against a scripted model. Not on macOS, and not "
        "with a login at Google.",
    )

    def launch(self, brief: Brief) -> Launch:
        command = [*(strings(brief, "command") or ("gemini",)), "--acp"]
        command += ["-m", "{model}"] if brief.model else []
        places = [artifact_dir(brief), *strings(brief, "writable")]
        command += [word for directory in places for word in ("--include-directories", directory)]
        mode = MODES[permissions(brief)]
        options = {**brief.options, "command": tuple(command), "mode": mode}
        launch = AcpCoder().launch(brief._replace(options=options))
        if behind := gateway(brief):
            return launch._replace(env=_behind(launch.env, behind, Path(brief.task_dir)))
        return launch

    def listen(self, opening: str) -> GeminiListener:
        return GeminiListener(json.loads(opening or "{}"))


def _behind(env: Mapping[str, str], behind: GatewayOption, folder: Path) -> dict[str, str]:
    """Point Gemini at the gateway by its settings for all users, which outrank this user's login."""
    env = {name: value for name, value in env.items() if name not in OTHER_LOGINS}
    env |= {"GOOGLE_GEMINI_BASE_URL": behind.url, "GEMINI_API_KEY": env.get(behind.key_env, "")}
    if SETTINGS not in env and not any(Path(path).exists() for path in SYSTEM):
        file = folder / "gemini" / "settings.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, json.dumps({"security": {"auth": LOGIN}}))
        env[SETTINGS] = str(file)
    return env


class GeminiListener(AcpListener):
    """Gemini first mentions a tool when it asks permission for it, or when the tool is done."""

    def __init__(self, opening: dict[str, Any]) -> None:
        super().__init__(opening)
        self._estimate = ContextEstimate(str(opening.get("prompt", "")))
        self._turned = False  # its first turn has ended

    def hear(self, line: str) -> Sequence[Said]:
        if self._ready:
            self._estimate.add(line)
        return super().hear(line)

    def words(self, text: str) -> str | None:
        return super().words(text) if self._turned and not self._running else None

    def _on_request(self, ident: Any, method: str, params: dict[str, Any]) -> Iterator[Said]:
        call = params.get("toolCall") or {}
        if call.get("toolCallId") and call["toolCallId"] not in self._tools:
            yield from self._update({"sessionUpdate": "tool_call", **call})
        yield from super()._on_request(ident, method, params)

    def _called(self, update: dict[str, Any]) -> Iterator[Said]:
        if update["toolCallId"] not in self._tools:
            self._tools[update["toolCallId"]] = update
            title, kind = str(update.get("title", "")), str(update.get("kind") or "other")
            yield Said(SaidKind.TOOL, title, name=kind)
        yield from super()._called(update)
        if update["toolCallId"] not in self._tools:
            yield self._counted(Usage())

    def _prompted(self, ident: str, value: dict[str, Any], error: Any) -> Iterator[Said]:
        quota = (value.get("_meta") or {}).get("quota") or {}
        counts = quota.get("token_count") or {}
        given, made = int(counts.get("input_tokens") or 0), int(counts.get("output_tokens") or 0)
        self._turned = True
        yield self._counted(Usage(input=given, output=made))
        yield from super()._prompted(ident, value, error)

    def _counted(self, more: Usage) -> Said:
        used = self._used
        self._used = Usage(
            used.input + more.input,
            used.output + more.output,
            context=self._estimate.tokens,
            estimated=True,
        )
        return Said(SaidKind.USAGE, usage=self._used, total=True)
