"""Which coders there are: ours, those that a fleet declares, those that packages bring."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.domain.errors import FleetError, Refused, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fleet.domain.fleet import Fleet
    from fleet.ports import Coder

NOT_PRELOADED = {"__main__", "cli", "server", "testing"}  # other processes; cli is loaded by then


def make_coder(name: str, fleet: Fleet | None = None) -> Coder:
    """One of ours, one that this fleet declares, or one that an installed package brings."""
    from fleet.adapters.coders import built_in, part

    if where := built_in(name).coder:
        made: Coder = part(where)()
        return made
    if fleet is not None and name in fleet.own_coders:
        from fleet.adapters.coders.plain.custom import CustomCoder

        return CustomCoder(fleet.own_coders[name])
    from fleet.adapters.coders.shared.entry_points import installed

    if (found := installed(name)) is not None:
        return found
    from fleet.domain.fleet import CODERS

    known = fleet.coder_names() if fleet is not None else list(CODERS)
    raise Refused(
        f"'{name}' is not a coder that fleet knows.",
        fix=nearest(name, known) or f"Choose one of: {', '.join(known)}.",
    )


def generate_targets() -> tuple[str, ...]:
    """What `fleet generate` can write: for the gateway, for coders, for a shell, for MCP."""
    return ("litellm", *coders_with("files"), "env", "mcp")


def coders_with(what: str) -> tuple[str, ...]:
    """The names of the built-in coders that have this, of the fields of their rows."""
    from fleet.adapters.coders import having

    return having(what)


def assistants(what: str = "skills") -> tuple[str, ...]:
    """What `fleet skills` calls the coders that can have them."""
    from fleet.adapters.coders import BUILT_IN

    return tuple(BUILT_IN[name].assistant or name for name in coders_with(what))


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
