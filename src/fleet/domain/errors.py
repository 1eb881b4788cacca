"""Every error a person can see.

FleetError             code           exit  HTTP
├── Refused            refused        1     409   the request is understood, and the answer is no
│   ├── Conflict       conflict       1     409   something changed since it was read: read again, decide again
│   └── Forbidden      forbidden      1     403   this actor may not do that
├── BadInput           bad_input      2     422   what was typed or written is wrong
│   ├── Mismatch       bad_input      2     409   each part is right; together, or with what there is, they are not
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
    about: Mapping[str, object] = {}  # details for programs
    public = ""  # the message for other teams, where `message` says too much about this machine

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


class Mismatch(BadInput):
    """Input that is valid by itself, but not together or with what exists; HTTP status 409."""

    http_status = 409


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


class StoreAway(Unavailable):
    """The store cannot be reached now."""


class BadStore(StoreAway):
    code = "bad_store"


class TooSlow(Unavailable):
    code = "too_slow"


class Spoiled(Conflict):
    """One change of a batch that is written as a whole failed, so none was written."""


LONG_NAME = 8  # letters from which on a name may have two slips
SEPARATORS = str.maketrans("-_/", "...")
FAR = 99  # slips, more than any name may have


def nearest(name: str, known: Iterable[str]) -> str:
    """Return `Did you mean 'x'?` when `name` looks like a typing slip for `x`, else an empty string."""
    typed = _parts(name)
    slips = {other: _slips(typed, _parts(other)) for other in known}
    least = min(slips.values(), default=FAR)
    near = sorted(other for other, count in slips.items() if count == least < FAR)
    return f"Did you mean {' or '.join(map(repr, near[:2]))}?" if near else ""


def _parts(name: str) -> list[str]:
    return name.lower().lstrip("-").translate(SEPARATORS).split(".")


def _slips(typed: list[str], meant: list[str]) -> int:
    """The slips in the worst part; so `workspace.foo` is not taken for `workspace.root`."""
    if len(typed) != len(meant):  # `heavycoder` for `heavy-coder`
        return 1 if "".join(typed) == "".join(meant) else FAR
    return max(_slips_in_word(a, b) for a, b in zip(typed, meant, strict=True))


def _slips_in_word(typed: str, meant: str) -> int:
    """Count letters inserted, left out, replaced or swapped; `FAR` if there are too many.

    A share of common letters would not do: by that measure, `nope` is near to `open`.
    """
    if typed == meant:
        return 0
    most = 2 if len(meant) >= LONG_NAME else 1
    if not typed or abs(len(typed) - len(meant)) > most:  # the usual case, without reading letters
        return FAR
    if len(typed) == len(meant) < 4 and sorted(typed) != sorted(meant):
        return FAR  # with another letter, a name of three is another name: `get` is not `set`
    last = before = list(range(len(meant) + 1))
    for i, a in enumerate(typed):
        row = [i + 1]
        for j, b in enumerate(meant):
            row.append(min(last[j + 1] + 1, row[j] + 1, last[j] + (a != b)))
            if i and j and a == meant[j - 1] and b == typed[i - 1]:
                row[-1] = min(row[-1], before[j - 1] + 1)
        before, last = last, row
    return last[-1] if last[-1] <= most else FAR
