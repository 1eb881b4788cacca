"""Isolation by bubblewrap: namespaces in which the home is an empty folder.

A user namespace keeps agents from the memory and the environment of the server's processes.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.isolation.isolation import Isolation
from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fleet.ports import Launch

PROGRAM = "bwrap"
NOBODY = "65534"


class Bubblewrap(Isolation):
    fix = "Install bubblewrap 0.8 or newer on Linux with user namespaces, or choose another isolation."

    # bwrap waits for the agent, so it survives signals to their group; the agent must not ignore them.
    _last = ("--", "env", "--default-signal", "--")

    def _words(self, own: Sequence[Path]) -> tuple[str, ...]:
        words = [self._program(), *self._base(), "--tmpfs", str(self._home)]
        for path in self._shared():
            words += ["--ro-bind", str(path), str(path)]
        for path in own:
            words += ["--bind", str(path), str(path)]
        for path in (*self._controls(), *(path for path in self._secrets if path.exists())):
            words += ["--tmpfs", str(path)] if path.is_dir() else ["--bind", os.devnull, str(path)]
        return tuple(words)

    def _base(self) -> list[str]:
        """What it has of the machine, before something is taken away."""
        return [
            *("--unshare-user", "--cap-drop", "ALL", "--die-with-parent"),
            "--dev-bind",
            "/",
            "/",
        ]

    def _words_for(self, launch: Launch, worktree: Path) -> tuple[str, ...]:
        """A program that makes namespaces of its own may not map root into them (Linux 5.12).

        Such a one does not see our bwrap: with that of Debian 12, Codex carries out no edits.
        """
        as_nobody = launch.sandboxes and os.geteuid() == 0
        other = ("--uid", NOBODY, "--gid", NOBODY) if as_nobody else ()
        unseen = ("--ro-bind", os.devnull, self._program()) if launch.sandboxes else ()
        guarded = (
            word for path in guarded_in(worktree) for word in ("--ro-bind", *2 * (str(path),))
        )
        return (*other, *unseen, *guarded)

    def _program(self) -> str:
        program = shutil.which(PROGRAM, path=self._env.get("PATH", os.defpath))
        if program is None:
            raise Unavailable(
                "`isolation: bubblewrap` is set, but there is no bwrap here.", fix=self.fix
            )
        return program

    def _complaint(self, errors: str) -> str:
        return f"bubblewrap does not work here: {errors}" if "bwrap:" in errors else ""


def git_folder(worktree: Path) -> Path | None:
    """The git directory that this worktree shares with its repository; None: it is not one."""
    git = worktree / ".git"
    if not git.is_file():
        return None
    try:
        folder = Path(git.read_text("utf-8").removeprefix("gitdir:").strip())
        return (folder / (folder / "commondir").read_text("utf-8").strip()).resolve()
    except OSError:
        return None


def guarded_in(worktree: Path) -> list[Path]:
    """Its repository's settings and hooks, which Fleet's own git would carry out, are read only."""
    common = git_folder(worktree)
    if common is None:
        return []
    return [worktree / ".git", *(p for p in (common / "config", common / "hooks") if p.exists())]
