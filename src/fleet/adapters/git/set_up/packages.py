"""Directories of installed packages, which git need not know to ignore.

A repository without a `.gitignore` shows `.venv` or `node_modules` as new work. As uv and newer
versions of Python do, Fleet puts a `.gitignore` for everything into such a directory.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import names_of, run_git
from fleet.adapters.git.set_up.lock_files import installs
from fleet.adapters.git.set_up.virtual_environments import MARK

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleet.adapters.git.set_up.steps import Commands

IGNORE = ".gitignore"
EVERYTHING = "# Installed by the set-up of this worktree.\n*\n"


def run_set_up(commands: Commands, lines: Sequence[str]) -> None:
    """Run them in order; what they install is no work of the agent."""
    for line in lines:
        before = _new_directories(commands.root)
        commands.one(line)
        for name in _new_directories(commands.root) - before:
            folder = commands.root / name
            if installs(line) or _has_packages(folder):
                with suppress(OSError):  # the set-up has succeeded all the same
                    (folder / IGNORE).write_text(EVERYTHING)


def _new_directories(root: Path) -> set[str]:
    """The new directories: without a file that git tracks, and not ignored."""
    words = ("ls-files", "-z", "--others", "--exclude-standard", "--directory")
    return {name for name in names_of(run_git(root, *words).raw) if name.endswith("/")}


def _has_packages(folder: Path) -> bool:
    return folder.name == "node_modules" or (folder / MARK).is_file()
