"""What kind of project this is, and whether an Ollama answers on this machine."""

from __future__ import annotations

import json
import threading
from http.client import HTTPConnection, HTTPException
from typing import TYPE_CHECKING

from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

OLLAMA = "localhost:11434"
OLLAMA_SECONDS = 0.3  # a stopped Ollama refuses at once, and no command waits for a broken one


class ProjectKind(NamedTuple):
    """How worktrees of such a project are set up: untracked files to copy, commands to run."""

    credential_files: tuple[str, ...]
    setup: tuple[str, ...]


KINDS = ("python", "node", "rails", "rust", "go", "generic")
MARKS = {
    "rails": ("config/application.rb", "bin/rails"),
    "rust": ("Cargo.toml",),
    "go": ("go.mod",),
    "python": ("pyproject.toml", "requirements.txt", "setup.py", "uv.lock"),
    "node": ("package.json",),
}
VENV = "python3 -m venv .venv"
PYTHON = {
    "uv.lock": ("uv sync",),
    "requirements.txt": (VENV, ".venv/bin/pip install -r requirements.txt"),
    "pyproject.toml": (VENV, ".venv/bin/pip install -e ."),
    "setup.py": (VENV, ".venv/bin/pip install -e ."),
}
PACKAGE = ("[project]", "[build-system]", "[tool.poetry]")  # tables that only a package has
NODE = {
    "pnpm-lock.yaml": "pnpm install",
    "yarn.lock": "yarn install",
    "bun.lock": "bun install",
    "package-lock.json": "npm install",
    # Every worktree would make a lock file of its own, and all of them would conflict.
    "package.json": "npm install --no-package-lock",
}
FILES = {
    "python": (".env", "secrets.json"),
    "node": (".env", ".env.local"),
    "rails": ("config/master.key", "config/credentials/development.key", ".env", ".env.local"),
}


def kind_of(root: Path) -> str:
    """The first kind that leaves a mark in the directory, else `generic`."""
    for kind, marks in MARKS.items():
        if any((root / mark).exists() for mark in marks):
            return kind
    return "generic"


def set_up(kind: str, root: Path) -> ProjectKind:
    return ProjectKind(FILES.get(kind, (".env",)), _commands(kind, root))


def _commands(kind: str, root: Path) -> tuple[str, ...]:
    match kind:
        case "python":
            return next((todo for mark, todo in PYTHON.items() if _installs(root / mark)), ())
        case "node":
            return (_packages(root) or NODE["package.json"],)
        case "rails":
            packages = _packages(root)
            migrate = "bundle exec rails db:create db:migrate"
            return ("bundle install", *([packages] if packages else []), migrate)
        case "rust":
            return ("cargo fetch",)
        case "go":
            return ("go mod download",)
    return ()


def _installs(mark: Path) -> bool:
    """Whether there is something to install: many a pyproject.toml only configures a linter."""
    if mark.name != "pyproject.toml" or not mark.is_file():
        return mark.exists()
    text = mark.read_text("utf-8", "replace")
    return any(f"\n{table}" in f"\n{text}" for table in PACKAGE)


def _packages(root: Path) -> str:
    return next((command for mark, command in NODE.items() if (root / mark).exists()), "")


class FoundOllama(NamedTuple):
    endpoint: str
    models: tuple[str, ...]  # largest first


def find_ollama(env: Mapping[str, str]) -> FoundOllama | None:
    """Ask once, for 0.3 s in all; `OLLAMA_HOST` is where Ollama's own client would look."""
    servers: list[FoundOllama] = []
    host = _host(env.get("OLLAMA_HOST", ""))
    asking = threading.Thread(target=_ask, args=(host, servers), daemon=True)
    asking.start()
    asking.join(OLLAMA_SECONDS)
    return servers[0] if servers else None


def _host(named: str) -> str:
    host = named.strip().removeprefix("http://").rstrip("/") or OLLAMA
    name, _, port = host.partition(":")
    return f"{'localhost' if name in {'', '0.0.0.0'} else name}:{port or 11434}"  # noqa: S104  # nosec B104  # it is read, not bound


def _ask(host: str, servers: list[FoundOllama]) -> None:
    try:
        connection = HTTPConnection(host, timeout=OLLAMA_SECONDS)
        connection.request("GET", "/api/tags")
        models = json.loads(connection.getresponse().read(1_000_000))["models"]
        sized = sorted(models, key=lambda model: -int(model.get("size", 0)))
        names = tuple(str(model["name"]) for model in sized)
    except (OSError, HTTPException, ValueError, TypeError, KeyError, AttributeError):
        return  # whatever answers there, it is not an Ollama
    servers.append(FoundOllama(f"http://{host}", tuple(n for n in names if "embed" not in n)))
