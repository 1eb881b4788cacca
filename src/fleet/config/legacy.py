"""Settings of older tools: find them, mention them, and import them on request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fleet.domain.data import NamedTuple
from fleet.domain.errors import BadConfig
from fleet.domain.fleet import CODERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

RECORD = "migrated.json"
VERSION = 1
FULL = "--dangerously-skip-permissions"

# Older name -> ours. Names of the first are in runtime.toml, of the second in .aifleet/config.toml,
# of the third in ~/.ai_fleet/config.toml.
RUNTIME = {
    name: name for name in ("max_concurrent", "coder", "model", "context_pressure_threshold_pct")
}
PROJECT = {
    "project.name": "project.name",
    "project.worktree_root": "workspace.root",
    "agent.default": "coder",
    "agent.claude_flags": "agents.claude.extra_args",
    "setup.credential_files": "workspace.credential_files",
    "setup.commands": "workspace.setup",
    "setup.quick": "workspace.quick",
    "tmux.prefix": "tmux.prefix",
}
GLOBAL = {
    "worktree_root": "workspace.root",
    "default_agent": "coder",
    "claude_flags": "agents.claude.extra_args",
    "credential_files": "workspace.credential_files",
    "setup_commands": "workspace.setup",
    "quick_setup": "workspace.quick",
    "tmux_prefix": "tmux.prefix",
}


class LegacySource(NamedTuple):
    file: Path
    names: Mapping[str, str]
    layer: str  # "user": into config.yaml; "project": into fleet.yaml
    ours: bool  # written by this person, rather than shared in a repository


class Import(NamedTuple):
    """Settings to import. `values`: by Fleet's paths; `left`: what is not imported, and why."""

    source: LegacySource
    values: Mapping[str, Any]
    left: tuple[str, ...]


def sources(home: Path, project: Path | None, user_home: Path | None = None) -> list[LegacySource]:
    """The older files that are there."""
    older = [LegacySource(home / "runtime.toml", RUNTIME, "user", ours=True)]
    if project is not None:
        person = user_home or Path.home()
        older += [
            LegacySource(project / ".aifleet" / "config.toml", PROJECT, "project", ours=False),
            LegacySource(person / ".ai_fleet" / "config.toml", GLOBAL, "project", ours=True),
        ]
    return [source for source in older if source.file.is_file()]


def legacy_notice(home: Path, project: Path | None) -> str:
    """One sentence about older files that have not been imported, or nothing."""
    older = sources(home, project)
    if not older:
        return ""
    known = records(home)
    names = [str(source.file) for source in older if str(source.file) not in known]
    if not names:
        return ""
    them = "it" if len(names) == 1 else "them"
    return f"Not imported: {', '.join(names)}. `fleet init --migrate-legacy` imports {them}."


def read(source: LegacySource) -> Import:
    """Raise `BadConfig` when it is not TOML."""
    import tomllib  # noqa: PLC0415 - only for an import

    try:
        data = tomllib.loads(source.file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadConfig(
            f"{source.file}: is not valid TOML: {error}.",
            fix="Correct or delete it, then import again.",
        ) from None
    values: dict[str, Any] = {}
    left: list[str] = []
    for name, value in _flat(data):
        ours = source.names.get(name)
        if ours is None:
            left.append(f"{name}: there is no such setting here")
        elif ours == "coder" and value and value not in CODERS:
            left.append(f"{name}: there is no coder '{value}' here")
        elif name.endswith("claude_flags"):
            values[ours] = _flags(name, value, left)
        elif value not in ("", [], None):
            values[ours] = value
    return Import(
        source, {path: value for path, value in values.items() if value != []}, tuple(left)
    )


def _flat(data: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in data.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{above}{name}.")
        else:
            yield above + name, value


def _flags(name: str, value: Any, left: list[str]) -> list[str]:
    """Return the flags without the one that turns permissions off."""
    import shlex  # noqa: PLC0415 - only for an import

    try:
        words = shlex.split(value) if isinstance(value, str) else [str(word) for word in value]
    except (ValueError, TypeError):
        left.append(f"{name}: cannot be split into words")
        return []
    if FULL in words:
        left.append(
            f"{name}: {FULL} lets an agent do anything unasked; if you want that, "
            "set agents.claude.permissions=full"
        )
    return [word for word in words if word != FULL]


def records(home: Path) -> dict[str, Any]:
    import json  # noqa: PLC0415 - every command asks for the notice, and few have older files

    try:
        data = json.loads((home / RECORD).read_text(encoding="utf-8"))
        return dict(data["files"]) if data["fleet"] == VERSION else {}
    except (OSError, ValueError, TypeError, KeyError):
        return {}


def record(home: Path, done: Import, taken: list[str], left: list[str]) -> None:
    """Note that this file has been dealt with."""
    import json  # noqa: PLC0415 - only for an import

    from fleet.config.files.write import write_whole  # noqa: PLC0415 - likewise

    known = records(home)
    known[str(done.source.file)] = {"taken": taken, "left": left}
    text = json.dumps({"fleet": VERSION, "files": known}, indent=2) + "\n"
    write_whole(home / RECORD, text.encode(), mode=0o600)
