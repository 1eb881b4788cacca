"""What `fleet generate` writes, and the next steps that it names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.assistants.env_file import PATH as ENV
from fleet.adapters.assistants.env_file import env_file
from fleet.adapters.assistants.generated_files import Generated, refuse
from fleet.adapters.assistants.mcp_file import mcp_file
from fleet.adapters.coders import BUILT_IN, part
from fleet.adapters.gateway.key import ensure_key
from fleet.adapters.gateway.litellm_config import litellm_text
from fleet.app.coders import generate_targets
from fleet.domain.generated.files import File

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from fleet.adapters.coders.shared.generates import Generates
    from fleet.domain.fleet import Fleet

__all__ = [
    "ENV", "Generated", "ensure_key", "files_of",
    "next_steps", "refuse", "usual_targets", "warnings_of",
]  # fmt: skip
USUAL = frozenset({"litellm", "claude", "env"})
LITELLM = "litellm_config.yaml"


def usual_targets(fleet: Fleet) -> tuple[str, ...]:
    """Return the default targets: those of every fleet, and those of the agents' coders."""
    wanted = {*USUAL, *(agent.coder for agent in fleet.agents.values())}
    if fleet.mcp_servers:
        wanted.add("mcp")
    return tuple(target for target in generate_targets() if target in wanted)


def files_of(fleet: Fleet, targets: Collection[str], source: str, top: str) -> list[File]:
    makers: dict[str, Callable[[], list[File]]] = {
        "litellm": lambda: [File("litellm", LITELLM, litellm_text(fleet, source))],
        "env": lambda: [env_file(fleet, source, _more(targets, top))],
        "mcp": lambda: [mcp_file(fleet)],
    }
    ours = dict(_coders(targets))
    files: list[File] = []
    for target in generate_targets():
        if target in ours:
            files += ours[target].files(fleet, source)
        elif target in targets:
            files += makers[target]()
    return files


def _coders(targets: Collection[str] | None = None) -> Iterator[tuple[str, Generates]]:
    """Return the coders that have generated files: all, or those among the targets."""
    for name, row in BUILT_IN.items():
        if row.files and (targets is None or name in targets):
            yield name, part(row.files)


def _more(targets: Collection[str], top: str) -> dict[str, str]:
    """Return the variables that name the generated files.

    Also those of files from an earlier run, whose lines would otherwise be lost.
    """
    named = [(name, *each) for name, coder in _coders() for each in coder.exports]
    return {
        variable: str(Path(top, path))
        for name, variable, path in named
        if name in targets or Path(top, path).is_file()
    }


def warnings_of(fleet: Fleet, targets: Collection[str]) -> list[str]:
    return [doubt for _, coder in _coders(targets) for doubt in coder.doubts(fleet)]


def next_steps(fleet: Fleet, targets: Collection[str]) -> Iterator[tuple[str, str]]:
    """Return the commands to run next, each with what it does."""
    if not fleet.models:  # nothing to serve, so no gateway will run
        for name, coder in _coders(targets):
            if not coder.exports:
                title = BUILT_IN[name].title
                yield coder.start, f"{title} has these agents, with models of its own"
        return
    if "litellm" in targets:
        yield "fleet up", "serves the models under their aliases, and starts the supervisor"
    coders = list(_coders(targets))
    if coders and "env" not in targets:
        more = " ".join(f"--target {target}" for target in (*targets, "env"))
        yield f"fleet generate {more}", f"writes {ENV}, too, if it is not there yet"
    ends = [" on your own machines", *[", too"] * len(coders)]
    for (name, coder), end in zip(coders, ends, strict=False):
        yield f"source {ENV} && {coder.start}", f"{BUILT_IN[name].title}{end}"
