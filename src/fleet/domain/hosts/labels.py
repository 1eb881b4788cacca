"""Whether a host can do a task: what the host has, and what the task needs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fleet.domain.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fleet.domain.run import Host
    from fleet.domain.task import Task

SYSTEMS = frozenset({"linux", "macos"})  # labels that say nothing of which host it is
NO_HOST = "no_host"  # why a task waits: this host, or every host, lacks something that it needs


def labels_of(host_id: str, name: str, declared: Iterable[str]) -> frozenset[str]:
    """A host answers to its id and its name, too."""
    return frozenset((host_id, name, *declared))


def lacking(needs: Iterable[str], labels: frozenset[str]) -> str:
    """What of it no label says, as a sentence; empty: nothing."""
    missing = [need for need in needs if need not in labels]
    if not missing:
        return ""
    return f"it has no label {' and no label '.join(missing)}"


def unfit(host: Host, task: Task, owner: str) -> str:
    """Why this host does not take the task, by what it wrote about itself; empty: it could.

    `owner`: whose program the task needs, as `program_owner` names it.
    """
    if lacks := lacking(task.spec.limits.needs, labels_of(host.id, host.name, host.labels)):
        return lacks
    for line in host.without:
        why, _, project = line.partition(" ")
        if project == task.project:
            return WITHOUT.get(why, f"it cannot work on {project}")
    program = next((m.partition(" ")[2] for m in host.missing if m.partition(" ")[0] == owner), "")
    if program:
        return f"{program} is not on its PATH"
    return DRAINED if host.draining else ""


def check_labels(labels: Iterable[str]) -> None:
    """Raise unless a task can need each of them."""
    for label in labels:
        words = [word for word in SEPARATED.split(label) if word]
        if [label] != words:
            fix = " ".join(f"--label {word}" for word in words) or "Name it, or leave it out."
            raise BadInput(f"'{label}' is not a label.", fix=fix)
        if len(label) > MAX_CHARACTERS:
            raise BadInput(f"A label has at most {MAX_CHARACTERS} characters.", fix="Shorten it.")


SEPARATED = re.compile(r"[\s,]+")
MAX_CHARACTERS = 100
DRAINED = "it takes no new tasks (drained)"
ABSENT, UNTRUSTED = "absent", "untrusted"
WITHOUT = {
    ABSENT: "it does not have the project",
    UNTRUSTED: "the project's settings are not trusted there",
}
