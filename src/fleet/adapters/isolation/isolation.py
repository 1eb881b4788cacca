"""What keeps agents and gates from reading this home, whichever means of the system it uses.

An agent runs as the same user, and may do with everything else of the machine what it could before.
"""

from __future__ import annotations

import os
import subprocess
import sys
from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fleet.ports import Launch

PROBE_SECONDS = 10.0
CONTROL = (  # sockets through which another program runs commands outside
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
)
# By these files of a run's folder Fleet acts outside: they name processes, a terminal, a command.
BELIEVED = ("launch.json", "keeper.json", "keeper.lock")
CONTROL_OF_USER = ("bus", "systemd", "podman")  # below $XDG_RUNTIME_DIR
READ, CONNECT, CREATE = (  # each prints those of the paths with which it can do so
    f"""
import os, socket, sys, tempfile
def read(path):
    with open(path, "rb") as file:
        assert file.read(1)
def connect(path):
    socket.socket(socket.AF_UNIX).connect(path)
def create(path):
    os.unlink(tempfile.mkstemp(dir=path)[1])
for path in sys.argv[1:]:
    try:
        {name}(path)
        print(path)
    except (OSError, AssertionError):
        pass
"""
    for name in ("read", "connect", "create")
)


class Isolation(ABC):
    """`home` is out of reach but for what is the run's own, and so are `secrets`, files elsewhere."""

    fix: str  # what to do where it does not work
    _last: tuple[str, ...]  # the words that end those that isolate

    def __init__(self, home: Path, secrets: Sequence[Path], env: Mapping[str, str]) -> None:
        self._home, self._env = Path(os.path.realpath(home)), env
        files = [path.resolve() for path in secrets]
        self._secrets = [path for path in files if not path.is_relative_to(self._home)]

    def before(self, run_id: str, launch: Launch) -> tuple[str, ...]:
        """The words to put before the command. Raise `Unavailable` where it does not work."""
        task_dir = launch.env.get("FLEET_TASK_DIR", "")
        worktree = Path(launch.env.get("FLEET_WORKSPACE") or launch.cwd)
        folder = self._home / "runs" / run_id
        own = [folder, worktree, *([Path(task_dir)] if task_dir else [])]
        own = [Path(os.path.realpath(path)) for path in own]
        return (
            *self._words([path for path in own if path.is_relative_to(self._home)]),
            *self._words_for(launch, worktree, [folder / name for name in BELIEVED]),
            *self._last,
        )

    @abstractmethod
    def _words(self, own: Sequence[Path]) -> tuple[str, ...]:
        """The words that isolate; of the home it may change what is its `own`."""

    @abstractmethod
    def _words_for(
        self, launch: Launch, worktree: Path, believed: Sequence[Path]
    ) -> tuple[str, ...]:
        """More of them, for this agent; it cannot change what is `believed`.

        Raise `Refused` when its program cannot work so.
        """

    @abstractmethod
    def _complaint(self, errors: str) -> str:
        """Why the isolation itself failed, of what a program under it wrote; empty: it did not."""

    def _shared(self) -> list[Path]:
        """What every agent may read of the home: other agents' worktrees, and our programs."""
        paths = (self._home / name for name in ("worktrees", "bin"))
        return [path for path in paths if path.exists()]

    def _controls(self) -> Iterator[Path]:
        """Sockets of programs that run commands for others, and folders of such."""
        runtime = self._env.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
        tmux = Path(self._env.get("TMUX_TMPDIR", "/tmp"), f"tmux-{os.getuid()}")  # noqa: S108  # nosec B108  # tmux's own
        paths = [tmux, *map(Path, CONTROL), *(Path(runtime, name) for name in CONTROL_OF_USER)]
        yield from (path.resolve() for path in paths if path.exists())

    def readable(self, secrets: Sequence[Path]) -> list[Path]:
        """Those of these files that a program under this isolation can read."""
        return self._possible(READ, secrets)

    def sockets(self) -> list[Path]:
        """Those of these sockets through which a program under this isolation can run commands outside."""
        paths = [q for p in self._controls() for q in ([p] if p.is_socket() else p.rglob("*"))]
        return self._possible(CONNECT, [path for path in paths if path.is_socket()])

    def closed(self, folders: Sequence[Path]) -> list[Path]:
        """Those of these folders in which a program under this isolation cannot create files."""
        existing = [path for path in folders if path.exists()]
        open_ = self._possible(CREATE, existing)
        return [path for path in existing if path not in open_]

    def _possible(self, act: str, paths: Sequence[Path]) -> list[Path]:
        """Those of these paths with which a program under this isolation can do this."""
        program = (sys.executable, "-I", "-S", "-c", act)
        argv = [*self._words([]), *self._last, *program, *map(str, paths)]
        try:
            done = subprocess.run(argv, capture_output=True, timeout=PROBE_SECONDS, check=False)
        except subprocess.TimeoutExpired as error:
            raise Unavailable("The isolation did not start in time.", fix=self.fix) from error
        if why := self._complaint(done.stderr.decode("utf-8", "replace").strip()):
            raise Unavailable(why, fix=self.fix)
        if done.returncode:  # what could not run has not tried
            errors = done.stderr.decode("utf-8", "replace").strip()
            raise Unavailable(f"A program under it failed: {errors[-500:]}", fix=self.fix)
        lines = set(done.stdout.decode("utf-8", "replace").splitlines())
        return [path for path in paths if str(path) in lines]
