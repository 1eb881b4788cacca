"""The marketplace from which Codex installs the plugin with our skills."""

from __future__ import annotations

from typing import Any

from fleet.adapters.assistants.skills import ABOUT, AUTHORS, NAME, PLUGIN_FOLDER, Plugin, manifest


def _files() -> dict[str, dict[str, Any]]:
    listed = {
        "name": NAME,
        "source": {"source": "local", "path": f"./{PLUGIN_FOLDER}"},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": "Developer Tools",
    }
    market = {"name": NAME, "interface": {"displayName": "Fleet"}, "plugins": [listed]}
    interface = {
        "displayName": "Fleet",
        "shortDescription": ABOUT,
        "longDescription": "Queue work for coding agents, run them in parallel in their own git "
        "worktrees on models that your own machines serve, and land only what passes.",
        "developerName": AUTHORS["name"],
        "category": "Developer Tools",
        "capabilities": ["Interactive", "Write"],
        "defaultPrompt": [
            f"Use the {NAME} bootstrap skill to install the CLI and set up this repo."
        ],
    }
    return {
        ".agents/plugins/marketplace.json": market,
        f"{PLUGIN_FOLDER}/.codex-plugin/plugin.json": manifest()
        | {"skills": "./skills/", "interface": interface},
    }


PLUGIN = Plugin(
    _files,
    install=f"codex plugin marketplace add {{place}} && codex plugin add {NAME}@{NAME}",
)
