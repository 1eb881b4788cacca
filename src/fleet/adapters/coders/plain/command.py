"""Any program that takes a prompt and prints lines.

The command is the agent's `command:` in fleet.yaml. `{prompt}`, `{model}`, `{session}` and what else
`fill` knows are replaced; without `{prompt}` the prompt is its standard input. It need not be an
agent at all, so that it is told its instructions only where its command has a place for them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.coders.shared.abilities import Abilities
from fleet.adapters.coders.shared.context_estimate import ContextEstimate
from fleet.adapters.coders.shared.options import gateway, permissions, strings
from fleet.base.files import write_atomically
from fleet.domain.errors import Refused
from fleet.domain.transcript import Said, SaidKind
from fleet.ports import Brief, Launch

if TYPE_CHECKING:
    from collections.abc import Sequence

PLACEHOLDER = re.compile(
    r"\{(prompt|model|session|instructions|instructions_file|permissions|gateway)\}"
)
PROMPTS = ("{prompt}",)
INSTRUCTIONS = ("{instructions}", "{instructions_file}")


class CommandCoder:
    name = "command"
    resumes = False
    stalls = False
    costs = False
    estimates = True
    window = 128_000
    abilities = Abilities(
        program="The agent's `command:`",
        resume="No.",
        words="No.",
        usage="Never.",
        cost="Never.",
        context="Estimated from what it prints, at about four characters a token.",
        limits="No: it is known by its exit status alone.",
        read="Whatever the command does; `{permissions}` in it becomes `read`.",
        edit="Whatever the command does; `{permissions}` in it becomes `edit`.",
        full="Whatever the command does; `{permissions}` in it becomes `full`.",
        verified="Commands of the tests, on Linux.",
    )

    def launch(self, brief: Brief) -> Launch:
        command = brief.options.get("command")
        if not isinstance(command, tuple) or not command:
            raise Refused("The agent has no command.", fix="Set agents.NAME.command in fleet.yaml.")
        return fill(strings(brief, "command"), brief)

    def listen(self, opening: str) -> TextListener:
        del opening  # every line stands for itself
        return TextListener()


class TextListener:
    """Takes every line of output for a text of the coder."""

    def __init__(self) -> None:
        self._estimate = ContextEstimate()

    def hear(self, line: str) -> Sequence[Said]:
        if not line.strip():
            return ()
        self._estimate.add(line)
        item = Said(SaidKind.TEXT, line)
        return (item, self._estimate.usage()) if self._estimate.has_grown() else (item,)

    def words(self, text: str) -> str | None:
        del text  # it hears nothing once it has started
        return None


def fill(command: Sequence[str], brief: Brief, *, instruct: bool = False) -> Launch:
    """The command, with what it asks for in place.

    An argument that is a placeholder of nothing is left out, with the flag before it. With
    `instruct`, instructions that have no place in the command stand before the prompt.
    """
    unsaid = instruct and not brief.session and not _has(command, INSTRUCTIONS)
    extra = (brief.instructions,) if unsaid else ()
    prompt = "\n\n".join(filter(None, (*extra, brief.prompt)))
    behind = gateway(brief)
    values = {
        "prompt": prompt,
        "model": brief.model,
        "session": brief.session,
        "instructions": brief.instructions,
        "instructions_file": _file(command, brief),
        "permissions": permissions(brief),
        "gateway": f"{behind.url}/v1" if behind else "",
    }
    env = dict(brief.env)
    if behind:
        key = env.get(behind.key_env, "")
        env |= {"OPENAI_BASE_URL": values["gateway"], "OPENAI_API_KEY": key}
    stdin = None if _has(command, PROMPTS) else prompt
    argv = (*_filled(command, values), *strings(brief, "extra_args"))
    return Launch(argv, brief.cwd, env, stdin=stdin)


def _has(command: Sequence[str], placeholders: Sequence[str]) -> bool:
    return any(one in word for word in command for one in placeholders)


def _file(command: Sequence[str], brief: Brief) -> str:
    if not brief.instructions or not _has(command, INSTRUCTIONS[1:]):
        return ""
    path = Path(brief.task_dir, "instructions.md")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, brief.instructions)
    return str(path)


def _filled(command: Sequence[str], values: dict[str, str]) -> list[str]:
    """Replace all placeholders in one pass, so that a prompt that contains `{model}` is unchanged."""
    argv: list[str] = []
    for word in command:
        alone = PLACEHOLDER.fullmatch(word)
        if alone and alone[1] != "prompt" and not values[alone[1]]:
            if argv[1:] and argv[-1].startswith("-"):
                argv.pop()
            continue
        argv.append(PLACEHOLDER.sub(lambda match: values[match[1]], word))
    return argv
