"""What is generated for whom."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.assistants.env_file import PATH as ENV
from fleet.adapters.assistants.env_file import env_file
from fleet.adapters.assistants.generated_files import Generated, refuse
from fleet.adapters.assistants.mcp_file import mcp_file
from fleet.adapters.coders.aider.files import aider_files
from fleet.adapters.coders.claude.files import agent_files, doubts
from fleet.adapters.coders.codex.files import PROFILE, codex_files
from fleet.adapters.coders.codex.files import doubts as codex_doubts
from fleet.adapters.coders.opencode.files import CONFIG, opencode_files
from fleet.adapters.gateway.key import ensure_key
from fleet.adapters.gateway.litellm_config import litellm_text
from fleet.domain.generated_files import File

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from fleet.domain.fleet import Fleet

__all__ = [
    "TARGETS", "Generated", "ensure_key", "files_of",
    "next_steps", "refuse", "usual_targets", "warnings_of",
]  # fmt: skip
TARGETS = ("litellm", "claude", "codex", "opencode", "aider", "env", "mcp")
USUAL = frozenset({"litellm", "claude", "env"})
LITELLM = "litellm_config.yaml"


def usual_targets(fleet: Fleet) -> tuple[str, ...]:
    """What everybody needs, and what the declared agents' coders read."""
    wanted = {*USUAL, *(agent.coder for agent in fleet.agents.values())}
    if fleet.mcp_servers:
        wanted.add("mcp")
    return tuple(target for target in TARGETS if target in wanted)


def files_of(fleet: Fleet, targets: Collection[str], source: str, top: str) -> list[File]:
    makers: dict[str, Callable[[], list[File]]] = {
        "litellm": lambda: [File("litellm", LITELLM, litellm_text(fleet, source))],
        "claude": lambda: agent_files(fleet, source),
        "codex": lambda: codex_files(fleet, source),
        "opencode": lambda: opencode_files(fleet, source),
        "aider": lambda: aider_files(fleet, source),
        "env": lambda: [env_file(fleet, source, _more(targets, top))],
        "mcp": lambda: [mcp_file(fleet)],
    }
    return [file for target in TARGETS if target in targets for file in makers[target]()]


def _more(targets: Collection[str], top: str) -> dict[str, str]:
    """Also when OpenCode's file is there from before: its line would be lost."""
    held = Path(top, CONFIG)
    return {"OPENCODE_CONFIG": str(held)} if "opencode" in targets or held.is_file() else {}


def warnings_of(fleet: Fleet, targets: Collection[str]) -> list[str]:
    agents = fleet.agents.values()
    found = [doubt for agent in agents for doubt in doubts(agent)] if "claude" in targets else []
    return [*found, *(codex_doubts(fleet) if "codex" in targets else ())]


def next_steps(targets: Collection[str]) -> Iterator[tuple[str, str]]:
    """What to run, and what that does."""
    if "litellm" in targets:
        yield "fleet gateway start", "serves the models under their aliases"
    source = f"source {ENV}"
    if "env" not in targets and {"claude", "codex", "opencode", "aider"} & set(targets):
        more = " ".join(f"--target {target}" for target in (*targets, "env"))
        yield f"fleet generate {more}", f"writes {ENV}, too, if it is not there yet"
    if "claude" in targets:
        yield f"{source} && claude", "Claude Code on your own machines"
    if "codex" in targets:
        link = f'ln -sf "$PWD/{PROFILE}" "${{CODEX_HOME:-$HOME/.codex}}/"'
        yield f"{source} && {link} && codex --profile fleet", "Codex, too"
    if "opencode" in targets:
        yield f"{source} && opencode", "OpenCode, too"
    if "aider" in targets:
        yield f'{source} && OPENAI_API_KEY="$LITELLM_MASTER_KEY" aider', "Aider, too"
