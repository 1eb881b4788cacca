"""Add our MCP server to the settings of other programs, and change nothing else there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fleet.adapters.assistants import json_edit as json_text
from fleet.adapters.coders import BUILT_IN, part
from fleet.base.files import write_atomically
from fleet.domain.data import NamedTuple
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

NAME = "fleet"
SCOPES = ("user", "project")


class Registered(NamedTuple):
    """`did`: added, changed, removed, or nothing."""

    coder: str
    file: str
    did: str
    text: str  # the entry in the file


class Format(Protocol):
    def read(self, text: str) -> Any: ...

    def put(self, text: str, entry: dict[str, Any]) -> str: ...

    def drop(self, text: str) -> str: ...

    def rendered(self, entry: dict[str, Any]) -> str: ...


class McpSettings(NamedTuple):
    """`file` is given the scope, the top of the project and the environment; `entry` our program."""

    format: Format
    section: str  # the key of the servers in the file
    file: Callable[[str, Path, Mapping[str, str]], Path]
    entry: Callable[[str], dict[str, Any]]


class Json:
    def __init__(self, section: str) -> None:
        self._section = section

    def read(self, text: str) -> Any:
        return json_text.read(text) if text.strip() else {}

    def put(self, text: str, entry: dict[str, Any]) -> str:
        return json_text.with_member(text, (self._section, NAME), entry)

    def drop(self, text: str) -> str:
        return json_text.without_member(text, (self._section, NAME))

    def rendered(self, entry: dict[str, Any]) -> str:
        return json.dumps({self._section: {NAME: entry}}, indent=2)


def user_home(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or Path.home())


def settings_of(coder: str) -> McpSettings:
    settings: McpSettings = part(BUILT_IN[coder].mcp)
    return settings


def file_of(coder: str, scope: str, top: Path, env: Mapping[str, str]) -> Path:
    """The file that the program reads: the user's, or the project's at this top."""
    return settings_of(coder).file(scope, top, env)


def text_of(coder: str, command: str) -> str:
    """The entry that `register` would write."""
    how = settings_of(coder)
    return how.format.rendered(how.entry(command))


def register(coder: str, file: Path, command: str) -> Registered:
    """Raise `Refused`, and write nothing, when other settings could be damaged."""
    settings = settings_of(coder)
    how, entry = settings.format, settings.entry(command)
    text = _text(file)
    before = _read(how, file, text)
    existing = _servers(before, settings).get(NAME)
    if existing == entry:
        return Registered(coder, str(file), "nothing", how.rendered(entry))
    if existing is not None and not is_ours(existing):
        raise Refused(
            f"{file} has another server that is called {NAME}.", fix="Give that one another name."
        )
    after = _checked(file, lambda: how.put(text, entry), before, settings, entry)
    _write(file, after)
    return Registered(coder, str(file), "changed" if existing else "added", how.rendered(entry))


def unregister(coder: str, file: Path) -> Registered:
    settings = settings_of(coder)
    how, text = settings.format, _text(file)
    before = _read(how, file, text)
    existing = _servers(before, settings).get(NAME)
    if existing is None or not is_ours(existing):
        return Registered(coder, str(file), "nothing", "")
    after = _checked(file, lambda: how.drop(text), before, settings, None)
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


def _servers(document: Any, settings: McpSettings) -> dict[str, Any]:
    section = document.get(settings.section, {}) if isinstance(document, dict) else {}
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
        raise Refused(
            f"{file} cannot be read: {error}.", fix="Fix that first, then try again."
        ) from error


def _checked(
    file: Path,
    edit: Callable[[], str],
    before: Any,
    settings: McpSettings,
    entry: dict[str, Any] | None,
) -> str:
    """The edited text, if it parses to what was wanted, with all other settings as before."""
    try:
        text = edit()
        after = settings.format.read(text)
    except ValueError:
        text, after = "", None
    same = _others(after, settings) == _others(before, settings)
    if not same or _servers(after, settings).get(NAME) != entry:
        raise Refused(
            f"{file} is written in a way that we cannot change safely.",
            fix="`fleet mcp install --print` shows what to put there.",
        )
    return text


def _others(document: Any, settings: McpSettings) -> Any:
    if not isinstance(document, dict):
        return document
    rest = {k: v for k, v in _servers(document, settings).items() if k != NAME}
    others = {k: v for k, v in document.items() if k != settings.section}
    return others | ({settings.section: rest} if rest else {})


def _write(file: Path, text: str) -> None:
    """Keeps the file's mode; follows a link to its target."""
    file = file.resolve()
    mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, text, mode=mode)
