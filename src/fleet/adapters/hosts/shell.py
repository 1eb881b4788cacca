"""A POSIX shell on another machine over ssh, or on this one."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.processes.run import Missing, run
from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.adapters.processes.run import Done

CONNECT_SECONDS = 10
STEP_SECONDS = 120.0
NO_CONNECTION = 255  # ssh's own status; that of a script is the script's


class HereShell:
    """Runs the commands on this machine."""

    name = "This machine"

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    def __call__(self, script: str, *, stdin: bytes = b"", timeout: float = STEP_SECONDS) -> Done:
        return run(["sh", "-c", script], Path.home(), env=self._env, timeout=timeout, stdin=stdin)


class SshShell:
    """`name`: as ssh knows the machine. One connection serves all scripts.

    `FLEET_SSH`: the ssh to use, with options, as git's `GIT_SSH_COMMAND`.
    """

    def __init__(self, name: str, env: Mapping[str, str]) -> None:
        self.name, self._env = name, env
        # A socket's path has at most 108 bytes; a short folder leaves room for ssh's own name.
        self._folder = tempfile.TemporaryDirectory(prefix="fs-")
        self._argv = [
            *shlex.split(env.get("FLEET_SSH", "ssh")),
            *("-o", "BatchMode=yes", "-o", f"ConnectTimeout={CONNECT_SECONDS}"),
            *("-o", "ControlMaster=auto", "-o", f"ControlPath={self._folder.name}/%C"),
            *("-o", "ControlPersist=30", "-o", "ServerAliveInterval=10"),
        ]

    def __call__(self, script: str, *, stdin: bytes = b"", timeout: float = STEP_SECONDS) -> Done:
        words = f"sh -c {shlex.quote(script)}"
        try:
            done = run(
                [*self._argv, "--", self.name, words], Path.home(),
                env=self._env, timeout=timeout, stdin=stdin,
            )  # fmt: skip
        except Missing as error:
            raise Unavailable(
                "The program ssh is not on this machine.", fix="Install openssh-client."
            ) from error
        if done.status == NO_CONNECTION:
            raise Unavailable(
                f"ssh does not reach {self.name}: {done.words}",
                fix=f"Make `ssh {self.name} true` work without a password first.",
                code="no_ssh",
            )
        return done

    def close(self) -> None:
        with self._folder:
            run(
                [*self._argv, "-O", "exit", "--", self.name], Path.home(),
                env=self._env, timeout=CONNECT_SECONDS,
            )  # fmt: skip
