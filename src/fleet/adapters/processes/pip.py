"""`pip install`, read line by line, so that somebody can be told how far it is."""

from __future__ import annotations

import os
import re
import subprocess
from collections import deque
from threading import Timer
from typing import TYPE_CHECKING

from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LAST_LINES = 3  # of its output, when it failed
COLLECTING = re.compile(r"(?:Collecting|Requirement already satisfied:) ([A-Za-z0-9._-]+)")
UNPACKING = "Installing collected packages"


def package_of(line: str) -> str:
    """The package that pip has come to, if this line of its output names one."""
    match = COLLECTING.match(line)
    return match[1] if match else ""


def pip_install(
    python: str,
    words: Sequence[str],
    step: Callable[[str, int], None],
    *,
    within: float,
    env: Mapping[str, str] = os.environ,
) -> None:
    """Call `step` with what pip is at, and how many packages it has seen.

    Raise `Unavailable` with its last lines when it fails, or is not done within these seconds.
    """
    argv = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", *words]
    plain = {"PIP_NO_COLOR": "1", "PIP_PROGRESS_BAR": "off", "PYTHONUNBUFFERED": "1"}
    packages: set[str] = set()
    last: deque[str] = deque(maxlen=LAST_LINES)
    process = subprocess.Popen(
        argv,
        env={**env, **plain},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )
    timer = Timer(within, process.kill)
    timer.start()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if name := package_of(line):
                packages.add(name)
                step(name, len(packages))
            elif line.startswith(UNPACKING):
                step("unpacking", len(packages))
            if text := line.strip():
                last.append(text)
        status = process.wait()
        process.stdout.close()
    finally:
        late = not timer.is_alive()
        timer.cancel()
        process.kill()
        process.wait()
    if late:
        raise Unavailable(f"pip did not finish within {within / 60:.0f} minutes.")
    if status != 0:
        raise Unavailable(" ".join(last))
