"""Loaded by a `fleet` that is to die at one of its effects on the world; see `crashes.py`.

An effect is what Python itself reports of a process, before it happens: a file opened for writing,
renamed, linked or removed, a directory made, a program started, a lock taken.
"""

from __future__ import annotations

import os
import re
import signal
import sys

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT
NAMES = {
    "os.mkdir": "mkdir",
    "os.rename": "rename",
    "os.link": "link",
    "os.remove": "remove",
    "sqlite3.connect": "store",
}
VERBS = ("worktree", "new-session", "load-buffer", "send-keys")
PLAIN = (
    (r"^t-[0-9]+-[0-9a-f]{8}", "worktree"),
    (r"^t-[0-9]+[.][0-9]+$", "run"),
    (r"^t-[0-9]+$", "task"),
    (r"^[a-z0-9_]{8}$", "scratch"),
)


def name_of(event: str, args: tuple[object, ...]) -> str:
    """What is about to happen, in a few words; empty: nothing that others would see."""
    if event == "open":
        path, _, flags = args
        written = isinstance(path, str) and int(str(flags or 0)) & WRITING
        return f"write {_plain(str(path))}" if written and "__pycache__" not in str(path) else ""
    if event == "subprocess.Popen":
        words = [str(word) for word in args[1]]  # type: ignore[attr-defined]
        verb = next((word for word in words if word in VERBS), "")
        return f"start {_plain(words[0])} {verb}".strip()
    if event == "fcntl.flock":
        return "lock"
    return f"{NAMES[event]} {_plain(str(args[event == 'os.rename']))}" if event in NAMES else ""


def _plain(path: str) -> str:
    """The name of a file, without what differs from run to run."""
    name = re.sub(r"[.][0-9]{3,}(-[0-9a-f]+)?$", "", path.rpartition("/")[2]).lstrip(".")
    found = ((p, word) for p, word in PLAIN if re.search(p, name))
    pattern, word = next(found, ("^$", ""))
    return re.sub(pattern, word, name)


def arm() -> None:
    effects, at = os.environ.get("CRASH_LIST", ""), os.environ.get("CRASH_AT", "")
    number = getattr(signal, os.environ.get("CRASH_BY", "SIGKILL"))
    if not (effects or at) or not sys.orig_argv[1:2] or not sys.orig_argv[1].endswith("/fleet"):
        return
    count, struck = 0, []
    log = os.open(effects, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) if effects else -1

    def heard(event: str, args: tuple[object, ...]) -> None:
        nonlocal count
        if name := name_of(event, args):
            count += 1
            if log >= 0:
                os.write(log, f"{name}\n".encode())
            if at in {name, str(count)} and not struck:
                struck.append(name)
                os.kill(os.getpid(), number)

    sys.addaudithook(heard)


arm()
