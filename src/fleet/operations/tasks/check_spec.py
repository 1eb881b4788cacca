"""Check a task's `Spec` when it is added: refuse what could never start."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fleet.domain.choice import waits_for_default
from fleet.domain.errors import BadInput
from fleet.domain.task import Mode
from fleet.operations.shared.choice import choose_in
from fleet.operations.shared.names import clean_text, some_text

if TYPE_CHECKING:
    from fleet.domain.run import Choice
    from fleet.domain.task import Spec
    from fleet.ports import Chosen, World

MAX_CHARACTERS = 200
MOST_LABELS = 50
NO_BRANCH = re.compile(  # what git refuses in a branch name
    r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|//|@\{|(^|/)\.|\.lock(/|$)|^[-/]|[/.]$|^@$|^HEAD$"
)


def check_spec(spec: Spec) -> None:
    if not 0 <= spec.priority <= 4:
        raise BadInput(
            f"Priority {spec.priority} is not between 0 (first) and 4 (last).",
            fix="The default is 2.",
        )
    if min(spec.limits.attempts, spec.limits.time_limit, spec.limits.agents) < 0:
        raise BadInput(
            "Attempts, time limit and agents cannot be negative.",
            fix="Use 0 for what the settings say.",
        )
    for what in ("agent", "coder", "model", "base", "branch"):
        clean_text(what, getattr(spec, what), most=MAX_CHARACTERS)
    for what in ("agent", "coder", "model"):  # they become arguments of a command
        if getattr(spec, what).startswith("-"):
            raise BadInput(
                f"'{getattr(spec, what)[:60]}' is not a valid {what}.",
                fix="A name cannot begin with '-'.",
            )
    if "\0" in spec.cwd:
        raise BadInput(
            "The directory name contains a NUL byte.", fix="Give a path without NUL bytes."
        )
    _check_labels(spec.labels)
    if spec.mode not in set(Mode):
        known = ", ".join(mode for mode in Mode if mode)
        raise BadInput(f"'{spec.mode}' is not a mode.", fix=f"Modes: {known}.")
    if spec.branch and NO_BRANCH.search(spec.branch):
        raise BadInput(
            f"'{spec.branch}' is not a valid branch name.",
            fix="Use letters, digits, '-', '_' and '/'.",
        )
    if spec.base.startswith("-"):
        raise BadInput(f"'{spec.base}' is not a commit.", fix="Name a branch, a tag or a commit.")


def _check_labels(labels: tuple[str, ...]) -> None:
    if len(labels) > MOST_LABELS:
        raise BadInput(f"{len(labels)} labels are too many.", fix=f"Give at most {MOST_LABELS}.")
    for label in labels:
        some_text("label", label, most=MAX_CHARACTERS, example="Name it, or leave it out.")


def checked_choice(spec: Spec, world: World[Chosen]) -> Choice | None:
    """Who will do it; None: that is decided when it starts. Raise unless they exist.

    Defaults of the settings are checked at the start.
    """
    if spec.coder:
        world.fleet.check_coder(spec.coder)
    agent, choice = choose_in(world, spec)
    if (spec.agent or spec.coder) and choice.coder == "command" and not agent.command:
        raise BadInput(
            f"The agent '{agent.name}' has no command to run.",
            fix="Set agents.NAME.command in fleet.yaml, and give that NAME as --agent.",
        )
    return None if waits_for_default(spec, world.fleet) else choice
