"""Where a coder's program is on this machine, and which version of it answers."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.adapters.coders import built_in
from fleet.domain.data import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fleet.ports import Coder

VERSION_SECONDS = 3.0
ALSO = 0.5  # for what it had printed, once it was killed
VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?[\w.+-]*")


class CoderProgram(NamedTuple):
    """A program. `path`: None if it is not installed; `version`: None if it is unknown."""

    path: str | None = None
    version: str | None = None
    why: str = ""


def executable(coder: Coder) -> str:
    """The name of a coder's program; empty when each agent names its own."""
    named = getattr(coder, "executable", None)
    if isinstance(named, str):
        return named
    return built_in(coder.name).executable


def find_programs(
    executables: Iterable[str], env: Mapping[str, str], *, ask: bool
) -> dict[str, CoderProgram]:
    """All side by side: the slowest decides how long it takes, and `VERSION_SECONDS` how long at most."""
    import shutil  # noqa: PLC0415  # start-up time

    installed = {
        name: shutil.which(name, path=env.get("PATH", "")) for name in set(executables) - {""}
    }
    paths = {name: path for name, path in installed.items() if path}
    if not ask or not paths:
        return {name: CoderProgram(path) for name, path in installed.items()}
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # start-up time

    with ThreadPoolExecutor(len(paths)) as pool:
        versions = {n: pool.submit(_ask, path, env) for n, path in paths.items()}
        answers = {name: future.result() for name, future in versions.items()}
    return {name: answers.get(name, CoderProgram()) for name in installed}


def _ask(path: str, env: Mapping[str, str]) -> CoderProgram:
    """Ask for the version in an empty directory, where no project's settings apply."""
    try:
        process = subprocess.Popen(
            [path, "--version"],
            cwd="/", env=dict(env), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
    except OSError as error:
        return CoderProgram(path, why=f"It cannot be started: {error.strerror}.")
    try:
        out, _ = process.communicate(timeout=VERSION_SECONDS)
    except subprocess.TimeoutExpired:
        _end(process)
        return CoderProgram(path, why=f"It did not say its version within {VERSION_SECONDS:g} s.")
    version = VERSION.search(out.decode("utf-8", "replace"))
    if version is None:
        return CoderProgram(path, why="It did not say its version.")
    return CoderProgram(path, version[0])


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the program and all that it started, which may hold its output open."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=ALSO)
