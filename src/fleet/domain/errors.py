"""Every error a person can see.

FleetError             code           exit  HTTP
├── Refused            refused        1     409   the request is understood, and the answer is no
│   ├── Conflict       conflict       1     409   something changed since it was read: read again, decide again
│   └── Forbidden      forbidden      1     403   this actor may not do that
├── BadInput           bad_input      2     422   what was typed or written is wrong
│   ├── BadConfig      bad_config     2     503   a settings file is wrong
│   └── NotFound       not_found      2     404   no such task, run, node, …
└── Unavailable        unavailable    3     503   the world is down: no disk, no server, no program
    ├── BadStore       bad_store      3     503   the store cannot be used as it is
    └── TooSlow        too_slow       3     503   the store did not answer in the time that there was

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
    http_status = 500
    about: Mapping[str, object] = {}  # what a program would want to know of it
    public = (
        ""  # the sentence for others than who runs this machine, where the message says too much
    )

    def __init__(self, message: str, *, fix: str = "", code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.fix = fix
        if code is not None:
            self.code = code


class Refused(FleetError):
    code = "refused"
    http_status = 409


class Conflict(Refused):
    code = "conflict"


class Forbidden(Refused):
    code = "forbidden"
    http_status = 403


class BadInput(FleetError):
    code = "bad_input"
    exit_status = 2
    http_status = 422


class BadConfig(BadInput):
    code = "bad_config"
    http_status = 503


class NotFound(BadInput):
    code = "not_found"
    http_status = 404


class Unavailable(FleetError):
    code = "unavailable"
    exit_status = 3
    http_status = 503


class BadStore(Unavailable):
    code = "bad_store"


class TooSlow(Unavailable):
    code = "too_slow"


class Spoiled(Conflict):
    """One of several that were written as one has failed, so none of them was made."""


NEAR = 0.75  # of 1: at 0.6, `nope` was taken for `reopen` and `get` for `set`
AS_NEAR = 0.1  # below the best: `tassk` may be `task` or `tasks`
SEPARATORS = str.maketrans("-_/", "...")


def nearest(name: str, known: Iterable[str]) -> str:
    """`Did you mean 'x'?` when `name` looks like a slip for `x`, else the empty string."""
    scores = {other: _likeness(_parts(name), _parts(other)) for other in known}
    least = max(NEAR, max(scores.values(), default=0.0) - AS_NEAR)
    near = sorted((-score, other) for other, score in scores.items() if score >= least)
    return f"Did you mean {' or '.join(repr(other) for _, other in near[:2])}?" if near else ""


def _parts(name: str) -> list[str]:
    return name.lower().lstrip("-").translate(SEPARATORS).split(".")


def _likeness(mine: list[str], theirs: list[str]) -> float:
    """From 0 to 1. Each part counts: `workspace.foo` is not `workspace.root`."""
    if len(mine) != len(theirs):  # `heavycoder` for `heavy-coder`
        return float("".join(mine) == "".join(theirs))
    least = 1.0
    for a, b in zip(mine, theirs, strict=True):
        least = min(least, _ratio(a, b))
        if least < NEAR:
            return 0.0
    return least


def _ratio(a: str, b: str) -> float:
    if a == b:
        return 1.0
    if 2 * min(len(a), len(b)) < NEAR * (len(a) + len(b)):  # most are: letters need not be compared
        return 0.0
    from difflib import SequenceMatcher  # noqa: PLC0415  # start-up time

    return SequenceMatcher(None, a, b).ratio()
