"""Any program that takes a prompt and prints lines.

The command is the agent's `command:` in fleet.yaml. `{prompt}`, `{model}` and `{session}` in it are
replaced; without `{prompt}` the prompt is its standard input.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fleet.domain.errors import Refused
from fleet.domain.transcript import Said, SaidKind
from fleet.ports import Brief, Launch

if TYPE_CHECKING:
    from collections.abc import Sequence


class CommandCoder:
    name = "command"
    resumes = False

    def launch(self, brief: Brief) -> Launch:
        command = brief.options.get("command")
        if not isinstance(command, tuple) or not command:
            raise Refused("The agent has no command.", fix="Set agents.NAME.command in fleet.yaml.")
        values = {"prompt": brief.prompt, "model": brief.model, "session": brief.session}
        argv = tuple(_filled(str(part), values) for part in command)
        as_argument = any("{prompt}" in str(part) for part in command)
        stdin = None if as_argument else brief.prompt
        return Launch(argv, brief.cwd, brief.env, stdin=stdin)

    def listen(self, opening: str) -> CommandCoder:
        del opening  # every line stands for itself
        return self

    def hear(self, line: str) -> Sequence[Said]:
        return (Said(SaidKind.TEXT, line),) if line.strip() else ()

    def words(self, text: str) -> str | None:
        del text  # it hears nothing once it has started
        return None


def _filled(part: str, values: dict[str, str]) -> str:
    """In one pass: a prompt that contains `{model}` stays as it is."""
    return re.sub(r"\{(prompt|model|session)\}", lambda found: values[found[1]], part)
