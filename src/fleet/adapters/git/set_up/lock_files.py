"""Which set-ups of a workspace can be reused, and the files that they depend on."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

AUTO = "auto"  # as `workspace.setup_cache`: these files, if the commands only install packages
LOCK_FILES = (
    *("pyproject.toml", "uv.lock", "poetry.lock", "pdm.lock", "Pipfile", "Pipfile.lock"),
    *("requirements*.txt", "constraints*.txt", "setup.py", "setup.cfg", ".python-version"),
    *("package.json", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", ".yarnrc.yml"),
    *("pnpm-lock.yaml", "pnpm-workspace.yaml", "bun.lock", "bun.lockb", ".npmrc", ".nvmrc"),
    *("Cargo.toml", "Cargo.lock", "go.mod", "go.sum", "Gemfile", "Gemfile.lock", ".ruby-version"),
    *("composer.json", "composer.lock", ".tool-versions"),
)
INSTALLERS = tuple(
    tuple(words.split())
    for words in (
        *(
            "npm ci",
            "npm install",
            "npm i",
            "pnpm install",
            "pnpm i",
            "yarn install",
            "bun install",
        ),
        *("uv sync", "uv venv", "uv pip install", "uv pip sync", "python -m venv", "virtualenv"),
        *("pip install", "python -m pip install", "poetry install", "pdm install", "pdm sync"),
        *("pipenv install", "pipenv sync", "bundle install", "composer install"),
        *("cargo fetch", "go mod download"),
    )
)
_SHELL = re.compile(r"[;&|<>$`()\\\n*?#]")  # what makes a line more than one command
_VERSION = re.compile(r"(python|pip)[0-9.]*")


def installs(command: str) -> bool:
    """Whether the command only installs packages, as far as its words tell."""
    if _SHELL.search(command):
        return False
    program, *rest = command.split() or [""]
    name = program.rpartition("/")[2]
    known = _VERSION.fullmatch(name)
    words = (known[1] if known else name, *rest)
    return words == ("yarn",) or any(words[: len(prefix)] == prefix for prefix in INSTALLERS)


def depends_on(commands: Sequence[str], files: Sequence[str]) -> tuple[str, ...]:
    """The patterns of the files that these commands depend on; none: they run in every worktree.

    `files` is the setting. Only whoever wrote other commands knows whether they must run again.
    """
    if tuple(files) != (AUTO,):
        return tuple(files)
    return LOCK_FILES if all(map(installs, commands)) else ()
