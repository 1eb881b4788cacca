"""Worktrees in which gates test what is about to land. They stay, so that the next test starts fast."""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import Repo, run_git
from fleet.adapters.git.set_up.steps import Commands, bring_files
from fleet.adapters.git.tree import BIG_TREE_SECONDS, OURS
from fleet.adapters.processes import run as process
from fleet.base.files import write_atomically
from fleet.domain.errors import Refused, Unavailable
from fleet.domain.landing.report import MOST_REPORT
from fleet.ports.landing import JUNIT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fleet.adapters.git.checkout import WorkspaceRules

ADDING = "initializing"  # what git writes into the lock of a worktree while it adds it
RECORD = ".gate"  # beside a directory: the gate that it was prepared for
PART = ".part"  # likewise: the part of a sparse repository that it was made with


def _mark(root: Path) -> str:
    return f"fleet-gate {root}"


class GitGateWorktrees:
    """`folder` has a numbered worktree for each gate at a time; `within`: the project in it."""

    def __init__(
        self, repo: Repo, folder: Path, rules: WorkspaceRules, *, within: str, log: Path
    ) -> None:
        self._repo = repo
        self._folder = folder
        self._rules = rules
        self._within = within
        self._log = log

    def prepare(self, name: str, commit: str) -> Path:
        root = self._take(name)
        if not process.end_marked(_mark(root)):
            raise Unavailable(f"An earlier set-up is still running in {root}.")
        if self._part() != self._part_of(root):
            shutil.rmtree(root)
            self._add(root)
        try:
            self._check_out(root, commit)
        except Refused:  # a git that was killed left it half made
            shutil.rmtree(root, ignore_errors=True)
            self._add(root)
            self._check_out(root, commit)
        (root / JUNIT).unlink(missing_ok=True)
        bring_files(self._repo, root, self._rules.credential_files, replace=True)
        if self._rules.setup:
            limit = self._rules.setup_timeout
            commands = Commands(root, {}, limit, self._log, _mark(root), "Set-up")
            commands.run(self._rules.setup)
        return root / self._within

    def _check_out(self, root: Path, commit: str) -> None:
        self._unlock(root)
        clean = ("clean", "-ffdq", *(["-x"] if self._rules.pool_ignored == "clean" else []))
        for words in (("checkout", "--quiet", "--detach", "--force", commit), clean):
            done = run_git(root, *OURS, *words, mark=_mark(root), timeout=BIG_TREE_SECONDS)
            if done.status:
                raise Refused(f"git {words[0]} failed in {root}: {done.words}")

    def _unlock(self, root: Path) -> None:
        """Nothing of ours is at work there: a lock was left by a git that was killed."""
        gitdir = (root / ".git").read_text().removeprefix("gitdir: ").strip()
        for name in ("index.lock", "HEAD.lock"):
            (root / gitdir / name).unlink(missing_ok=True)

    def _add(self, root: Path) -> None:
        with self._repo.alone():
            self._repo.git("worktree", "prune")
            words = ("worktree", "add", "--quiet", "--force", "--detach", "--no-checkout")
            self._repo.git(*words, str(root), mark=_mark(root))
        if (part := self._part()) != self._part_of(root):
            write_atomically(root.with_suffix(PART), part)

    def _part(self) -> str:
        """What the checkout has of the repository, if it is sparse: a new worktree gets the same."""
        return self._repo.git("sparse-checkout", "list", check=False).out

    @staticmethod
    def _part_of(root: Path) -> str:
        try:
            return root.with_suffix(PART).read_text()
        except FileNotFoundError:
            return ""

    def _remove_half_made(self) -> None:
        """A git that was killed while it added a worktree leaves it locked: no other git removes it."""
        for lock in self._repo.common.glob("worktrees/*/locked"):
            with suppress(OSError):
                root = Path((lock.parent / "gitdir").read_text().strip()).parent
                is_ours = root.parent == self._folder and lock.read_text().strip() == ADDING
                if is_ours and process.end_marked(_mark(root)) and lock.exists():
                    shutil.rmtree(root, ignore_errors=True)
                    shutil.rmtree(lock.parent)

    def _take(self, name: str) -> Path:
        """Take the landing's directory of an earlier try, a free one, or a new one."""
        with self._repo.alone():
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._remove_half_made()
            records = self._records()
            number = next((n for n, gate in records.items() if gate == name), 0)
            number = number or next(n for n in range(1, len(records) + 2) if not records.get(n))
            root = self._folder / str(number)
            write_atomically(self._folder / f"{number}{RECORD}", json.dumps({"gate": name}) + "\n")
        if not (root / ".git").exists():
            self._add(root)
        return root

    def _records(self) -> dict[int, str]:
        records = {}
        for file in self._folder.glob(f"*{RECORD}"):
            with suppress(OSError, ValueError):
                records[int(file.stem)] = str(json.loads(file.read_text())["gate"])
        return records

    def busy(self) -> Mapping[str, str]:
        records = self._records().items()
        return {gate: str(self._folder / str(number)) for number, gate in records if gate}

    def report(self, name: str) -> str:
        root = self.busy().get(name)
        if not root:
            return ""
        try:
            with (Path(root) / JUNIT).open(errors="replace") as file:
                return file.read(MOST_REPORT)
        except OSError:
            return ""

    def leave(self, name: str) -> None:
        for number, gate in self._records().items():
            if gate == name:
                record = self._folder / f"{number}{RECORD}"
                write_atomically(record, json.dumps({"gate": ""}) + "\n")
