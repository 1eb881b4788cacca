"""The shipped skills, where each assistant reads them, and the plugins that carry them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

import fleet
from fleet.domain.data import NamedTuple
from fleet.domain.generated_files import File

if TYPE_CHECKING:
    from collections.abc import Sequence

SHIPPED = Path(fleet.__file__).with_name("skills")
FOLDERS = {
    "claude-code": ".claude/skills",
    "codex": ".codex/skills",
    "opencode": ".opencode/skills",
}
PLUGIN = "subagent-fleet"  # of the marketplace, too
PLACE = f"plugins/{PLUGIN}"
BUNDLES = ("claude-code", "codex")
ORDER = ("bootstrap", "setup", "operations")
ABOUT = "Teaches the assistant to install, set up and operate Fleet."
AUTHORS = {"name": "The Fleet authors"}
KEYWORDS = ["coding-agents", "git-worktree", "litellm", "ollama", "queue"]


class Skill(NamedTuple):
    name: str
    description: str
    text: str


def shipped() -> list[Skill]:
    """In the order in which one needs them."""
    names = [f"{PLUGIN}-{part}" for part in ORDER]
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
    makers = {"claude-code": _claude, "codex": _codex}
    files = [
        File(f"plugins/{target}", path, json.dumps(body, indent=2) + "\n")
        for target in targets
        for path, body in makers[target]().items()
    ]
    both = [
        File("plugins/skills", f"{PLACE}/skills/{skill.name}/SKILL.md", skill.text)
        for skill in skills
    ]
    return [*files, *both]


def _plugin() -> dict[str, Any]:
    return {
        "name": PLUGIN,
        "version": fleet.__version__,
        "description": ABOUT,
        "author": AUTHORS,
        "license": "MIT",
        "keywords": KEYWORDS,
    }


def _claude() -> dict[str, dict[str, Any]]:
    listed = {"name": PLUGIN, "source": f"./{PLACE}", "description": ABOUT}
    market = {"name": PLUGIN, "owner": AUTHORS, "description": ABOUT, "plugins": [listed]}
    return {
        ".claude-plugin/marketplace.json": market,
        f"{PLACE}/.claude-plugin/plugin.json": _plugin(),
    }


def _codex() -> dict[str, dict[str, Any]]:
    listed = {
        "name": PLUGIN,
        "source": {"source": "local", "path": f"./{PLACE}"},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": "Developer Tools",
    }
    market = {"name": PLUGIN, "interface": {"displayName": "Fleet"}, "plugins": [listed]}
    shown = {
        "displayName": "Fleet",
        "shortDescription": ABOUT,
        "longDescription": "Queue work for coding agents, run them in parallel in their own git "
        "worktrees on models that your own machines serve, and land only what passes.",
        "developerName": AUTHORS["name"],
        "category": "Developer Tools",
        "capabilities": ["Interactive", "Write"],
        "defaultPrompt": [
            f"Use the {PLUGIN} bootstrap skill to install the CLI and set up this repo."
        ],
    }
    return {
        ".agents/plugins/marketplace.json": market,
        f"{PLACE}/.codex-plugin/plugin.json": _plugin()
        | {"skills": "./skills/", "interface": shown},
    }
