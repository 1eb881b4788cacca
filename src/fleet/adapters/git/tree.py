"""One working tree, addressed by its files and its git directory: also after it was moved."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import GIT_SECONDS, QUIET, run_git, text_of
from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fleet.adapters.processes import run as process

BIG_TREE_SECONDS = 1800.0  # seconds: gigabytes of untracked files take their time to be read
# No hook of the user runs, and git returns only when its writes are on the disk.
OURS = (
    *QUIET,
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "core.fsync=committed,reference", "-c", "core.fsyncMethod=batch"),
    *("-c", "advice.addEmbeddedRepo=false", "-c", "core.safecrlf=false"),
)
GITLINK = "160000"
IN_PROGRESS = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "BISECT_LOG": "a bisection",
}
MOST_LISTED = 1 << 20  # bytes of a listing of an index that is remembered
KEPT_LISTS = 32
_LISTED: dict[tuple[object, ...], bytes] = {}
_SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Entry(NamedTuple):
    mode: str
    sha: str
    stage: int
    path: bytes


@dataclass(frozen=True, slots=True)
class Tree:
    root: Path
    gitdir: Path

    @staticmethod
    def at(root: Path) -> Tree | None:
        """None when no working tree of git begins at this directory."""
        if not os.path.lexists(root / ".git"):
            return None
        done = run_git(root, "rev-parse", "--path-format=absolute", "--git-dir")
        gitdir = text_of(done.raw).removesuffix("\n")
        return Tree(root, Path(gitdir)) if done.status == 0 else None

    def git(
        self,
        *args: str,
        index: Path | None = None,
        check: bool = True,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        timeout: float = GIT_SECONDS,
        mark: str = "",
    ) -> process.Done:
        full_env = {"GIT_DIR": str(self.gitdir), "GIT_WORK_TREE": str(self.root), **(env or {})}
        if index is not None:
            full_env["GIT_INDEX_FILE"] = str(index)
        full_env["GIT_OPTIONAL_LOCKS"] = "0"
        done = run_git(
            self.root, *OURS, *args, env=full_env, stdin=stdin, timeout=timeout, mark=mark
        )
        if check and done.status:
            raise Refused(f"git {args[0]} failed in {self.root}: {done.words}")
        return done

    def commit(self, name: str) -> str:
        """Its full name, or the empty string."""
        done = self.git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False)
        return done.out.strip() if done.status == 0 else ""

    def head_branch(self) -> str:
        """Also one that has no commit yet; empty: detached."""
        done = self.git("symbolic-ref", "--quiet", "HEAD", check=False)
        return text_of(done.raw).strip().removeprefix("refs/heads/")

    def changes(self, *, all_files: bool = True) -> bytes:
        """The uncommitted changes, as git lists them; ignored files do not count.

        `all_files`: list also each untracked file, and those that the index tells git to skip.
        """
        how = "--untracked-files=all" if all_files else "--untracked-files=normal"
        words = ("status", "--porcelain", "-z", how, "--ignore-submodules=none")
        if not all_files or not (flagged := self.flagged()):
            return self.git(*words, timeout=BIG_TREE_SECONDS).raw
        with self.private_index() as mine:
            self.unflag(mine, flagged)
            return self.git(*words, index=mine, timeout=BIG_TREE_SECONDS).raw

    def flagged(self) -> list[bytes]:
        """Existing files that the index tells git to skip."""
        listed = self._listed("-v").split(b"\0")
        paths = [x[2:] for x in listed if x and (x[:1] == b"S" or x[:1].islower())]
        return [path for path in paths if os.path.lexists(self.root / os.fsdecode(path))]

    def unflag(self, index: Path, paths: list[bytes]) -> None:
        names = b"".join(path + b"\0" for path in paths)
        for flag in ("--no-assume-unchanged", "--no-skip-worktree"):
            self.git("update-index", flag, "-z", "--stdin", index=index, stdin=names)

    def in_progress(self) -> list[str]:
        return list(dict.fromkeys(w for f, w in IN_PROGRESS.items() if (self.gitdir / f).exists()))

    def pending_commits(self) -> list[str]:
        """Commits that only an operation in progress refers to."""
        names = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")
        rebases = [f"{d}/{f}" for d in ("rebase-merge", "rebase-apply") for f in ("orig-head",)]
        commits: list[str] = []
        for name in (*names, *rebases):
            with suppress(OSError):
                commits += _SHA.findall((self.gitdir / name).read_text("ascii", "replace"))
        return [sha for sha in commits if self.commit(sha)]

    def entries(self, index: Path | None = None, *, unmerged: bool = False) -> list[Entry]:
        listed = self._listed("--unmerged" if unmerged else "--stage", index)
        return [_entry(line) for line in listed.split(b"\0") if line]

    def nested(self, index: Path | None = None) -> list[Path]:
        """Directories that are working trees of their own: submodules, clones."""
        paths = [self.root / os.fsdecode(link) for link in self._links(index)]
        return [path for path in paths if os.path.lexists(path / ".git")]

    def filled(self) -> list[bytes]:
        """Paths of submodules that are not checked out, with files all the same: git sees none of them."""
        return [link for link in self._links() if _has_loose_files(self.root / os.fsdecode(link))]

    def _links(self, index: Path | None = None) -> list[bytes]:
        listing = self._listed("--stage", index)
        return [_entry(x).path for x in listing.split(b"\0") if x.startswith(GITLINK.encode())]

    def _listed(self, how: str, index: Path | None = None) -> bytes:
        """What is in the index, read once for as long as its file is the same: git writes another."""
        with suppress(OSError):
            file = (index or self.gitdir / "index").stat()
            key = (
                str(self.root),
                how,
                file.st_ino,
                file.st_size,
                file.st_mtime_ns,
                file.st_ctime_ns,
            )
            if (known := _LISTED.get(key)) is None:
                known = self.git("ls-files", "-z", how, index=index).raw
                if len(known) <= MOST_LISTED:
                    while len(_LISTED) >= KEPT_LISTS:
                        _LISTED.pop(next(iter(_LISTED), key), None)
                    _LISTED[key] = known
            return known
        return self.git("ls-files", "-z", how, index=index).raw  # it has no index yet

    @contextmanager
    def private_index(self, *, empty: bool = False) -> Iterator[Path]:
        """A copy of the index with its time, which tells git what to reread; or an empty one."""
        import shutil  # noqa: PLC0415  # start-up time
        from tempfile import mkdtemp  # noqa: PLC0415

        folder = Path(mkdtemp(prefix="fleet-index-", dir=self.gitdir))
        mine = folder / "index"
        try:
            if not empty:
                with suppress(FileNotFoundError):
                    shutil.copy2(self.gitdir / "index", mine)
            yield mine
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _has_loose_files(folder: Path) -> bool:
    if os.path.lexists(folder / ".git") or folder.is_symlink() or not folder.is_dir():
        return False
    return any(files for _, _, files in os.walk(folder))


def _entry(line: bytes) -> Entry:
    facts, _, path = line.partition(b"\t")
    mode, sha, stage = facts.decode("ascii").split(" ")
    return Entry(mode, sha, int(stage), path)
