"""One working tree, addressed by its files and its git directory: also after it was moved."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from fleet.adapters.git.repo import GIT_SECONDS, QUIET, names_of, run_git, text_of
from fleet.domain.data import NamedTuple, dataclass
from fleet.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fleet.adapters.processes import run as process

BIG_TREE_SECONDS = 1800.0  # seconds: gigabytes of untracked files take their time to be read
# No hook of the user runs, and git returns only when its writes are on the disk.
OURS = (
    *QUIET,
    *("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"),
    *("-c", "core.fsync=committed,reference", "-c", "core.fsyncMethod=batch"),
    *("-c", "advice.addEmbeddedRepo=false", "-c", "core.safecrlf=false"),
    *("-c", "submodule.recurse=false"),  # an agent writes the settings of a submodule
)
GITLINK = "160000"
FROM_INPUT = ("--pathspec-from-file=-", "--pathspec-file-nul")
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


class TreeEntry(NamedTuple):
    mode: str
    sha: str
    stage: int
    path: bytes


class TreeState(NamedTuple):
    """A tree at one moment. `head`: its commit; `branch`: empty when detached.

    `changed`: something is not committed; what git ignores does not count.
    """

    head: str
    branch: str
    changed: bool


@dataclass(frozen=True, slots=True)
class Tree:
    """`outside`: a folder for its temporary files, if that beside it is not out of its agent's reach."""

    root: Path
    gitdir: Path
    outside: Path | None = None

    @property
    def common(self) -> Path:
        """The git directory of its repository. The file `commondir` is not believed."""
        linked = self.gitdir.parent.name == "worktrees"
        return self.gitdir.parent.parent if linked else self.gitdir

    @contextmanager
    def scratch(self) -> Iterator[Path]:
        """A folder for temporary files, out of the agent's reach; `remove_scratch` after a crash."""
        import shutil  # noqa: PLC0415  # start-up time
        from tempfile import mkdtemp  # noqa: PLC0415

        folder = Path(mkdtemp(prefix=_scratch_of(self.root), dir=self.outside or self.root.parent))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @staticmethod
    def at(root: Path) -> Tree | None:
        """None when no working tree of git begins at this directory."""
        if not os.path.lexists(root / ".git"):
            return None
        if linked := _linked_gitdir(root):
            return Tree(root, linked)
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
        where = {"GIT_DIR": self.gitdir, "GIT_WORK_TREE": self.root, "GIT_COMMON_DIR": self.common}
        full_env = {**{name: str(path) for name, path in where.items()}, **(env or {})}
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
        """The full name of the commit, or the empty string."""
        done = self.git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}", check=False)
        return done.out.strip() if done.status == 0 else ""

    def head_branch(self) -> str:
        """The branch of HEAD, also one that has no commit yet; empty: detached."""
        done = self.git("symbolic-ref", "--quiet", "HEAD", check=False)
        return text_of(done.raw).strip().removeprefix("refs/heads/")

    def changes(self, *, all_files: bool = True) -> bytes:
        """The uncommitted changes, as git lists them; ignored files do not count.

        `all_files`: list also each untracked file, and those that the index tells git to skip.
        """
        how = "--untracked-files=all" if all_files else "--untracked-files=normal"
        return self._status("--porcelain", how, flagged=self.flagged() if all_files else [])

    def look(self) -> TreeState:
        """The commit, the branch and the changes, as one git process saw them."""
        words = ("--porcelain=v2", "--branch", "--no-ahead-behind", "--untracked-files=all")
        lines = names_of(self._status(*words, flagged=self.flagged()))
        headers = list(takewhile(lambda line: line.startswith("# "), lines))
        facts = dict(line[2:].split(" ", 1) for line in headers)
        head, branch = facts.get("branch.oid", ""), facts.get("branch.head", "")
        return TreeState(
            head if _SHA.fullmatch(head) else "",
            "" if branch == "(detached)" else branch,
            len(lines) > len(headers),
        )

    def _status(self, *how: str, flagged: list[bytes]) -> bytes:
        """Git would look into repositories within this one with the settings of those: we do."""
        words = ("status", "-z", *how, "--ignore-submodules=dirty")
        if flagged:
            with self.private_index() as mine:
                self.unflag(mine, flagged)
                raw = self.git(*words, index=mine, timeout=BIG_TREE_SECONDS).raw
        else:
            raw = self.git(*words, timeout=BIG_TREE_SECONDS).raw
        return raw + b"".join(b" M %s\0" % name for name in self._changed_within(raw))

    def _changed_within(self, listed: bytes) -> list[bytes]:
        """The names of repositories within that hold changes, and are not listed yet."""
        from fleet.adapters.git.inner import inner_tree  # noqa: PLC0415  # few trees have any

        names = []
        for path in self.nested():
            name = os.fsencode(os.path.relpath(path, self.root))
            if any(line.endswith(b" " + name) for line in listed.split(b"\0")):
                continue
            with inner_tree(self, path) as inner:
                if inner and inner.look().changed:
                    names.append(name)
        return names

    def add_all(
        self,
        *how: str,
        leaving: Sequence[str] = (),
        index: Path | None = None,
        check: bool = True,
        timeout: float = GIT_SECONDS,
    ) -> process.Done:
        """`git add --all` of all but these pathspecs; no git runs in a repository within."""
        with self.excluding_nested(leaving, index=index) as specs:
            words = ("add", "--all", "--sparse", *how, *FROM_INPUT)
            return self.git(*words, index=index, check=check, stdin=specs, timeout=timeout)

    @contextmanager
    def excluding_nested(
        self, leaving: Sequence[str] = (), *, index: Path | None = None
    ) -> Iterator[bytes]:
        """The pathspecs for `git add --all`; afterwards each repository within is at its commit."""
        nested = {os.fsencode(os.path.relpath(p, self.root)): p for p in self.nested(index)}
        excluded = (b":(exclude,literal)%s" % name for name in nested)
        yield b"\0".join([b".", *map(os.fsencode, leaving), *excluded])
        if heads := {name: self._head_within(path) for name, path in nested.items()}:
            lines = [b"160000 %s\t%s" % (h.encode(), name) for name, h in heads.items() if h]
            words = ("update-index", "-z", "--index-info")
            self.git(*words, index=index, stdin=b"\0".join([*lines, b""]))

    def _head_within(self, path: Path) -> str:
        from fleet.adapters.git.inner import inner_tree  # noqa: PLC0415  # few trees have any

        with inner_tree(self, path) as inner:
            return inner.commit("HEAD") if inner else ""

    def flagged(self) -> list[bytes]:
        """Existing files that the index tells git to skip."""
        listed = self._listed()
        paths = [_entry(x).path for x in listed if x[:1] == b"S" or x[:1].islower()]
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

    def entries(self, index: Path | None = None, *, unmerged: bool = False) -> list[TreeEntry]:
        entries = [_entry(line) for line in self._listed(index)]
        return [entry for entry in entries if entry.stage] if unmerged else entries

    def nested(self, index: Path | None = None) -> list[Path]:
        """Directories that are working trees of their own: submodules, clones."""
        paths = [self.root / os.fsdecode(link) for link in self._links(index)]
        return [path for path in paths if os.path.lexists(path / ".git")]

    def filled(self) -> list[bytes]:
        """Paths of submodules that are not checked out, with files all the same: git sees none of them."""
        return [link for link in self._links() if _has_loose_files(self.root / os.fsdecode(link))]

    def _links(self, index: Path | None = None) -> list[bytes]:
        links = GITLINK.encode()
        return [_entry(x).path for x in self._listed(index) if x.startswith(links, 2)]

    def _listed(self, index: Path | None = None) -> list[bytes]:
        """The lines of the index, each after git's letter for how it treats the file."""
        return [line for line in self._listing(index).split(b"\0") if line]

    def _listing(self, index: Path | None) -> bytes:
        """Read once for as long as the file is the same: git writes another."""
        words = ("ls-files", "-z", "-v", "--stage")
        with suppress(OSError):
            path = index or self.gitdir / "index"
            file = path.stat()
            key = (str(path), file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns)
            if (known := _LISTED.get(key)) is None:
                known = self.git(*words, index=index).raw
                if len(known) <= MOST_LISTED:
                    while len(_LISTED) >= KEPT_LISTS:
                        _LISTED.pop(next(iter(_LISTED), key), None)
                    _LISTED[key] = known
            return known
        return self.git(*words, index=index).raw  # it has no index yet

    @contextmanager
    def private_index(self, *, empty: bool = False) -> Iterator[Path]:
        """A copy of the index with its time, which tells git what to reread; or an empty one."""
        import shutil  # noqa: PLC0415  # start-up time

        with self.scratch() as folder:
            mine = folder / "index"
            if not empty:
                with suppress(FileNotFoundError):
                    shutil.copy2(self.gitdir / "index", mine)
            yield mine


def _scratch_of(root: Path) -> str:
    return f".{root.name[:100]}."


def remove_scratch(root: Path) -> None:
    """What processes that were killed left of the tree that was here."""
    import glob  # noqa: PLC0415  # few trees are removed
    import shutil  # noqa: PLC0415  # as above

    for folder in root.parent.glob(f"{glob.escape(_scratch_of(root))}*"):
        shutil.rmtree(folder, ignore_errors=True)


def _has_loose_files(folder: Path) -> bool:
    if os.path.lexists(folder / ".git") or folder.is_symlink() or not folder.is_dir():
        return False
    return any(files for _, _, files in os.walk(folder))


def _linked_gitdir(root: Path) -> Path | None:
    """The git directory of a linked worktree, by its `.git` file; None: only git can tell."""
    with suppress(OSError):
        kind, _, recorded = os.fsdecode((root / ".git").read_bytes()).rstrip("\n").partition(": ")
        gitdir = root / recorded
        if kind == "gitdir" and (gitdir / "commondir").is_file() and (gitdir / "HEAD").is_file():
            return gitdir
    return None


def _entry(line: bytes) -> TreeEntry:
    facts, _, path = line[2:].partition(b"\t")
    mode, sha, stage = facts.decode("ascii").split(" ")
    return TreeEntry(mode, sha, int(stage), path)
