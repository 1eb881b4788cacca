"""Our MCP server in the settings of the programs themselves, and nothing else there changed."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fleet.adapters.assistants import json_edit as json_text
from fleet.base.files import write_atomically
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NAME = "fleet"
PROGRAMS = ("claude", "codex", "opencode")
SCOPES = ("user", "project")
_HEADER = re.compile(r"^\s*\[")
_OURS = re.compile(r"^\s*\[\s*mcp_servers\s*\.\s*(?:fleet|\"fleet\")\s*(?:\.[^\]]*)?\]")


class Registered(NamedTuple):
    """`did`: added, changed, removed, or nothing."""

    coder: str
    file: str
    did: str
    text: str  # what is there for it


class Format(Protocol):
    def read(self, text: str) -> Any: ...

    def put(self, text: str, entry: dict[str, Any]) -> str: ...

    def drop(self, text: str) -> str: ...

    def said(self, entry: dict[str, Any]) -> str: ...


class _Json:
    def __init__(self, section: str) -> None:
        self._section = section

    def read(self, text: str) -> Any:
        return json_text.read(text) if text.strip() else {}

    def put(self, text: str, entry: dict[str, Any]) -> str:
        return json_text.with_member(text, (self._section, NAME), entry)

    def drop(self, text: str) -> str:
        return json_text.without_member(text, (self._section, NAME))

    def said(self, entry: dict[str, Any]) -> str:
        return json.dumps({self._section: {NAME: entry}}, indent=2)


class _Toml:
    def read(self, text: str) -> Any:
        return tomllib.loads(text)

    def put(self, text: str, entry: dict[str, Any]) -> str:
        left = self.drop(text)
        gap = "" if not left else "\n" if left.endswith("\n") else "\n\n"
        return f"{left}{gap}{self.said(entry)}\n"

    def drop(self, text: str) -> str:
        """With its own tables; a comment after them is about what follows."""
        kept: list[str] = []
        after: list[str] = []
        inside = False
        for line in text.splitlines(keepends=True):
            if _HEADER.match(line):
                inside = bool(_OURS.match(line))
            if inside:
                said = line.strip() and not line.lstrip().startswith("#")
                after = [] if said else [*after, line]
            else:
                kept += [*after, line]
                after = []
        return re.sub(r"\n\n+\Z", "\n", "".join([*kept, *after]))

    def said(self, entry: dict[str, Any]) -> str:
        pairs = [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
        return "\n".join([f"[mcp_servers.{NAME}]", *pairs])


SECTIONS = {"claude": "mcpServers", "codex": "mcp_servers", "opencode": "mcp"}
FORMATS: dict[str, Format] = {
    "claude": _Json(SECTIONS["claude"]),
    "codex": _Toml(),
    "opencode": _Json(SECTIONS["opencode"]),
}


def entry_of(coder: str, command: str) -> dict[str, Any]:
    match coder:
        case "claude":
            return {"type": "stdio", "command": command, "args": ["mcp"]}
        case "codex":
            return {"command": command, "args": ["mcp"]}
    return {"type": "local", "command": [command, "mcp"]}


def file_of(coder: str, scope: str, top: Path, env: Mapping[str, str]) -> Path:
    """Where the program reads it: of this person, or of the project whose top this is."""
    home = Path(env.get("HOME") or Path.home())
    if coder == "claude":
        own = Path(env.get("CLAUDE_CONFIG_DIR") or home) / ".claude.json"
        return own if scope == "user" else top / ".mcp.json"
    if coder == "codex":
        own = Path(env.get("CODEX_HOME") or home / ".codex") / "config.toml"
        return own if scope == "user" else top / ".codex" / "config.toml"
    place = Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "opencode"
    place = place if scope == "user" else top
    names = ("opencode.jsonc", "opencode.json")
    return next((place / n for n in names if (place / n).exists()), place / "opencode.json")


def register(coder: str, file: Path, command: str) -> Registered:
    """Raise `Refused`, having written nothing, when that cannot be done without harm."""
    how, entry = FORMATS[coder], entry_of(coder, command)
    text = _text(file)
    before = _read(how, file, text)
    there = _section(before, coder).get(NAME)
    if there == entry:
        return Registered(coder, str(file), "nothing", how.said(entry))
    if there is not None and not is_ours(there):
        raise Refused(
            f"{file} has another server that is called {NAME}.", fix="Give that one another name."
        )
    after = _checked(how, file, lambda: how.put(text, entry), before, coder, entry)
    _write(file, after)
    return Registered(coder, str(file), "changed" if there else "added", how.said(entry))


def unregister(coder: str, file: Path) -> Registered:
    how, text = FORMATS[coder], _text(file)
    before = _read(how, file, text)
    there = _section(before, coder).get(NAME)
    if there is None or not is_ours(there):
        return Registered(coder, str(file), "nothing", "")
    after = _checked(how, file, lambda: how.drop(text), before, coder, None)
    if how.read(after):
        _write(file, after)
    else:
        file.unlink()
    return Registered(coder, str(file), "removed", "")


def is_ours(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    command = entry.get("command") or ""
    words = [*command] if isinstance(command, list) else [command, *entry.get("args", ())]
    program = Path(str(words[0])).name
    return program in {"fleet", "flt", "subagent-fleet"} and words[1:] == ["mcp"]


def _section(held: Any, coder: str) -> dict[str, Any]:
    section = held.get(SECTIONS[coder], {}) if isinstance(held, dict) else {}
    return section if isinstance(section, dict) else {}


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise Refused(f"{file} cannot be read: {error}.") from error


def _read(how: Format, file: Path, text: str) -> Any:
    try:
        return how.read(text)
    except ValueError as error:
        raise Refused(f"{file} cannot be read: {error}.", fix="Mend it first.") from error


def _checked(
    how: Format,
    file: Path,
    edit: Callable[[], str],
    before: Any,
    coder: str,
    entry: dict[str, Any] | None,
) -> str:
    """The text as edited, if that says what it is to say, and all else as before."""
    try:
        text = edit()
        after = how.read(text)
    except ValueError:
        text, after = "", None
    same = _others(after, coder) == _others(before, coder)
    if not same or _section(after, coder).get(NAME) != entry:
        raise Refused(
            f"{file} is written in a way that we cannot change safely.",
            fix="`fleet mcp install --print` shows what to put there.",
        )
    return text


def _others(held: Any, coder: str) -> Any:
    if not isinstance(held, dict):
        return held
    rest = {k: v for k, v in _section(held, coder).items() if k != NAME}
    others = {k: v for k, v in held.items() if k != SECTIONS[coder]}
    return others | ({SECTIONS[coder]: rest} if rest else {})


def _write(file: Path, text: str) -> None:
    """With the mode that it has; through a link, to where that leads."""
    file = file.resolve()
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, text, mode=mode)
