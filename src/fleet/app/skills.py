"""Install the skills and plugins that assistants read into a directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleet.adapters.assistants.generated_files import Generated
from fleet.adapters.assistants.skills import (
    BUNDLES,
    FOLDERS,
    Skill,
    group_of,
    plugin_files,
    plugin_of,
    shipped,
    skill_files,
)
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from fleet.domain.generated.files import File, WritePlan

__all__ = ["BUNDLES", "FOLDERS", "Skill", "plugin_of", "shipped"]


def install_skills(
    top: Path, skills: Sequence[Skill], targets: Sequence[str], *, force: bool
) -> WritePlan:
    """Raise `Refused` and write nothing when it would replace files that are not ours."""
    groups = {group_of(target, skill.name) for target in targets for skill in skills}
    return _install(top, skill_files(skills, targets), groups, force=force)


def install_plugins(top: Path, targets: Sequence[str], *, force: bool) -> WritePlan:
    groups = {"plugins/skills", *(f"plugins/{target}" for target in targets)}
    return _install(top, plugin_files(shipped(), targets), groups, force=force)


def _install(top: Path, files: list[File], groups: Collection[str], *, force: bool) -> WritePlan:
    generated = Generated(top)
    planned = generated.plan(files, groups, force=force)
    for reason, paths in (
        ("Edited since they were installed", planned.edited),
        ("There already, and not written by us", planned.foreign),
    ):
        if paths:
            raise Refused(f"{reason}: {', '.join(paths)}.", fix="`--force` writes over them.")
    generated.apply(files, planned)
    return planned


def standing(top: Path, skills: Sequence[Skill]) -> dict[tuple[str, str], str]:
    """Return, by (skill, target) that exists: installed, older, edited or foreign."""
    generated = Generated(top)
    states = {}
    for target in FOLDERS:
        for skill in skills:
            (file,) = skill_files([skill], [target])
            planned = generated.plan([file], (), force=False)
            if (top / file.path).exists():
                states[skill.name, target] = _state_of(planned)
    return states


def _state_of(planned: WritePlan) -> str:
    if planned.same:
        return "installed"
    if planned.write:
        return "older"
    return "edited" if planned.edited else "foreign"
