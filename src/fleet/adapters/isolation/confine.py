"""A program that runs a command under Landlock, Linux's own sandbox, with nothing but Python.

    python confine.py [--hide PATH]... [--read PATH]... [--write PATH]... -- COMMAND...

Landlock knows no exceptions: it denies everything, and a rule allows a path with all that is below
it. So what is beside a hidden path is allowed name by name, up to the root. What appears later in a
folder above a hidden path has no rule: nobody can create a file there, or read one. Names can be
listed everywhere.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from contextlib import suppress

TYPE_CHECKING = False  # `typing` would be a quarter of its start
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PROGRAM = "landlock"  # how its messages begin
FAILED = 125  # its status when it could not run the command
NEEDED = 2  # the version that allows to move files between folders: Linux 5.19
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # system calls, the same on all machines
ASK_VERSION, PATH_BENEATH = 1, 1
DROP_CAPABILITY, NO_NEW_PRIVILEGES, CAPABILITIES = 24, 38, 0x20080522
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14
READ = EXECUTE | READ_FILE | READ_DIR
OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
EVERYTHING = {2: (1 << 14) - 1}  # by version: what Landlock can deny
EVERYTHING |= dict.fromkeys(range(3, 100), EVERYTHING[2] | TRUNCATE)


class LandlockRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def version() -> int:
    """The version of Landlock in this kernel; 0: it has none."""
    try:
        return max(0, _call(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(ASK_VERSION)))
    except (OSError, AttributeError):
        return 0


def confine(hide: list[str], read: list[str], write: list[str]) -> None:
    """Confine this process and all that it starts, for ever."""
    everything = EVERYTHING[version()]
    handled = ctypes.c_uint64(everything)
    rules = _call(CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(8), ctypes.c_uint32(0))
    _allow(rules, "/", READ_DIR)
    for path in (*beside(hide), *write):
        _allow(rules, path, everything)
    for path in read:
        _allow(rules, path, READ)
    _give_up_privileges()
    _call(RESTRICT_SELF, ctypes.c_int(rules), ctypes.c_uint32(0))
    os.close(rules)


def _give_up_privileges() -> None:
    """Drop all privileges, those of root above all: CAP_PERFMON reads the environment of any process."""
    libc = ctypes.CDLL(None, use_errno=True)
    capability = 0
    while not libc.prctl(
        DROP_CAPABILITY, capability, 0, 0, 0
    ):  # the user has none, or it was the last
        capability += 1
    header, none = (ctypes.c_uint32 * 2)(CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    if libc.capset(header, none) or libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "privileges cannot be given up")


def beside(hidden: Iterable[str]) -> Iterator[str]:
    """Paths that are neither hidden nor above or below a hidden one, and no links."""
    hidden = {os.path.realpath(path) for path in hidden}
    hidden = {path for path in hidden if hidden.isdisjoint(_parents(path))}
    above = {parent for path in hidden for parent in _parents(path)}
    for folder in sorted(above):
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if not entry.is_symlink() and entry.path not in hidden | above:
                    yield entry.path


def _parents(path: str) -> Iterator[str]:
    while path != "/":
        path = os.path.dirname(path)  # noqa: PTH120  # pathlib would be half of its start
        yield path


def _allow(rules: int, path: str, access: int) -> None:
    with suppress(OSError):  # it is gone, or on a file system without rules: then it stays denied
        folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not os.path.isdir(path):  # noqa: PTH112  # hundreds of paths, before each run
                access &= OF_FILES
            rule = LandlockRule(access, folder)
            kind = ctypes.c_int(PATH_BENEATH)
            _call(ADD_RULE, ctypes.c_int(rules), kind, ctypes.byref(rule), ctypes.c_uint32(0))
        finally:
            os.close(folder)


def _call(number: int, *words: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    done = int(libc.syscall(ctypes.c_long(number), *words))
    if done < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return done


def main(words: list[str]) -> None:
    paths: dict[str, list[str]] = {"--hide": [], "--read": [], "--write": []}
    while words and words[0] != "--":
        paths[words[0]].append(words[1])
        words = words[2:]
    try:
        confine(paths["--hide"], paths["--read"], paths["--write"])
    except (OSError, KeyError) as error:
        os.write(2, f"{PROGRAM}: it does not work here: {error}\n".encode())
        sys.exit(FAILED)
    # A keeper lets what runs before the coder ignore its signals; Python ignores two itself.
    for ignored in (n for n in signal.valid_signals() if signal.getsignal(n) is signal.SIG_IGN):
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execvp(words[1], words[1:])  # noqa: S606  # nosec B606  # a list, without a shell
    except OSError as error:
        os.write(2, f"fleet: {words[1]}: {error.strerror}\n".encode())
        sys.exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main(sys.argv[1:])
