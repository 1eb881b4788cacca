"""Start agents where they cannot read this home: bubblewrap hides it, but for what is the run's own.

A user namespace keeps them from the memory and the environment of the server's processes. Everything
else of the machine stays as it is for the agent, which runs as the same user.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.ports import Launch

PROGRAM = "bwrap"
FIX = "Install bubblewrap 0.8 or newer on Linux with user namespaces, or set isolation: none."
PROBE_SECONDS = 10.0
# bwrap waits for the agent, so it must survive signals to their group; the agent must not ignore them.
INNER = ("env", "--default-signal", "--")
CONTROL = (  # sockets through which another program runs commands outside
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
)
CONTROL_OF_USER = ("bus", "systemd", "podman")  # below $XDG_RUNTIME_DIR


class Bubblewrap:
    """`home` is hidden, and so is each of `secrets`, files elsewhere."""

    def __init__(self, home: Path, secrets: Sequence[Path], env: Mapping[str, str]) -> None:
        self._home, self._secrets, self._env = Path(os.path.realpath(home)), secrets, env

    def before(self, run_id: str, launch: Launch) -> tuple[str, ...]:
        """The words to put before the command. Raise `Unavailable` without bubblewrap."""
        folder = self._home / "runs" / run_id
        task_dir = launch.env.get("FLEET_TASK_DIR", "")
        worktree = Path(launch.env.get("FLEET_WORKSPACE") or launch.cwd)
        own = [folder, worktree, *([Path(task_dir)] if task_dir else [])]
        return (*self._hidden(own), *_git_config(worktree), "--", *INNER)

    def _hidden(self, own: Sequence[Path]) -> list[str]:
        words = [_program(self._env), "--unshare-user", "--cap-drop", "ALL", "--die-with-parent"]
        words += ["--dev-bind", "/", "/", "--tmpfs", str(self._home)]
        shared = [self._home / name for name in ("worktrees", "bin")]
        for folder in (path for path in shared if path.exists()):
            words += ["--ro-bind", str(folder), str(folder)]
        for path in (Path(os.path.realpath(path)) for path in own):
            if path.is_relative_to(self._home):
                words += ["--bind", str(path), str(path)]
        for path in self._others():
            words += ["--tmpfs", str(path)] if path.is_dir() else ["--bind", os.devnull, str(path)]
        return words

    def _others(self) -> list[Path]:
        """What else leads to our secrets: a store elsewhere, and who runs commands for others."""
        runtime = self._env.get("XDG_RUNTIME_DIR", f"/run/user/{os.getuid()}")
        tmux = Path(self._env.get("TMUX_TMPDIR", "/tmp"), f"tmux-{os.getuid()}")  # noqa: S108  # nosec B108  # tmux's own
        paths = [tmux, *map(Path, CONTROL), *(Path(runtime, name) for name in CONTROL_OF_USER)]
        paths += [p for p in self._secrets if not p.resolve().is_relative_to(self._home)]
        return [path.resolve() for path in paths if path.exists()]

    def probe(self, secrets: Sequence[Path]) -> list[Path]:
        """Those of the files that a program under this isolation can read."""
        readable = []
        for path in secrets:
            argv = [*self._hidden([]), "--", "head", "-c", "1", str(path)]
            try:
                done = subprocess.run(argv, capture_output=True, timeout=PROBE_SECONDS, check=False)
            except subprocess.TimeoutExpired as error:
                raise Unavailable("bubblewrap did not start in time.", fix=FIX) from error
            if b"bwrap:" in done.stderr:
                why = done.stderr.decode("utf-8", "replace").strip()
                raise Unavailable(f"bubblewrap does not work here: {why}", fix=FIX)
            if done.stdout:
                readable.append(path)
        return readable


def _program(env: Mapping[str, str]) -> str:
    program = shutil.which(PROGRAM, path=env.get("PATH", os.defpath))
    if program is None:
        raise Unavailable("`isolation: bubblewrap` is set, but there is no bwrap here.", fix=FIX)
    return program


def _git_config(worktree: Path) -> list[str]:
    """Its repository's settings and hooks, which Fleet's own git would carry out, are read only."""
    git = worktree / ".git"
    if not git.is_file():
        return []
    try:
        folder = Path(git.read_text("utf-8").removeprefix("gitdir:").strip())
        common = (folder / (folder / "commondir").read_text("utf-8").strip()).resolve()
    except OSError:
        return []
    guarded = [git, *(p for p in (common / "config", common / "hooks") if p.exists())]
    return [word for path in guarded for word in ("--ro-bind", str(path), str(path))]
