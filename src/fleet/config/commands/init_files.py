"""The files that `fleet init` writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.config.files.yaml_edit import rendered
from fleet.config.keys import table
from fleet.config.keys.kinds import LISTS
from fleet.config.settings import Settings
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.config.project_kind import FoundOllama, ProjectKind

HEAVY, SMALL = "qwen2.5-coder:32b", "qwen2.5-coder:7b"

AGENTS = """\
agents:
  planner:
    coder: CODER
    model: small-coder
    description: Use for planning, file discovery, task decomposition, and summarization.
    tools: [Read, Grep, Glob]
    permissions: read
    prompt: |
      You are a fast planning agent.
      Do not edit files.
      Return a concise response with:
      - plan
      - relevant files
      - risks
      - next recommended agent
  implementer:
    coder: CODER
    model: heavy-coder
    description: Use for implementation, bug fixes, refactors, and patch creation.
    tools: [Read, Grep, Glob, Edit, Bash]
    prompt: |
      You are a senior implementation agent.
      Make minimal, correct changes.
      Prefer small patches.
      Run relevant checks when possible.
      Explain what changed and why.
  reviewer:
    coder: CODER
    model: heavy-coder
    description: Use after implementation to review diffs, tests, regressions, and maintainability.
    tools: [Read, Grep, Glob, Bash]
    permissions: read
    prompt: |
      You are a strict code reviewer.
      Focus on correctness, regressions, missing tests, security issues,
      over-engineering, and maintainability.
      Review the diff and test output.
      Return only actionable issues.
  summarizer:
    coder: CODER
    model: small-coder
    description: Use to summarize long files, logs and discussions.
    tools: [Read]
    permissions: read
    prompt: |
      You are a fast summarizing agent.
      Do not edit files.
      Keep what a reader must know, and leave out the rest.
"""

NO_NODES = f"""\
# No Ollama answered on this machine. To use models of your own, declare a node:
# nodes:
#   local:
#     endpoint: http://localhost:11434
# models:
#   heavy-coder: {{node: local, upstream: "{HEAVY}", context: 32768}}
"""


class MachineTools(NamedTuple):
    """What this machine has, and whether a person wants the set-up commands."""

    coders: tuple[str, ...] = ()
    ollama: FoundOllama | None = None
    set_up: bool = False


def project_file(name: str, kind: str, work: ProjectKind, machine: MachineTools) -> str:
    """A fleet.yaml that is valid as it is, and whose agents work with what is there."""
    return "\n".join(
        [
            "# This project's fleet. `fleet validate` checks it, `fleet config` shows what counts.",
            "project:",
            f"  name: {rendered(name)}",
            "",
            _compute(machine.ollama) if machine.ollama is not None else NO_NODES,
            _agents(machine),
            f"# How a new worktree is made ready ({kind} project).",
            "workspace:",
            *_items("credential_files", work.credential_files),
            *(_items("setup", work.setup) if machine.set_up else _commented(work.setup)),
            "",
        ]
    )


def _agents(machine: MachineTools) -> str:
    """The agents, with the first coder that is installed, and models only where a node serves them."""
    coder = machine.coders[0] if machine.coders else Settings().coder
    lines = AGENTS.replace("CODER", coder).splitlines()
    if coder != "claude":  # the names are those of its tools; others heed `permissions`
        lines = [line for line in lines if not line.startswith("    tools: ")]
    if machine.ollama is None:
        lines = [line for line in lines if not line.startswith("    model: ")]
    head = [] if machine.coders else ["# No coding program was found: `fleet coders` lists them."]
    return "\n".join([*head, *lines, ""])


def _compute(ollama: FoundOllama) -> str:
    models = ollama.models
    heavy, small = (models[0], models[-1]) if models else (HEAVY, SMALL)
    if models:
        comment = f"# This Ollama has: {', '.join(models)}."
    else:
        comment = f"# This Ollama has no models yet: `ollama pull {SMALL}`."
    return f"""\
nodes:
  {comment}
  local:
    endpoint: {ollama.endpoint}
    tags: [local]

models:
  heavy-coder:
    node: local
    upstream: {rendered(heavy)}
    alias: claude-sonnet-local
    context: 32768
    timeout: 600
  small-coder:
    node: local
    upstream: {rendered(small)}
    alias: claude-haiku-local
    context: 32768
    timeout: 300
"""


def _commented(commands: Sequence[str]) -> list[str]:
    if not commands:
        return _items("setup", ())
    words = "  # Remove the `# ` to run these in each new worktree, then run `fleet trust`:"
    return [words, *(line.replace("  ", "  # ", 1) for line in _items("setup", commands))]


def _items(name: str, items: Sequence[str]) -> list[str]:
    if not items:
        return [f"  {name}: []"]
    return [f"  {name}:", *(f"    - {rendered(item)}" for item in items)]


def user_file() -> str:
    """A config.yaml in which every setting is there with its default, commented out."""
    lines = [
        "# Your own settings, for all your projects. A project's fleet.yaml wins over this file,",
        "# the environment and flags win over both. `fleet config set KEY=VALUE` changes a line.",
    ]
    section = ""
    for key in table.SETTINGS:
        head, _, name = key.path.rpartition(".")
        depth = head.count(".") + 1 if head else 0
        if head != section:  # a section within one follows the settings of the outer one
            outer = [""] if depth == 1 else []
            lines += [*outer, f"# {'  ' * (depth - 1)}{head.rpartition('.')[2]}:"]
            section = head
        if not head:
            lines.append("")
        indent = "  " * depth
        value = list(key.default) if key.kind in LISTS else key.default
        lines += [f"# {indent}# {line}" for line in _wrapped(key.doc)]
        lines.append(f"# {indent}{name}: {rendered(value)}")
    return "\n".join(lines) + "\n"


def _wrapped(text: str) -> list[str]:
    import textwrap  # noqa: PLC0415 - only when the file is written

    return textwrap.wrap(text, 92)
