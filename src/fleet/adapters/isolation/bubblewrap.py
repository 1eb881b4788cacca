"""Isolation by bubblewrap: namespaces in which the home is an empty folder.

A user namespace keeps agents from the memory and the environment of the server's processes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.isolation.isolation import Isolation
from fleet.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fleet.ports import Launch

PROGRAM = "bwrap"
NOBODY = "65534"
SETTINGS_SECONDS = 10.0
# Packing begins with the logs of all worktrees, which an agent cannot change.
NO_PACKING = "GIT_CONFIG_PARAMETERS='gc.auto=0' 'maintenance.auto=false'"


class Bubblewrap(Isolation):
    fix = "Install bubblewrap 0.8 or newer on Linux with user namespaces, or choose another isolation."

    # bwrap waits for the agent, so it survives signals to their group; the agent must not ignore them.
    _last = ("--", "env", "--default-signal", "--", NO_PACKING)

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
        """The words that give the agent the machine's files, before others hide some of them."""
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
    """The git directory that has the repository's settings; None: there is no repository."""
    own = _own_git_folder(worktree)
    return _common(own) if own else None


def _common(own: Path) -> Path:
    """The shared git directory, by its path: another agent may have changed the file `commondir`."""
    return own.parent.parent if own.parent.name == "worktrees" else own


def _own_git_folder(worktree: Path) -> Path | None:
    """The git directory, or the part of it that is this linked worktree's alone."""
    folders = (folder / ".git" for folder in (worktree, *worktree.parents))
    git = next((path for path in folders if path.exists()), None)
    if git is None or git.is_dir():
        return git and git.resolve()
    return Path(git.parent, git.read_text("utf-8").removeprefix("gitdir:").strip()).resolve()


def guarded_in(worktree: Path) -> list[tuple[Path, bool]]:
    """What tells Fleet's own git which commands to run: settings, hooks, and where those are.

    The folder that is the worktree's own can be changed (True); those of other worktrees, whose git
    Fleet or a person runs, cannot. None of these folders can be moved to make room for others.
    """
    own = _own_git_folder(worktree)
    if own is None or not (_common(own) / "config").is_file():
        return []
    common = _common(own)
    (common / "hooks").mkdir(exist_ok=True)
    fixed = [common / "config", common / "hooks"]
    folders = [common / "worktrees", common / "modules"]  # of submodules: they have settings, too
    settings = (common / "config").read_bytes().lower()
    if own != common:
        fixed += [worktree / ".git", own / "commondir"]
    if b"worktreeconfig" in settings:
        more = {own / "config.worktree", common / "config.worktree"}
        for path in more:
            path.touch()
        fixed += sorted(more)
    if b"include" in settings:
        fixed += _included(common)
    others = ((folder, False) for folder in folders if folder.is_dir())
    return [(common, True), *others, (own, True), *((path, False) for path in fixed)]


def _included(common: Path) -> list[Path]:
    """The files that the repository's settings include, also those that are empty yet."""
    words = ("config", "--local", "--includes", "--show-origin", "-z", "--list")
    done = subprocess.run(
        ["git", f"--git-dir={common}", *words],
        capture_output=True, timeout=SETTINGS_SECONDS, check=False,
    )  # fmt: skip
    parts = os.fsdecode(done.stdout).split("\0")
    files = set()
    for origin, setting in zip(parts[::2], parts[1::2], strict=False):
        source = Path(common.parent, origin.removeprefix("file:"))
        name, _, value = setting.partition("\n")
        files.add(source.resolve())
        if name.startswith("include") and name.endswith(".path"):
            files.add((source.parent / Path(value).expanduser()).resolve())
    for path in files:
        if path.parent == common:
            path.touch()
    return sorted(path for path in files if path.is_file() and path != common / "config")


def binds(paths: Sequence[tuple[Path, bool]]) -> Iterator[str]:
    """The words that mount each path. True: it is writable."""
    for path, writable in paths:
        yield from ("--bind" if writable else "--ro-bind", str(path), str(path))
