"""fleet.yaml and its layers, as a validated Fleet and Settings; every value knows its origin."""

from __future__ import annotations

from fleet.config.loader import Loaded, load
from fleet.config.places import checkout_top, find_project, home, in_repository, outside_git
from fleet.config.settings import RunSettings, Settings, StoreSettings, WorkspaceSettings

__all__ = [
    "Loaded",
    "RunSettings",
    "Settings",
    "StoreSettings",
    "WorkspaceSettings",
    "checkout_top",
    "find_project",
    "home",
    "in_repository",
    "load",
    "outside_git",
]
