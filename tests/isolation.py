"""The kinds of isolation that work on this machine, for tests."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from fleet.adapters.isolation import confine

ROOT = Path(__file__).parents[1]
KINDS = ("bubblewrap", "landlock")
ALL_KINDS = (*KINDS, "container")


@cache
def folder_of_bwrap() -> str:
    """Empty where bubblewrap cannot be had, or does not work: user namespaces may be forbidden."""
    script = [ROOT / "scripts" / "bubblewrap"]
    found = subprocess.run(script, capture_output=True, text=True, check=False)
    folder = found.stdout.strip()
    if found.returncode:
        return ""
    words = [f"{folder}/bwrap", "--unshare-user", "--dev-bind", "/", "/", "true"]
    return "" if subprocess.run(words, capture_output=True, check=False).returncode else folder


def works(kind: str) -> bool:
    if kind != "landlock":
        return bool(folder_of_bwrap())
    return confine.version() >= confine.NEEDED


def env_of(kind: str, path: str) -> dict[str, str]:
    """The settings for a home whose agents are isolated so; `path` is its PATH."""
    folders = [folder_of_bwrap()] if kind != "landlock" else []
    return {"FLEET_ISOLATION": kind, "PATH": ":".join([*folders, path])}
