"""Checks of this machine for `fleet doctor`: programs, ports, and who may read our files."""

from __future__ import annotations

import re
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING

from fleet.domain.findings import BAD, OK, Finding, is_old

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

CHECK_SECONDS = 5.0
PYTHON = "3.11"
PROGRAMS = {  # how to ask its version, the oldest that works, and what needs it
    "git": (("--version",), "2.38", "merge work"),
    "tmux": (("-V",), "3.2", "run agents in terminals"),
}
VERSION = re.compile(r"\d+\.\d+[\w.]*")
PRIVATE = ("gateway.key", "key", "fleet.db", "fleet.db-wal", "fleet.db-shm", "trusted.json")
OTHERS = 0o077


def programs(env: Mapping[str, str]) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    if is_old(version, PYTHON):
        fix = f"Install Python {PYTHON} or newer, and Fleet with it."
        yield Finding("programs", BAD, f"Python {version} is too old.", fix)
    else:
        yield Finding("programs", OK, f"Python {version}")
    for name in PROGRAMS:
        yield _program(name, env)


def _program(name: str, env: Mapping[str, str]) -> Finding:
    words, least, need = PROGRAMS[name]
    path = shutil.which(name, path=env.get("PATH", ""))
    fix = f"Install {name} {least} or newer."
    if path is None:
        return Finding("programs", BAD, f"{name} is not on PATH; Fleet needs it to {need}.", fix)
    try:
        done = subprocess.run(
            [path, *words], capture_output=True, text=True, timeout=CHECK_SECONDS, check=False,
            env=dict(env), stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("programs", BAD, f"{path} cannot be run: {error}", fix)
    version = VERSION.search(done.stdout)
    if version is None:
        return Finding("programs", BAD, f"{path} does not print its version.", fix)
    if is_old(version[0], least):
        message = f"{name} {version[0]} is too old; Fleet needs {least} or newer to {need}."
        return Finding("programs", BAD, message, fix)
    return Finding("programs", OK, f"{name} {version[0]}")


def modes(home: Path) -> Iterator[Finding]:
    """Check that only the user can read keys and transcripts."""
    if trouble := write_trouble(home):
        fix = "Give yourself access to it, or export FLEET_HOME=ANOTHER-DIRECTORY"
        yield Finding("files", BAD, f"Fleet cannot write to its home: {trouble}.", fix)
        return
    wrong = [path for path in (home, *(home / name for name in PRIVATE)) if _is_open(path)]
    for path in wrong:
        mode = "700" if path == home else "600"
        yield Finding("files", BAD, f"Other users may read {path}.", f"chmod {mode} {path}")
    if not wrong:
        yield Finding("files", OK, f"{home} is yours alone.")


def write_trouble(home: Path) -> str:
    """Return why the home cannot be written to, or created; empty: it can.

    It tries to write an unnamed file, because access rights alone do not tell.
    """
    folder = next(path for path in (home, *home.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return f"{folder}: {error.strerror}"


def _is_open(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return bool(stat.S_IMODE(mode) & OTHERS)


def is_taken(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a program answers there."""
    try:
        socket.create_connection((host, port), timeout=CHECK_SECONDS).close()
    except OSError:
        return False
    return True


def free_pair(start: int) -> int:
    """Return the first of two free ports in a row; 0 when there are none near `start`."""
    for port in range(start, min(start + 1000, 65_000), 2):
        if not is_taken(port) and not is_taken(port + 1):
            return port
    return 0
