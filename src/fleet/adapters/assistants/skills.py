"""The shipped skills, where each assistant reads them, and the plugins that contain them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

import fleet
from fleet.adapters.coders import BUILT_IN, part
from fleet.domain.data import NamedTuple
from fleet.domain.generated.files import File

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHIPPED = Path(fleet.__file__).with_name("skills")
ASSISTANTS = {row.assistant or name: row for name, row in BUILT_IN.items() if row.skills}
FOLDERS = {name: row.skills for name, row in ASSISTANTS.items()}
BUNDLES = tuple(name for name, row in ASSISTANTS.items() if row.plugin)
NAME = "subagent-fleet"  # of the plugin, and of the marketplace
PLUGIN_FOLDER = f"plugins/{NAME}"
ORDER = ("bootstrap", "setup", "operations")
ABOUT = "Teaches the assistant to install, set up and operate Fleet."
AUTHORS = {"name": "The Fleet authors"}
KEYWORDS = ["coding-agents", "git-worktree", "litellm", "ollama", "queue"]


class Plugin(NamedTuple):
    files: Callable[[], dict[str, dict[str, Any]]]  # by path: the JSON of its marketplace
    install: str  # the command, with `{place}` for the quoted marketplace


class Skill(NamedTuple):
    name: str
    description: str
    text: str


def shipped() -> list[Skill]:
    """The skills, in the order in which a user needs them."""
    names = [f"{NAME}-{skill}" for skill in ORDER]
    return [_read(SHIPPED / name / "SKILL.md") for name in names]


def _read(path: Path) -> Skill:
    text = path.read_text("utf-8")
    head = yaml.safe_load(text.split("---\n", 2)[1])
    return Skill(head["name"], head["description"], text)


def group_of(target: str, skill: str) -> str:
    return f"skills/{target}/{skill}"


def skill_files(skills: Sequence[Skill], targets: Sequence[str]) -> list[File]:
    return [
        File(group_of(target, skill.name), f"{FOLDERS[target]}/{skill.name}/SKILL.md", skill.text)
        for target in targets
        for skill in skills
    ]


def plugin_files(skills: Sequence[Skill], targets: Sequence[str]) -> list[File]:
    """A marketplace for each target, of one plugin with one set of skills."""
    files = [
        File(f"plugins/{target}", path, json.dumps(body, indent=2) + "\n")
        for target in targets
        for path, body in plugin_of(target).files().items()
    ]
    both = [
        File("plugins/skills", f"{PLUGIN_FOLDER}/skills/{skill.name}/SKILL.md", skill.text)
        for skill in skills
    ]
    return [*files, *both]


def plugin_of(target: str) -> Plugin:
    plugin: Plugin = part(ASSISTANTS[target].plugin)
    return plugin


def manifest() -> dict[str, Any]:
    """The description that every assistant's plugin has."""
    return {
        "name": NAME,
        "version": fleet.__version__,
        "description": ABOUT,
        "author": AUTHORS,
        "license": "MIT",
        "keywords": KEYWORDS,
    }
