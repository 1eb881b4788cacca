"""The marketplace from which Claude Code installs the plugin with our skills."""

from __future__ import annotations

from typing import Any

from fleet.adapters.assistants.skills import ABOUT, AUTHORS, NAME, PLUGIN_FOLDER, Plugin, manifest


def _files() -> dict[str, dict[str, Any]]:
    listed = {"name": NAME, "source": f"./{PLUGIN_FOLDER}", "description": ABOUT}
    market = {"name": NAME, "owner": AUTHORS, "description": ABOUT, "plugins": [listed]}
    return {
        ".claude-plugin/marketplace.json": market,
        f"{PLUGIN_FOLDER}/.claude-plugin/plugin.json": manifest(),
    }


PLUGIN = Plugin(
    _files,
    install=f"claude plugin marketplace add {{place}} && claude plugin install {NAME}@{NAME}",
)
