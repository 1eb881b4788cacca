"""Every error a person can see.

FleetError             code           exit
├── Refused            refused        1   the request is understood, and the answer is no
│   ├── Conflict       conflict       1   something changed since it was read: read again, decide again
│   └── Forbidden      forbidden      1   this actor may not do that
├── BadInput           bad_input      2   what was typed or written is wrong
│   ├── BadConfig      bad_config     2   a settings file is wrong
│   └── NotFound       not_found      2   no such task, run, node, …
└── Unavailable        unavailable    3   the world is down: no disk, no server, no program
    └── BadStore       bad_store      3   the store cannot be used as it is

Anything else that reaches a person is a bug, and shows a traceback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class FleetError(Exception):
    """One sentence that names the thing and the place; `fix` is the next step."""

    code = "error"
    exit_status = 1
    about: Mapping[str, object] = {}  # what a program would want to know of it

    def __init__(self, message: str, *, fix: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        if code is not None:
            self.code = code


class Refused(FleetError):
    code = "refused"


class Conflict(Refused):
    code = "conflict"


class Forbidden(Refused):
    code = "forbidden"


class BadInput(FleetError):
    code = "bad_input"
    exit_status = 2


class BadConfig(BadInput):
    code = "bad_config"


class NotFound(BadInput):
    code = "not_found"


class Unavailable(FleetError):
    code = "unavailable"
    exit_status = 3


class BadStore(Unavailable):
    code = "bad_store"


class Spoiled(Conflict):
    """One of several that were written as one has failed, so none of them was made."""


def nearest(name: str, known: Iterable[str]) -> str:
    """`Did you mean 'x'?`, or the empty string when nothing is near."""
    import difflib  # noqa: PLC0415  # start-up time

    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"Did you mean '{found[0]}'?" if found else ""
