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
    from collections.abc import Iterator, Sequence

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

    def _words_for(
        self, launch: Launch, worktree: Path, believed: Sequence[Path]
    ) -> tuple[str, ...]:
        """A program that makes namespaces of its own may not map root into them (Linux 5.12).

        Such a one does not see our bwrap: with that of Debian 12, Codex carries out no edits.
        """
        as_nobody = launch.sandboxes and os.geteuid() == 0
        other = ("--uid", NOBODY, "--gid", NOBODY) if as_nobody else ()
        unseen = ("--ro-bind", os.devnull, self._program()) if launch.sandboxes else ()
        guarded = [*guarded_in(worktree), *((path, False) for path in believed)]
        return (*other, *unseen, *binds(guarded))

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
    folder = _own_git_folder(worktree)
    try:
        return folder and (folder / (folder / "commondir").read_text("utf-8").strip()).resolve()
    except OSError:
        return None


def _own_git_folder(worktree: Path) -> Path | None:
    """What its `.git` file names: the part of the git directory that is this worktree's alone."""
    git = worktree / ".git"
    if not git.is_file():
        return None
    return Path(git.read_text("utf-8").removeprefix("gitdir:").strip()).resolve()


def guarded_in(worktree: Path) -> list[tuple[Path, bool]]:
    """What tells Fleet's own git which commands to run: settings, hooks, and where those are.

    The folders that have them can be changed (True), but not be moved to make room for others.
    """
    common, own = git_folder(worktree), _own_git_folder(worktree)
    if common is None or own is None:
        return []
    (common / "hooks").mkdir(exist_ok=True)
    fixed = [worktree / ".git", own / "commondir", common / "config", common / "hooks"]
    if b"worktreeconfig" in (common / "config").read_bytes().lower():
        more = [own / "config.worktree", common / "config.worktree"]
        for path in more:
            path.touch()
        fixed += more
    return [(own.parent, True), (own, True), *((path, False) for path in fixed)]


def binds(paths: Sequence[tuple[Path, bool]]) -> Iterator[str]:
    """The words for each of them; True: it can be changed."""
    for path, writable in paths:
        yield from ("--bind" if writable else "--ro-bind", str(path), str(path))
