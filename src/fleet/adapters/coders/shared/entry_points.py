"""Coders that other packages bring, by an entry point of the group `fleet.coders`."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from fleet.ports import Coder

GROUP = "fleet.coders"
DEFAULTS = {"resumes": False, "stalls": False, "costs": False, "window": 128_000}


@cache
def installed(name: str) -> Coder | None:
    """The coder that a package brings, or None. Raise `Refused` when the object is not a coder.

    The result is cached: a supervisor asks at every step, and looking it up is slow.
    """
    points = entry_points(group=GROUP, name=name)
    if not points:
        return None
    point = next(iter(points))
    try:
        made = point.load()
        coder: Coder = made() if isinstance(made, type) else made
    except Exception as error:  # whatever another package's code raises
        raise Refused(
            f"The coder '{name}' ({point.value}) cannot be loaded: {type(error).__name__}: {error}",
            fix="Fix that package, or uninstall it.",
        ) from error
    missing = [what for what in ("launch", "listen") if not callable(getattr(coder, what, None))]
    if missing:
        raise Refused(
            f"The coder '{name}' ({point.value}) has no `{missing[0]}`.",
            fix="See fleet.ports.Coder for what a coder has.",
        )
    for what, value in {"name": name, **DEFAULTS}.items():
        if not hasattr(coder, what):
            setattr(coder, what, value)
    return coder
