"""Finished set-ups, for the next worktree whose lock files are the same.

`<folder>/<key>/` has what the commands made in a new worktree. It is renamed to that name when it is
whole, so a set-up that failed, and one that was cut off, is never found there.
"""

from __future__ import annotations

import fcntl
import os
import platform
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import names_of, run_git
from fleet.adapters.git.set_up.lock_files import depends_on
from fleet.adapters.git.set_up.packages import run_set_up
from fleet.adapters.git.set_up.virtual_environments import relocate
from fleet.adapters.machine.digest import digest_of
from fleet.adapters.processes import run as process
from fleet.base import set_up_file
from fleet.domain.data import dataclass
from fleet.domain.errors import FleetError, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.adapters.git.set_up.steps import Commands

SET_UPS = "set-ups"  # the folder among the worktrees that has them, by repository
MAX_KEPT = 2  # set-ups of a repository: of the main branch, and of one that changes the locks
COPY_SECONDS = 1800.0
FORMAT = "2"  # of the key; another one makes all that is kept unused
WAITING = "waiting for the same set-up in another worktree"


@dataclass(frozen=True, slots=True)
class SetUps:
    """The finished set-ups of one repository. `files`: the setting `workspace.setup_cache`."""

    folder: Path
    commands: tuple[str, ...]
    files: tuple[str, ...]

    def run(self, commands: Commands, *, new: bool) -> None:
        """Set up a worktree: with what an earlier set-up made, or by running the commands.

        `new`: no agent has worked in it, so what the commands make there can be kept.
        """
        names = self._depends_on(commands.root)
        if not names:
            run_set_up(commands, self.commands)
            return
        key = self._key(commands.root, names)
        with self._alone(key, commands) as alone:
            if self._restore(key, commands.root, commands.mark):
                commands.note(f"# Reused a finished set-up: no change in {', '.join(names)}\n")
                return
            if new and alone:
                before = _untracked(commands.root)
                run_set_up(commands, self.commands)
                self._keep(key, commands, before)
                return
        run_set_up(commands, self.commands)

    def trim(self, before: float, *, dry_run: bool = False) -> list[Path]:
        """Remove those that no worktree has used since this time (seconds)."""
        old = [path for path in self._kept() if path.stat().st_mtime <= before]
        return [path for path in old if dry_run or self._drop(path)]

    def _depends_on(self, root: Path) -> list[str]:
        """The files of this worktree that the set-up depends on, of those that git tracks."""
        patterns = depends_on(self.commands, self.files)
        paths = [f":(glob){name}" if "/" in name else f":(glob)**/{name}" for name in patterns]
        return names_of(run_git(root, "ls-files", "-z", "--", *paths).raw) if paths else []

    def _key(self, root: Path, names: list[str]) -> str:
        parts = [FORMAT, platform.machine(), *self.commands]
        parts += [_program(command) for command in self.commands]
        for name in names:
            content = b""
            with suppress(OSError):
                content = (root / name).read_bytes()
            parts += [name, digest_of(content)]
        return digest_of("\0".join(parts).encode("utf-8", "surrogateescape"))[:24]

    @contextmanager
    def _alone(self, key: str, commands: Commands) -> Iterator[bool]:
        """Wait for a worktree that runs the same set-up; False when that took too long."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        until = time.monotonic() + commands.timeout * len(self.commands)
        folder = commands.log.parent if commands.log else None
        with (self.folder / f"{key}.lock").open("a") as lock:
            taken = _try_lock(lock.fileno())
            if not taken and folder is not None:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                set_up_file.begin(folder, WAITING)
            while not taken and time.monotonic() < until:
                time.sleep(0.1)
                taken = _try_lock(lock.fileno())
                if not taken and folder is not None and not set_up_file.running(folder):
                    raise Refused("Set-up was interrupted.", code="setup_failed")
            if folder is not None:
                set_up_file.end(folder)
            yield taken

    def _restore(self, key: str, root: Path, mark: str) -> bool:
        kept = self.folder / key
        if not kept.is_dir():
            return False
        names = (kept / "names").read_text("utf-8", "surrogateescape").split("\0")[:-1]
        for name in names:
            _remove(root / name)
        _copy(f"{kept}/files/.", root, mark)
        for name in names:
            relocate(root / name, root)
        os.utime(kept)
        return True

    def _keep(self, key: str, commands: Commands, before: set[str]) -> None:
        """A set-up that cannot be kept has succeeded all the same."""
        try:
            reason = self._save(key, commands.root, before, commands.mark)
        except (FleetError, OSError) as error:
            reason = str(error)
        if reason:
            commands.note(f"# Not kept for other worktrees: {reason}\n")

    def _save(self, key: str, root: Path, before: set[str], mark: str) -> str:
        """Copy what the set-up made; return why it cannot be reused."""
        if run_git(root, "diff", "--quiet", "--ignore-submodules=dirty").status:
            return "it changed files that git tracks."
        names = [name for name in _untracked(root, whole=True) if name not in before]
        mixed = {name for name in names if any(file.startswith(name) for file in before)}
        after = _untracked(root) if mixed else set()
        if any(_below(after, name) != _below(before, name) for name in mixed):
            return "it wrote into a directory with copied files."
        made = sorted(set(names) - mixed)
        part = self.folder / f".{key}.part"
        _remove(part)  # of a process that was killed
        for name in made:
            target = part / "files" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            _copy(str(root / name), target, mark)
        (part / "files").mkdir(parents=True, exist_ok=True)
        (part / "names").write_text("".join(f"{n}\0" for n in made), "utf-8", "surrogateescape")
        part.rename(self.folder / key)
        for old in sorted(self._kept(), key=lambda path: path.stat().st_mtime)[:-MAX_KEPT]:
            self._drop(old)
        return ""

    def _kept(self) -> list[Path]:
        paths = self.folder.iterdir() if self.folder.is_dir() else ()
        return [path for path in paths if path.is_dir() and not path.name.startswith(".")]

    def _drop(self, kept: Path) -> bool:
        """False while a worktree is being made of it."""
        with (self.folder / f"{kept.name}.lock").open("a") as lock:
            if not _try_lock(lock.fileno()):
                return False
            aside = kept.with_name(f".{kept.name}.gone")
            _remove(aside)
            kept.rename(aside)
        _remove(aside)
        return True


def _try_lock(fd: int) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _program(command: str) -> str:
    """Which program it starts: another version may install something else."""
    import shutil  # noqa: PLC0415  # start-up time

    words = command.split()
    path = shutil.which(words[0]) if words else None
    if path is None:
        return ""
    real = Path(path).resolve()
    return f"{real} {real.stat().st_mtime_ns}"


def _untracked(root: Path, *, whole: bool = False) -> set[str]:
    """What git does not track, ignored or not. `whole`: a directory without tracked files is one name."""
    how = ("--directory",) if whole else ()
    return set(names_of(run_git(root, "ls-files", "-z", "--others", *how).raw))


def _below(names: set[str], folder: str) -> set[str]:
    return {name for name in names if name.startswith(folder)}


def _remove(path: Path) -> None:
    import shutil  # noqa: PLC0415  # start-up time

    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.exists():
        shutil.rmtree(path)


def _copy(source: str, target: Path, mark: str) -> None:
    """Copy with times, modes and links. Where the disk can, the copy shares its blocks until it changes."""
    how = ["-ac"] if platform.system() == "Darwin" else ["-a", "--reflink=auto"]
    for options in (how, ["-a"]):
        argv = ["cp", *options, "--", source, str(target)]
        done = process.run(argv, target.parent, env=os.environ, timeout=COPY_SECONDS, mark=mark)
        if done.status == 0:
            return
    raise OSError(f"cp: {done.words}")
