"""Codex with its screen: what its own hooks wrote is the run's transcript.

The hooks come by `-c`, for this process alone. Codex runs no hook that nobody has trusted, and asks
about new ones at its start; so each of ours comes with the hash that Codex itself would note down
(`hooks.state`), which covers that one command and nothing of the person's or the repository's.

A worktree is trusted when its repository is. For another one Codex asks the person at the screen,
once for the repository; that is for a person to say.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Any

from fleet.adapters.coders.shared.hook_lines import APPEND, Hooked
from fleet.base.loose_json import Json, integer, mapping
from fleet.domain.run import Usage
from fleet.domain.transcript import Said, SaidKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FLAGS = "/<session-flags>/config.toml"  # where Codex says that hooks given by `-c` come from
HOOK_SECONDS = 3  # seconds; it takes no more for some, and the hash is of what it takes
TELL = f"{{ cat; echo; }} | {APPEND}"
ALSO_USED = f"""\
x=$(cat); p=${{x#*'"transcript_path":"'}}; {{ printf '%s\\n' "$x"
tail -c 262144 "${{p%%'"'*}}" | sed -n '/"type":"token_count"/h;${{x;/./p;}}'; }} 2>/dev/null | {APPEND}"""
HOOKS = {
    "SessionStart": ALSO_USED,
    "UserPromptSubmit": ALSO_USED,
    "PreToolUse": TELL,
    "PermissionRequest": TELL,
    "PostToolUse": ALSO_USED,
    "Stop": ALSO_USED,
    "Interrupt": ALSO_USED,
    "SessionEnd": ALSO_USED,
}


def settings(granted: str, instructions: str) -> Iterator[str]:
    """The settings passed by `-c`, in addition to those of a headless run."""
    yield f'approval_policy="{"never" if granted == "full" else "on-request"}"'
    if granted == "full":
        yield 'default_permissions=":danger-full-access"'
    if instructions:
        yield f"developer_instructions={json.dumps(instructions, ensure_ascii=False)}"
    for event, command in HOOKS.items():
        hook = f'{{type="command",command={json.dumps(command)},timeout={HOOK_SECONDS}}}'
        yield f"hooks.{event}=[{{hooks=[{hook}]}}]"
    trusted = (f"{json.dumps(key)}={{trusted_hash={json.dumps(h)}}}" for key, h in _hashes())
    yield f"hooks.state={{{','.join(trusted)}}}"


def _hashes() -> Iterator[tuple[str, str]]:
    for event, command in HOOKS.items():
        name = re.sub("(?<!^)(?=[A-Z])", "_", event).lower()
        hook: dict[str, Any] = {"type": "command", "command": command, "timeout": HOOK_SECONDS}
        identity = {"event_name": name, "hooks": [{**hook, "async": False}]}
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        yield f"{FLAGS}:{name}:0:0", f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


class CodexWatcher(Hooked):
    turn_id = "turn_id"

    def __init__(self, session: str) -> None:
        super().__init__(session)
        self._before = (0, 0, 0)  # what a resumed thread had used

    def _start(self, record: Json) -> Iterable[Said]:
        """Note the start of a session, unless it is that of an agent which Codex itself started."""
        if self._begun and record.get("source") == "startup":
            return ()
        return super()._start(record)

    def _hooked(self, event: str, record: Json) -> Iterable[Said]:
        if event == "Interrupt" and record.get("turn_id") == self._turn:
            return self._cut_short()
        return super()._hooked(event, record)

    def _followed(self, record: Json) -> Iterable[Said]:
        info = mapping(mapping(record.get("payload")).get("info"))
        total, last = mapping(info.get("total_token_usage")), mapping(info.get("last_token_usage"))
        if not total:
            return
        counted = tuple(integer(total.get(key)) for key in COUNTED)
        if not self._spoken:
            self._before = (counted[0], counted[1], counted[2])
            return
        given, cached, output = (n - b for n, b in zip(counted, self._before, strict=True))
        usage = Usage(given - cached, output, cached, integer(last.get("input_tokens")))
        window = integer(info.get("model_context_window"))
        yield Said(SaidKind.USAGE, usage=usage, total=True, window=window)


COUNTED = ("input_tokens", "cached_input_tokens", "output_tokens")
