"""The coders that the settings declare, and the names of those from installed packages."""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fleet.domain.errors import nearest
from fleet.domain.fleet import CODERS, JsonSpot, OwnCoder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.config.bind import DeclaredEntries
    from fleet.config.keys.table import Path

GROUP = "fleet.coders"  # of entry points
SAYS = (
    "session", "text", "thinking", "tool", "tool_result", "error", "result", "failed",
    "input", "output", "cached", "context", "usd",
)  # fmt: skip
SESSION = "{session}"


@cache
def installed() -> tuple[str, ...]:
    """Return the names of coders from installed packages; slow, as it reads all their metadata."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - likewise

    return tuple(sorted({point.name for point in entry_points(group=GROUP)}))


def bound(declared: DeclaredEntries, withheld: frozenset[Path]) -> dict[str, OwnCoder]:
    return {
        name: _coder(declared, name, values, withheld)
        for name, values in declared.section("coders")
    }


def _coder(
    declared: DeclaredEntries, name: str, values: Mapping[str, Any], withheld: frozenset[Path]
) -> OwnCoder:
    at, says = ("coders", name), _says(declared, name)
    if name in CODERS:
        declared.wrong(at, "is a coder of Fleet's own.", "Give yours another name.")
    if not values["command"] and (*at, "command") not in withheld:
        declared.wrong(at, "has no `command`.", "Add the program and its arguments, as a list.")
    if any(SESSION in word for word in values["resume"]) and "session" not in says:
        fix = "Add `says: {session: …}`, or leave {session} out of it."
        declared.wrong((*at, "resume"), "needs to know the session.", fix)
    own = {k: values[k] for k in ("command", "resume", "counts", "window")}
    return OwnCoder(name, says=MappingProxyType(says), **own)


def _says(declared: DeclaredEntries, name: str) -> dict[str, JsonSpot]:
    spots = {}
    for what, text in declared.values("coders", name, "says").items():
        path = ("coders", name, "says", what)
        if what not in SAYS:
            fix = nearest(what, SAYS) or f"It may be {', '.join(SAYS)}."
            declared.wrong(path, "is not something a coder reports.", fix)
            continue
        spot = _spot(text)
        if spot is None:
            fix = "Write a path, such as message.text, after conditions, such as type=message."
            declared.wrong(path, f"'{text}' is not a place in a JSON line.", fix)
        else:
            spots[what] = spot
    return spots


def _spot(text: str) -> JsonSpot | None:
    """Parse `type=result response.text`: conditions, then a path, which may be missing."""
    words = text.split()
    path = () if not words or "=" in words[-1] else tuple(words.pop().split("."))
    when = [word.partition("=") for word in words]
    if not (path or when) or not all(equals and key and value for key, equals, value in when):
        return None
    if not all(path) or not all(all(key.split(".")) for key, _, _ in when):
        return None
    return JsonSpot(path, tuple((tuple(key.split(".")), value) for key, _, value in when))
