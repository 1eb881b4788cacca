"""The coders: built-in ones, those that a fleet declares, those of installed packages."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.domain.errors import FleetError, Refused, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fleet.domain.fleet import Fleet
    from fleet.ports import Coder

NOT_PRELOADED = (
    "fleet.__main__.",
    "fleet.adapters.relay.",
    "fleet.cli.",
    "fleet.server.",
    "fleet.testing.",
)  # other processes use them; cli is loaded already


def make_coder(name: str, fleet: Fleet | None = None) -> Coder:
    """A built-in coder, one that this fleet declares, or one of an installed package."""
    from fleet.adapters.coders import built_in, part

    if dotted_path := built_in(name).coder:
        made: Coder = part(dotted_path)()
        return made
    if fleet is not None and name in fleet.own_coders:
        from fleet.adapters.coders.plain.custom import CustomCoder

        return CustomCoder(fleet.own_coders[name])
    from fleet.adapters.coders.shared.entry_points import installed

    if (coder := installed(name)) is not None:
        return coder
    from fleet.domain.fleet import CODERS

    known = fleet.coder_names() if fleet is not None else list(CODERS)
    raise Refused(
        f"'{name}' is not a coder that fleet knows.",
        fix=nearest(name, known) or f"Choose one of: {', '.join(known)}.",
    )


def generate_targets() -> tuple[str, ...]:
    """What `fleet generate` can write: for the gateway, for coders, for a shell, for MCP."""
    return ("litellm", *coders_with("files"), "env", "mcp")


def coders_with(field: str) -> tuple[str, ...]:
    """The names of the built-in coders whose row has this field."""
    from fleet.adapters.coders import having

    return having(field)


def on_path(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the built-in coders whose programs are on PATH; Claude Code first."""
    import shutil

    from fleet.adapters.coders import BUILT_IN

    rows = ((name, BUILT_IN[name].executable) for name in coders_with("executable"))
    return tuple(name for name, program in rows if shutil.which(program, path=env.get("PATH")))


def assistants(field: str = "skills") -> tuple[str, ...]:
    """The names by which `fleet skills` knows the coders that have this field."""
    from fleet.adapters.coders import BUILT_IN

    return tuple(BUILT_IN[name].assistant or name for name in coders_with(field))


def probe_programs(
    coders: Iterable[Coder], env: Mapping[str, str], *, ask: bool
) -> dict[str, dict[str, str | None]]:
    """Return, by coder, its `executable` and the `path` and `version` here, or `why` not."""
    from fleet.adapters.coders.shared.programs import executable, find_programs

    names = {coder.name: executable(coder) for coder in coders}
    programs = find_programs(names.values(), env, ask=ask)
    nothing = {"path": None, "version": None, "why": ""}
    return {
        name: {"executable": program, **(programs[program]._asdict() if program else nothing)}
        for name, program in names.items()
    }


def _forget_halves() -> None:
    """Forget the parts of packages whose import failed, so that it can be tried again.

    Python forgets such a package and keeps its parts, which the next import then does not set on it.
    """
    import sys

    for name in sorted(sys.modules):
        if name.partition(".")[0] not in sys.modules:
            del sys.modules[name]


def preload() -> None:
    """Load every module a long-lived process may need, so that an update mixes no versions."""
    from importlib import import_module
    from pkgutil import walk_packages

    import fleet

    for module in walk_packages(fleet.__path__, "fleet."):
        if not f"{module.name}.".startswith(NOT_PRELOADED):
            try:
                import_module(module.name)
            except ImportError:
                continue  # a driver that is not installed
            except BaseException:  # such as: too many open files
                _forget_halves()
                raise
    from fleet.config.bind_coders import installed

    for name in installed():
        with suppress(FleetError):  # a task that needs it will report that
            make_coder(name)
