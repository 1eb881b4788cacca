"""Which coders there are: ours, those that a fleet declares, those that packages bring."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.domain.errors import FleetError, Refused, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fleet.domain.fleet import Fleet
    from fleet.ports import Coder

CODERS = {
    "claude": "fleet.adapters.coders.claude.coder:ClaudeCoder",
    "codex": "fleet.adapters.coders.codex.coder:CodexCoder",
    "opencode": "fleet.adapters.coders.opencode.coder:OpenCodeCoder",
    "gemini": "fleet.adapters.coders.acp.gemini:GeminiCoder",
    "agy": "fleet.adapters.coders.plain.agy:AgyCoder",
    "aider": "fleet.adapters.coders.aider.coder:AiderCoder",
    "acp": "fleet.adapters.coders.acp.coder:AcpCoder",
    "command": "fleet.adapters.coders.plain.command:CommandCoder",
    "scripted": "fleet.adapters.coders.plain.scripted:ScriptedCoder",
}
NOT_PRELOADED = {"__main__", "cli", "server", "testing"}  # other processes; cli is loaded by then


def make_coder(name: str, fleet: Fleet | None = None) -> Coder:
    """One of ours, one that this fleet declares, or one that an installed package brings."""
    from importlib import import_module

    if where := CODERS.get(name):
        module, _, attribute = where.partition(":")
        made: Coder = getattr(import_module(module), attribute)()
        return made
    if fleet is not None and name in fleet.own_coders:
        from fleet.adapters.coders.plain.custom import CustomCoder

        return CustomCoder(fleet.own_coders[name])
    from fleet.adapters.coders.shared.entry_points import installed

    if (found := installed(name)) is not None:
        return found
    known = fleet.coder_names() if fleet is not None else list(CODERS)
    raise Refused(
        f"'{name}' is not a coder that can be run.",
        fix=nearest(name, known) or f"There are: {', '.join(known)}.",
    )


def probe_programs(
    coders: Iterable[Coder], env: Mapping[str, str], *, ask: bool
) -> dict[str, dict[str, str | None]]:
    """By coder: its `executable`, and the `path` and `version` of it here; `why` not."""
    from fleet.adapters.coders.shared.programs import executable, found

    names = {coder.name: executable(coder) for coder in coders}
    there = found(names.values(), env, ask=ask)
    nothing = {"path": None, "version": None, "why": ""}
    return {
        name: {"executable": program, **(there[program]._asdict() if program else nothing)}
        for name, program in names.items()
    }


def preload() -> None:
    """Load all that a long-lived process may come to use: it never mixes versions."""
    from importlib import import_module
    from pkgutil import walk_packages

    import fleet

    for found in walk_packages(fleet.__path__, "fleet."):
        if found.name.split(".")[1] not in NOT_PRELOADED:
            with suppress(ImportError):  # a driver that is not installed
                import_module(found.name)
    from fleet.config.bind_coders import installed

    for name in installed():
        with suppress(FleetError):  # it is complained of when a task asks for it
            make_coder(name)
