"""What a new worktree needs besides its commit: private files, ports, commands."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import digest, names_of, run_git
from fleet.adapters.git.set_up.port_blocks import Ports
from fleet.adapters.processes import run as process
from fleet.base import set_up_file
from fleet.domain.data import dataclass
from fleet.domain.errors import Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from fleet.adapters.git.repo import Repo
    from fleet.domain.run import Workspace

INCLUDE = ".worktreeinclude"
TAIL_BYTES = 16_384
TAIL = 10  # lines of a failed command's log, in its error


def workspace_env(workspace: Workspace, ports: Path | None = None, size: int = 0) -> dict[str, str]:
    """The variables for its programs; none for a workspace that fleet did not make."""
    if not workspace.made:
        return {}
    env = {
        "FLEET_WORKSPACE": workspace.root,
        "FLEET_BRANCH": workspace.branch,
        "COMPOSE_PROJECT_NAME": compose_name(workspace),
    }
    if size > 0 and ports is not None:
        block = Ports(ports).claim(workspace.root, size)
        env |= {"FLEET_PORT_BASE": str(block.base), "FLEET_PORT_COUNT": str(size)}
    return env


def compose_name(workspace: Workspace) -> str:
    """A name that docker compose accepts, different for each workspace."""
    words = re.sub(r"[^a-z0-9_-]+", "-", workspace.branch.lower()).strip("-_")[:40]
    return f"fleet-{words}-{digest(workspace.root)}".replace("--", "-")


def bring_files(repo: Repo, root: Path, names: Sequence[str], *, replace: bool) -> list[str]:
    """Copy these files and those that `.worktreeinclude` names; return the copied ones.

    `replace`: also over an existing file, for an earlier task may have changed it.
    """
    copied = []
    for name in dict.fromkeys((*names, *_included(repo))):
        source, target = repo.top / name, root / name
        if not source.is_file() or (os.path.lexists(target) and not replace):
            continue
        if not _within(target.parent, root):
            continue  # a link in the repository leads out of the worktree
        target.parent.mkdir(parents=True, exist_ok=True)
        target.unlink(missing_ok=True)
        import shutil  # noqa: PLC0415  # start-up time

        shutil.copy2(source, target)
        copied.append(name)
    return copied


def _within(folder: Path, root: Path) -> bool:
    return folder.resolve().is_relative_to(root.resolve())


def _included(repo: Repo) -> list[str]:
    """Files that git ignores and that the patterns in `.worktreeinclude` match."""
    patterns = repo.top / INCLUDE
    if not patterns.is_file():
        return []
    words = ("ls-files", "-z", "--others", "--ignored", f"--exclude-from={patterns}")
    matched = run_git(repo.top, *words).raw
    if not matched:
        return []
    ignored = run_git(repo.top, "check-ignore", "-z", "--stdin", stdin=matched)
    return names_of(ignored.raw)


@dataclass(frozen=True, slots=True)
class Commands:
    """Shell commands run in a worktree, in order, each to its end or its deadline.

    Their output is added to the log; the error of a failed command ends with its last lines.
    """

    root: Path
    env: dict[str, str]
    timeout: float
    log: Path | None = None
    mark: str = ""
    title: str = "Set-up"

    def run(self, commands: Sequence[str]) -> None:
        for command in commands:
            self.one(command)

    def one(self, command: str) -> None:
        start = self.note(f"$ {command}\n")
        try:
            done = self._run(command, start)
        except Unavailable as error:
            self.note(f"(ended after {self.timeout:.0f} s)\n")
            raise Refused(
                f"{self.title} took more than {self.timeout:.0f} s: {command}",
                fix=self._fix(),
                code="setup_failed",
            ) from error
        if done.status:
            tail = self._tail(done, start)
            self.note(f"(status {done.status})\n")
            raise Refused(
                f"{self.title} failed ({done.status}): {command}: {tail}",
                fix=self._fix(),
                code="setup_failed",
            )

    def _run(self, command: str, start: int) -> process.Done:
        """Run the command; its output goes to the log as it comes, so that people can read it meanwhile."""
        env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")} | self.env
        argv = ["sh", "-c", command]
        if start >= 0:
            argv = ["sh", "-c", 'exec >>"$0" 2>&1; exec sh -c "$1"', str(self.log), command]
        folder = self.log.parent if self.log else None
        if folder is not None:
            set_up_file.begin(folder, command)
        try:
            return process.run(argv, self.root, env=env, timeout=self.timeout, mark=self.mark)
        finally:
            if folder is not None:
                set_up_file.end(folder)

    def _tail(self, done: process.Done, start: int) -> str:
        text = done.err.strip() or done.out.strip()
        if self.log is not None and start >= 0:
            with self.log.open("rb") as file:
                file.seek(max(start, self.log.stat().st_size - TAIL_BYTES))
                text = file.read().decode("utf-8", "replace").strip()
        return "\n".join(text.splitlines()[-TAIL:])[-2000:] or f"status {done.status}"

    def _fix(self) -> str:
        return f"Its whole output is in {self.log}." if self.log else ""

    def note(self, text: str) -> int:
        """Add it to the log. The size of the log after this; -1 when it could not be written."""
        if self.log is None:
            return -1
        with suppress(OSError):  # a full disk must not stop the set-up
            self.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8", errors="replace") as file:
                file.write(text)
            return self.log.stat().st_size
        return -1
